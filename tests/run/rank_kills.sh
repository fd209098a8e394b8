#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# One run of two processes, of which one process is killed with SIGKILL at any moment, again and again: a rank, mpirun, or
# the launcher, after which the command that began the run is given once more. It goes on by itself each time, and ends
# in the bits and the records of a run that nobody disturbed. It is as long as its kills need; one that is done before
# all were made is followed by another one.
# DT_KILLS: how many kills (20; 50 with DT_LONG=1; 1,000 by make check-kills); DT_KILLS_SEED: another course.
set -u
. "${DT_SRCDIR:?}/tests/mpi_job.sh"
unset OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_hwloc_base_binding_policy # of the launcher, which knows
name=rank_kills
. "$DT_SRCDIR/tests/run/job.inc"
usual=20
[ "${DT_LONG:-}" != 1 ] || usual=50
wanted=${DT_KILLS:-$usual}
seed=${DT_KILLS_SEED:-1}
echo "DT_KILLS_SEED=$seed"
# what mpirun leaves behind when it is killed goes with the folder
mkdir "$work/tmp" || exit 1
TMPDIR=$(cd "$work/tmp" && pwd) OMPI_MCA_btl_vader_backing_directory=$(cd "$work/tmp" && pwd)
export TMPDIR OMPI_MCA_btl_vader_backing_directory

# a part of the kills comes while a life starts, others leave it steps: 3 of them for a kill, of three phases
limit=0
steps=$((40 + wanted * 2)) iterations=$((20 + wanted / 2))
save='every_steps = 1; keep_last = 3;'
job <<END
phase2_ppo = { train_batch = 40; fragment = 8; sgd_epochs = 1; };
phase3_constrained = { train_batch = 40; fragment = 8; sgd_epochs = 1; limits = "starvation:1000"; };
phases = ( { plugin = "phase1_world_model"; stop = { steps = $steps; }; },
           { plugin = "phase2_ppo"; stop = { iterations = $iterations; }; training = { eval_interval = 25; }; },
           { plugin = "phase3_constrained"; fresh = [ "controller" ]; stop = { iterations = $iterations; }; } );
END

random() { # N: the next number below N, in $number
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    number=$((seed / 1024 % $1)) # the low bits repeat soon
}
records() {
    cut -d, -f1,2 "$work/$1/metrics.jsonl"
}

train 0 whole
enough_states 3
began=$(date +%s%N)
train 0 start --nproc 2 --phase 1 --max-steps 1
span=$((($(date +%s%N) - began) * 3 / 1000000)) # ms: a life starts and ends, and twice as long again

runs=0
begin() { # a life of the launcher
    "$dtrain" run --config "$work/job.cfg" --run-dir "$work/run$runs" --resume auto -q --nproc 2 --max-restarts 1000000 \
        >>"$work/out" 2>>"$work/err" &
    launcher=$!
}
# end: of a run, however often it was disturbed
end() {
    wait $launcher
    code=$?
    cases=$((cases + 1))
    [ $code -eq 0 ] || fail "run $runs, $kills kills: left with $code"
    same_all run$runs "run $runs, $kills kills"
    cases=$((cases + 1))
    records whole >"$work/a"
    records run$runs >"$work/b"
    cmp -s "$work/a" "$work/b" || fail "run $runs, $kills kills: other records: $(diff "$work/a" "$work/b" | head -n 4)"
    cases=$((cases + 1))
    tries=0 # mpirun of a launcher that was killed takes its time
    while [ -n "$(pgrep -f "$work/run$runs ")" ] && [ $tries -lt 100 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    [ $tries -lt 100 ] || fail "run $runs: processes are left: $(pgrep -fa "$work/run$runs ")"
    [ $failed -eq 0 ] && rm -rf "${work:?}/run$runs"
    : >"$work/err"
    runs=$((runs + 1))
}

kills=0 of_rank=0 of_mpirun=0 of_launcher=0 between=0
: >"$work/err"
begin
while [ $kills -lt "$wanted" ] && [ $failed -eq 0 ]; do
    random "$span"
    sleep "$(printf '%d.%03d' $((number / 1000)) $((number % 1000)))"
    if ! kill -0 $launcher 2>/dev/null; then
        end
        begin
        continue
    fi
    random 100
    mpirun=$(pgrep -P $launcher -x mpirun)
    ranks=$(pgrep -P "${mpirun:-$launcher}" -x dtrain)
    if [ $number -lt 10 ]; then
        kill -KILL $launcher
        wait $launcher 2>/dev/null
        of_launcher=$((of_launcher + 1))
        begin
    elif [ -z "$mpirun" ]; then # between two lives
        between=$((between + 1))
        continue
    elif [ $number -lt 30 ] || [ -z "$ranks" ]; then
        kill -KILL "$mpirun" 2>/dev/null || continue
        of_mpirun=$((of_mpirun + 1))
    else
        # shellcheck disable=SC2086 # several
        set -- $ranks
        random $#
        shift "$number"
        kill -KILL "$1" 2>/dev/null || continue
        of_rank=$((of_rank + 1))
    fi
    kills=$((of_rank + of_mpirun + of_launcher))
done
end
echo "$kills kills ($of_rank of ranks, $of_mpirun of mpirun, $of_launcher of the launcher) in $runs runs"
cases=$((cases + 1))
[ $kills -ge "$wanted" ] || fail "fewer kills than the $wanted that were wanted"
finish
