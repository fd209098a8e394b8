#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Folders that a third party made (docs/explanation/security.md): links, hard links, pipes and names in them lead
# nowhere, and a store that is cut while a run trains ends it in order.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
work=$(mktemp -d ./test-foreign-XXXXXX) || exit 1
work=$(cd "$work" && pwd)
trap 'rm -rf "$work"' EXIT INT TERM
failed=0

fail() {
    echo "FAIL: $*"
    tail -n 6 "$work/err" "$work/out" 2>/dev/null | sed 's/^/    /'
    failed=$((failed + 1))
}
expect() { # CODE TEXT COMMAND...
    code=$1 text=$2
    shift 2
    timeout 120 "$@" >"$work/out" 2>"$work/err"
    got=$?
    [ "$got" -eq "$code" ] || { fail "exit code $got, expected $code: $*"; return; }
    [ -z "$text" ] || grep -qF -- "$text" "$work/err" "$work/out" || fail "nothing said about \"$text\": $*"
}

tiny="--set env.id=cartpole --set phase2_ppo.train_batch=64 --set phase2_ppo.fragment=16
      --set phase2_ppo.sgd_epochs=1 --set data.batch=32 --set evaluation.baselines= --threads 1 -q"
expect 0 "" "$dtrain" --plugin phase2_ppo $tiny --set phase2_ppo.iterations=2 --max-steps 2 --run-dir "$work/run"

# --- every file and folder of a run in turn is a link that leads out of it ---
mkdir "$work/mine" "$work/mine/folder"
head -c 4096 /dev/urandom >"$work/mine/file"
cp "$work/mine/file" "$work/mine/folder/file"
sum() {
    (cd "$work/mine" && find . | sort && cksum file folder/file)
}
before=$(sum)
names=$(cd "$work/run" && find . -mindepth 1 | sed 's|^\./||')
n=0
for name in $names; do
    n=$((n + 1))
    rm -rf "$work/theirs"
    cp -r "$work/run" "$work/theirs"
    target=$work/mine/file
    [ -d "$work/run/$name" ] && target=$work/mine/folder
    rm -rf "${work:?}/theirs/$name"
    ln -s "$target" "$work/theirs/$name"
    timeout 120 "$dtrain" run --resume "$work/theirs" -q --max-steps 4 >"$work/out" 2>"$work/err"
    code=$?
    [ "$(sum)" = "$before" ] || fail "resuming a run whose $name is a link changed what it leads to"
    case $name in # what the run writes again takes the link's place; without the rest it cannot go on
        meta.json | progress.json | config.origin.json | report.html | */LATEST | checkpoints/step-*/config.cfg) ;;
        tensorboard*) grep -q "it is a link" "$work/err" || fail "$name is a link, and nobody says so" ;;
        *) [ $code -ne 0 ] || fail "$name is a link, and nobody minds" ;;
    esac
    [ $code -lt 64 ] || fail "$name is a link: exit code $code"
done
[ $n -ge 15 ] || fail "a run has only $n files"
rm -rf "$work/theirs"
cp -r "$work/run" "$work/theirs"
rm "$work/theirs/run.lock" && ln "$work/mine/file" "$work/theirs/run.lock"
expect 4 "second name" "$dtrain" run --resume "$work/theirs" -q
[ "$(sum)" = "$before" ] || fail "a hard link was written through"

# --- every file in turn is a pipe, which nobody waits for ---
step=$(cd "$work/run/checkpoints" && echo step-*)
for name in $names; do
    [ -f "$work/run/$name" ] || continue
    rm -rf "$work/theirs"
    cp -r "$work/run" "$work/theirs"
    rm "$work/theirs/$name"
    mkfifo "$work/theirs/$name"
    for verb in "ckpt verify" "ckpt list" "ckpt inspect" "runs" "report" "run -q --max-steps 4 --resume" \
        "eval --seeds 1 --episodes 1 --checkpoint"; do
        timeout 60 "$dtrain" $verb "$work/theirs" >"$work/out" 2>"$work/err" </dev/null
        code=$?
        [ $code -lt 64 ] || fail "$verb of a run whose $name is a pipe: exit code $code"
    done
done
rm -rf "$work/theirs" && cp -r "$work/run" "$work/theirs"
rm "$work/theirs/checkpoints/$step/COMMIT" && mkfifo "$work/theirs/checkpoints/$step/COMMIT"
expect 4 "not a regular file" "$dtrain" ckpt verify "$work/theirs"

# --- a name is no path ---
for name in ../../x a/b .. .hidden "a b" -x "$(printf 'a\033[31mb')" "$(printf 'a\nb')" ""; do
    expect 2 "--name" env DTRAIN_RUN_DIR="$work/runs" "$dtrain" --plugin phase2_ppo $tiny --name="$name" --max-steps 1
done
[ ! -e "$work/runs" ] || fail "a refused name left a folder"

# --- a store that is cut while it is in use ---
"$dtrain" data import "${DT_SRCDIR:-.}/share/demo" --out "$work/store" -q || fail "no store"
timeout 100 "$dtrain" --plugin phase1_world_model --set data.store="$work/store" --set data.batch=16 --set risk_gnn.hidden=16 \
    --set world_lstm.hidden=16 --set training.epochs=100000 --set training.eval_interval=0 \
    --set checkpoint.every_steps=5 --set checkpoint.every_seconds=0 --run-dir "$work/cut" --threads 1 -q >"$work/out" 2>"$work/err" &
pid=$!
tries=0
while [ ! -e "$work/cut/checkpoints/LATEST" ] && kill -0 $pid 2>/dev/null && [ $tries -lt 1200 ]; do
    sleep 0.05
    tries=$((tries + 1))
done
for array in "$work"/store/*.npy; do
    truncate -s 4096 "$array"
done
wait $pid
code=$?
[ $code -eq 4 ] || fail "a store was cut: exit code $code, expected 4"
grep -q "store/.*npy became shorter" "$work/err" || fail "the file that was cut is not named"
grep -q "became shorter" "$work/cut/error.log" || fail "error.log does not say it"
grep -q '"exit_code":4' "$work/cut/meta.json" || fail "meta.json does not say it"
expect 0 "" "$dtrain" ckpt verify "$work/cut"
expect 0 "failed (4)" "$dtrain" runs "$work"

[ $failed -eq 0 ] && echo "foreign: all as it should be"
exit $failed
