#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The recipes of docs/: commands behind a "tested" mark run; the Slurm script goes through the life of a job against a
# scheduler made up here; systemd reads its unit where it is installed. What texts name: names.sh.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
DT_SRCDIR=${DT_SRCDIR:-.}
docs=$DT_SRCDIR/docs
. "$DT_SRCDIR/tests/docs/tested.sh"
work=$(mktemp -d "$PWD/test-recipes-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
PATH=$(cd "$(dirname "$dtrain")" && pwd):$PATH
export PATH

fail() {
    echo "FAIL: $*"
    failed=$((failed + 1))
}

# --- every command that a text says is tested ---
# the template's makefile asks for dtrain, which is not installed yet
mkdir "$work/pc"
cp "${DT_BUILDDIR:-.}/dtrain-uninstalled.pc" "$work/pc/dtrain.pc"
PKG_CONFIG_PATH=$work/pc
CC=${CC:-cc}
export PKG_CONFIG_PATH CC
tested=0
pages=$(cd "$docs" && find . -name '*.md' | sed 's|^\./||; s|\.md$||' | sort)
for page in $pages; do
    text=$docs/$page.md name=$(echo "$page" | tr / -)
    grep -qx '<!-- tested -->' "$text" || continue
    tested=$((tested + 1))
    like_a_clone "$work/$name"
    tested_commands "$text" >"$work/$name/commands.sh"
    [ "$(grep -c dtrain "$work/$name/commands.sh")" -ge 3 ] || fail "$name.md has hardly a tested command"
    (cd "$work/$name" && unset MAKEFLAGS MFLAGS && timeout 300 sh -eux commands.sh) >"$work/out" 2>&1 ||
        fail "a command of $name.md: $(tail -n 20 "$work/out")"
done

# --- commands that need SUMO, on a scenario of two signals ---
if command -v netconvert >/dev/null && [ -e "${DT_BUILDDIR:-.}/plugins/env_sumo/.libs/env_sumo_shim.so" ]; then
    for page in $pages; do
        text=$docs/$page.md name=$(echo "$page" | tr / -)
        grep -qx '<!-- tested with sumo -->' "$text" || continue
        tested=$((tested + 1))
        like_a_clone "$work/$name"
        cp "$DT_SRCDIR"/tests/fixtures/sumo/pair.* "$work/$name"
        tested_commands "$text" "tested with sumo" >"$work/$name/commands.sh"
        (cd "$work/$name" && mv pair.sumocfg town.sumocfg &&
            netconvert -n pair.nod.xml -e pair.edg.xml -o pair.net.xml --no-turnarounds &&
            timeout 300 sh -eux commands.sh) >"$work/out" 2>&1 || fail "a command of $name.md: $(tail -n 20 "$work/out")"
    done
fi
[ $tested -ge 10 ] || fail "$tested pages have tested commands, expected at least 10"

# --- Slurm: the limit comes twice, then the run ends ---
if command -v bash >/dev/null 2>&1; then
    bash -n "$docs/slurm.sh" || fail "slurm.sh is no script"
    grep -q '^#SBATCH --signal=B:TERM@120$' "$docs/slurm.sh" && grep -q '^#SBATCH --requeue$' "$docs/slurm.sh" || fail "what Slurm is asked"
    mkdir "$work/bin"
    printf '#!/bin/sh\necho "$@" >>"%s"\n' "$work/requeued" >"$work/bin/scontrol"
    chmod +x "$work/bin/scontrol"
    : >"$work/requeued"
    cd "$work" || exit 1
    job() { # options of dtrain; its process is $pid
        PATH=$work/bin:$PATH SLURM_JOB_ID=4711 SLURM_CPUS_PER_TASK=1 RUN=$work/job bash "$docs/slurm.sh" --plugin phase1_world_model \
            --set data.batch=16 --set risk_gnn.hidden=8 --set world_lstm.hidden=8 --set training.eval_interval=0 "$@" 2>"$work/err" &
        pid=$!
    }
    lines() { sed -n '$=' "$work/job/metrics.jsonl" 2>/dev/null || true; }
    for life in 1 2; do
        from=$(lines)
        job --set training.epochs=100000
        tries=0
        until [ "$(lines)0" -gt "${from}0" ] || [ $tries -gt 400 ]; do
            tries=$((tries + 1))
            sleep 0.05
        done
        sleep 0.2
        kill -TERM $pid
        wait $pid
        code=$?
        [ $code -eq 75 ] || fail "life $life of the job left with $code: $(tail -n 3 "$work/err")"
        [ "$(grep -c '^requeue 4711$' "$work/requeued")" -eq $life ] || fail "life $life was not put back: $(cat "$work/requeued")"
    done
    # a signal that comes before there is a run to be saved
    printf '#!/bin/sh\nkill -TERM "$PPID"\nexec sleep 20\n' >"$work/bin/dtrain"
    chmod +x "$work/bin/dtrain"
    PATH=$work/bin:$PATH SLURM_JOB_ID=4711 RUN=$work/early bash "$docs/slurm.sh" 2>"$work/err"
    code=$?
    rm "$work/bin/dtrain"
    [ $code -eq 143 ] && [ "$(grep -c '^requeue 4711$' "$work/requeued")" -eq 3 ] ||
        fail "told to stop while it starts: left with $code, not put back"
    grep -q "resuming" "$work/job/train.log" || fail "the second life does not go on"
    step=$(dtrain ckpt inspect "$work/job" --json | sed -n 's/^{"step":\([0-9]*\).*/\1/p')
    printf '#!/bin/sh\nexec "%s" "$@" --max-steps %d\n' "$(command -v dtrain)" $((step + 2)) >"$work/bin/dtrain"
    chmod +x "$work/bin/dtrain"
    job
    wait $pid || fail "the last life left with $?: $(tail -n 3 "$work/err")"
    printf '#!/bin/sh\nexit 7\n' >"$work/bin/dtrain" # a failure stays one
    job
    wait $pid
    code=$?
    [ $code -eq 7 ] || fail "a training that fails left the job with $code"
    [ "$(wc -l <"$work/requeued")" -eq 3 ] || fail "put back too often: $(cat "$work/requeued")"
fi

# --- systemd ---
if command -v systemd-analyze >/dev/null 2>&1; then
    cp "$docs/dtrain@.service" "$work/dtrain@hybrid.service"
    if SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no "$work/dtrain@hybrid.service" >"$work/out" 2>&1; then
        grep "dtrain@" "$work/out" && fail "systemd complains of the unit"
    else
        grep -q "dtrain@" "$work/out" && fail "systemd refuses the unit: $(cat "$work/out")"
        echo "systemd-analyze cannot verify here: $(head -n 1 "$work/out")"
    fi
fi
grep -qx 'RestartForceExitStatus=75' "$docs/dtrain@.service" && grep -qx 'Restart=no' "$docs/dtrain@.service" || fail "restart after 75 alone"
command=$(sed -n "s/^ExecStart=.*-c '\(.*\)'$/\1/p" "$docs/dtrain@.service" | sed 's/%i/hybrid/g')
sh -n -c "$command" || fail "what the unit starts is no command"

# --- Kubernetes: read where python3 has YAML ---
for file in "$docs"/kubernetes-*.yaml; do
    grep -q "UNTESTED" "$file" || fail "$file does not say that it is untested"
    if python3 -c 'import yaml' 2>/dev/null; then
        python3 -c 'import sys, yaml; d = yaml.safe_load(open(sys.argv[1])); assert d["kind"] in ("Job", "MPIJob") and d["spec"]' "$file" ||
            fail "$file is no YAML"
    fi
done
[ $failed -eq 0 ]
