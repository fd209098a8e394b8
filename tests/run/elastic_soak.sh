#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# One run of three phases whose number of processes changes from 1 to 8, again and again, at any moment: a rank is killed,
# or the hostfile gets another number of slots; two of the phases have work for 6. It continues by itself each time, and
# ends in the bits and the records of an undisturbed run. `make check-elastic`.
# DT_CHANGES: how many changes (10); DT_CHANGES_SEED: another course.
set -u
. "${DT_SRCDIR:?}/tests/mpi_job.sh"
unset OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_hwloc_base_binding_policy # of the launcher, which knows
name=elastic_soak
. "$DT_SRCDIR/tests/run/job.inc"
wanted=${DT_CHANGES:-10}
seed=${DT_CHANGES_SEED:-1}
echo "DT_CHANGES_SEED=$seed"
limit=0
data='batch = 16; shards = 8;' instances=6
save='every_steps = 1; keep_last = 3;'
job <<END
phase2_ppo = { train_batch = 48; fragment = 8; sgd_epochs = 1; };
phase3_constrained = { train_batch = 48; fragment = 8; sgd_epochs = 1; limits = "starvation:1000"; };
phases = ( { plugin = "phase1_world_model"; stop = { steps = 150; }; },
           { plugin = "phase2_ppo"; stop = { iterations = 40; }; training = { eval_interval = 25; }; },
           { plugin = "phase3_constrained"; fresh = [ "controller" ]; stop = { iterations = 40; }; } );
END
train 0 whole
enough_states 3

began=$(date +%s%N)
train 0 start --nproc 8 --phase 1 --max-steps 1
span=$((($(date +%s%N) - began) * 3 / 1000000)) # ms: a life of 8 processes starts and ends, and twice as long again

random() { # N: the next number below N, in $number
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    number=$((seed / 1024 % $1)) # the low bits repeat soon
}
records() {
    cut -d, -f1,2 "$work/$1/metrics.jsonl"
}
resize() { # N slots; renamed, so that no half of it is read
    printf 'localhost slots=%s\n' "$1" >"$work/hosts.new"
    mv "$work/hosts.new" "$work/hosts"
}

runs=0 kills=0 requests=0
begin() { # every other run has mirrors in place of checkpoints
    random 8
    resize $((number + 1))
    mirrors="--set checkpoint.every_steps=$((runs % 2 == 0)) --set checkpoint.mirror_seconds=1"
    # shellcheck disable=SC2086 # options
    DTRAIN_FAULT=launch.wait:1+ "$dtrain" run --config "$work/job.cfg" --run-dir "$work/run$runs" --resume auto --threads 1 $mirrors --nproc 1:8 \
        --hostfile "$work/hosts" --max-restarts 1000000 >>"$work/out" 2>>"$work/err" &
    launcher=$!
}
changed() { # changes that took place in the current run
    grep -c -e "continuing with .* processes instead of" -e ", restart [0-9]* of " "$work/err"
}
total=0
finish_run() {
    wait $launcher
    code=$?
    cases=$((cases + 1))
    [ $code -eq 0 ] || fail "run $runs: exit code $code"
    if [ $((runs % 2)) -eq 0 ]; then
        same_all run$runs "run $runs"
    else
        same run$runs "run $runs, mirrored"
    fi
    records whole >"$work/a"
    records run$runs >"$work/b"
    cases=$((cases + 1))
    cmp -s "$work/a" "$work/b" || fail "run $runs: other records: $(diff "$work/a" "$work/b" | head -n 4)"
    total=$((total + $(changed)))
    [ $failed -eq 0 ] && rm -rf "${work:?}/run$runs"
    : >"$work/err"
    runs=$((runs + 1))
}

: >"$work/err"
begin
while [ $((total + $(changed))) -lt "$wanted" ] && [ $failed -eq 0 ]; do
    random "$span"
    sleep "$(printf '%d.%03d' $((number / 1000)) $((number % 1000)))"
    if ! kill -0 $launcher 2>/dev/null; then
        finish_run
        begin
        continue
    fi
    random 100
    if [ $number -lt 50 ]; then
        random 8
        resize $((number + 1))
        requests=$((requests + 1))
        continue
    fi
    # shellcheck disable=SC2046 # several
    set -- $(pgrep -f "^$dtrain run .*/run$runs --threads")
    if [ $# -gt 0 ]; then
        random $#
        shift "$number"
        kill -KILL "$1" 2>/dev/null && kills=$((kills + 1))
    fi
done
finish_run
echo "$total changes of the number of processes or lives ($kills kills, $requests requests) in $runs runs"
cases=$((cases + 1))
[ $total -ge "$wanted" ] || fail "fewer changes than the $wanted that were wanted"
finish
