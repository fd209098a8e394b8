#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Names that others chose never reach the terminal as they are: escape sequences, C1 controls, marks of direction and
# bytes that are no text, in every file of a run and of a store that verbs show.
set -u

. "${DT_SRCDIR:-.}/tests/check.inc"
shown=0
esc=$(printf '\033]0;owned\007\033[2J')
c1=$(printf '\302\2332J')
bidi=$(printf '\342\200\256evil')
byte=$(printf '\233')

forbidden=$(printf '[\001-\010\013-\037\177]|\302[\200-\237]|')
forbidden=$forbidden$(printf '\342\200[\216\217\250-\256]|(^|[^\302-\364\200-\277])[\200-\277]')

quiet() { # COMMAND...: whatever it answers is plain text
    timeout 60 "$dtrain" "$@" >"$work/out" 2>&1 </dev/null
    shown=$((shown + $(wc -c <"$work/out")))
    if LC_ALL=C grep -qE "$forbidden" "$work/out"; then
        echo "FAIL: dtrain $* writes what a terminal obeys:"
        cat -v "$work/out" | head -n 4
        failed=$((failed + 1))
    fi
}
mkdir "$work/runs"
"$dtrain" --plugin phase2_ppo --set env.id=cartpole --set phase2_ppo.iterations=1 --set phase2_ppo.train_batch=64 \
    --set phase2_ppo.fragment=16 --set data.batch=32 --set evaluation.baselines= --run-dir "$work/run" -q 2>/dev/null
for bad in "$esc" "$c1" "$bidi" "$byte"; do
    run=$work/runs/a${bad}b
    cp -r "$work/run" "$run"
    step=$(cd "$run/checkpoints" && echo step-*)
    sed -i "s/phase2_ppo/ph${bad}ase/g" "$run/progress.json" "$run/metrics.jsonl"
    sed -i "s/\"exit_code\":0/\"exit_code\":1/" "$run/meta.json"
    printf '2026 error what %s failed\n' "$bad" >"$run/error.log"
    quiet runs "$work/runs"
    quiet runs "$work/runs" --json
    for verb in "ckpt list" "ckpt inspect" "ckpt verify" "data inspect" "watch" "report" "render" "eval --checkpoint" \
        "run --resume" "export --out $work/policy.safetensors --checkpoint"; do
        quiet $verb "$run"
        quiet $verb "$run/no$bad"
    done
    sed -i "s/phase2_ppo/ph${bad}ase/g" "$run/checkpoints/$step/MANIFEST.json"
    python3 -c 'import hashlib, sys; sys.stdout.buffer.write(hashlib.sha256(open(sys.argv[1], "rb").read()).digest())' \
        "$run/checkpoints/$step/MANIFEST.json" >"$run/checkpoints/$step/COMMIT" 2>/dev/null # without: refused, as good
    quiet ckpt list "$run"
    quiet ckpt inspect "$run"
    quiet ckpt inspect "$run" --json
    printf 'se%sed = 3;\n' "$bad" >"$work/bad.cfg"
    quiet --config "$work/bad.cfg" --dry-run
    quiet show "no$bad"
    quiet "no$bad"
    quiet --plugin phase2_ppo --set "x$bad=3" --dry-run
    printf 'id,fr%same,x\n1,2,3\n' "$bad" >"$work/t${bad}.csv"
    quiet data import "$work/t${bad}.csv" --out "$work/s"
    rm -rf "$run"
done
run=$(printf '%s/runs/a\nfake  done' "$work")
cp -r "$work/run" "$run"
[ "$("$dtrain" runs "$work/runs" | wc -l)" -eq 2 ] || { echo "FAIL: a line end in a name makes up a row"; failed=1; }
# on a terminal the line is there while the policy is evaluated before the first round
if command -v script >/dev/null; then
    script -qec "$dtrain --plugin phase2_ppo --set env.id=env_traffic --set env_traffic.scenario=grid --max-steps 1 \
        --set env_traffic.control=signals --set env_traffic.flow_vph=400 --set evaluation.seeds=1 --run-dir $work/live \
        -t 1 --set evaluation.episodes=200 --set phase2_ppo.train_batch=64 --set phase2_ppo.fragment=8 --set data.batch=32" \
        /dev/null >"$work/live.txt" 2>&1 </dev/null
    tr '\r' '\n' <"$work/live.txt" | sed '/first step done/,$d' | grep -q 'evaluating [0-9]*/200' ||
        { echo "FAIL: no progress during the first evaluation:"; tail -n 5 "$work/live.txt"; failed=1; }
fi
[ $shown -gt 4000 ] || { echo "FAIL: only $shown bytes were shown"; failed=1; }
finish terminal
