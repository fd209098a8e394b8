#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# One run on several processes, started by --nproc or by mpirun: all three phases end in the bits of one process, on any
# number of them and after a resume on another one; any process may be asked to stop; one that is lost is named, and the
# run goes on by itself; what cannot work is refused once, by one voice.
set -u
. "${DT_SRCDIR:?}/tests/mpi_job.sh"
unset OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_hwloc_base_binding_policy # of the launcher, which knows

name=processes
. "$DT_SRCDIR/tests/run/job.inc"
job <<'END'
phase2_ppo = { train_batch = 40; fragment = 8; sgd_epochs = 1; };
phase3_constrained = { train_batch = 40; fragment = 8; sgd_epochs = 1; limits = "starvation:1000"; };
phases = ( { plugin = "phase1_world_model"; stop = { steps = 5; }; },
           { plugin = "phase2_ppo"; stop = { iterations = 3; }; training = { eval_interval = 1; }; },
           { plugin = "phase3_constrained"; fresh = [ "controller" ]; stop = { iterations = 3; }; } );
END

# --- the same bits ---
train 0 whole
enough_states 4
counts="2 3"
[ "${DT_LONG:-}" != 1 ] || counts="2 3 4"
for n in $counts; do
    train 0 n$n --nproc $n
    same_all n$n "$n processes"
    cases=$((cases + 1))
    grep -q "\"ranks\":$n" "$work/n$n/meta.json" && [ -s "$work/n$n/rank-$((n - 1)).log" ] ||
        fail "$n processes: meta.json or a rank's log does not know them"
done
cases=$((cases + 1))
cut -d, -f1,2,4,5 "$work/whole/metrics.jsonl" >"$work/a"
cut -d, -f1,2,4,5 "$work/n3/metrics.jsonl" >"$work/b"
cmp -s "$work/a" "$work/b" || fail "other records of 3 processes than of one"

for key in busy_s waiting imbalance slowest sent; do
    cases=$((cases + 1))
    grep -q "\"ranks/$key\":" "$work/n3/metrics.jsonl" || fail "ranks/$key is not recorded"
done
cases=$((cases + 1))
"$dtrain" watch "$work/n3" >"$work/out"
grep -q "ranks/imbalance" "$work/out" && grep -q "^3 ranks: busy .* an iteration, waiting " "$work/out" ||
    fail "dtrain watch does not show how the ranks do"
cases=$((cases + 1))
"$dtrain" report "$work/n3" --out "$work/page.html" >"$work/out" 2>"$work/err" &&
    grep -q "<p>3 ranks: busy .* an iteration, waiting " "$work/page.html" || fail "the report does not show how the ranks do"
cases=$((cases + 1))
"$dtrain" runs "$work" >"$work/out"
head -n 1 "$work/out" | grep -q " began  *ranks  phase " && grep -q "^n3  *done .*Z      3  phase3" "$work/out" &&
    grep -q "^whole  *done .*Z      1  phase3" "$work/out" && "$dtrain" runs "$work/n3" --json | grep -q '"ranks":3,' &&
    ! "$dtrain" runs "$work/whole" | grep -q " ranks " || fail "dtrain runs does not show how many ranks: $(cat "$work/out")"

# where time goes, a track for each rank
if command -v python3 >/dev/null; then
    train 0 traced --nproc 3 --phase 1 --profile-steps 2:3
    cases=$((cases + 1))
    DT_RANKS=3 python3 "$DT_SRCDIR/tests/run/check_trace.py" "$work/traced/trace.json" "step/training step" \
        "ranks/wait for others" >"$work/out" 2>"$work/err" || fail "the trace of three processes"
    cases=$((cases + 1))
    [ -z "$(find "$work/traced" -name '*.part')" ] || fail "parts of the trace are left"
    train 0 untraced --nproc 2 --phase 1 --profile-steps 3:99
    cases=$((cases + 1))
    DT_RANKS=2 python3 "$DT_SRCDIR/tests/run/check_trace.py" "$work/untraced/trace.json" "step/training step" \
        >"$work/out" 2>"$work/err" || fail "the trace of two processes that ended before it did"
fi

echo "localhost slots=2" >"$work/hosts"
train 0 hosted --nproc 2 --hostfile "$work/hosts"
same hosted "a hostfile"

# --- by mpirun itself, and on other numbers of processes in the middle ---
OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_hwloc_base_binding_policy
cases=$((cases + 1))
mpi 2 "$dtrain" run --config "$work/job.cfg" --run-dir "$work/hops" -q --phase 1 --max-steps 3 >"$work/out" 2>"$work/err" ||
    fail "mpirun ended with $?"
train 0 hops --resume --nproc 3 --phase 1-2
train 0 hops --resume --phase all
same hops "2, then 3 processes, then one"
unset OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_hwloc_base_binding_policy

# --- a signal to the launcher, or to any one process, stops all at the same step ---
begin_long() { # DIR: a run that nobody would wait for, in its second phase
    timeout -k 5 120 "$dtrain" run --config "$work/job.cfg" --run-dir "$work/$1" -q --nproc 2 \
        --set phase2_ppo.train_batch=2000 --set env_traffic.episode_s=600 --phase 1-2 \
        --set phases.1.stop.iterations=100000 >"$work/out" 2>"$work/err" &
    job=$!
    await "$work/$1/checkpoints/step-000000000005"
    sleep 0.3
}
# stop PROCESS SIGNAL DIR
stop() {
    begin_long "$3"
    case $1 in
        launcher) kill -"$2" "$(pgrep -P "$job")" ;;
        *) kill -"$2" "$(pgrep -f "^$dtrain run .*$3 " | tail -n 1)" ;;
    esac
    wait $job
    code=$?
    cases=$((cases + 1))
    [ $code -eq 75 ] || fail "$2 to $1: exit code $code, expected 75"
    cases=$((cases + 1))
    "$dtrain" ckpt verify "$work/$3" >"$work/out" 2>&1 || fail "$2 to $1: a checkpoint is damaged"
    cases=$((cases + 1))
    [ -z "$(pgrep -f "$work/$3")" ] || fail "$2 to $1: processes are left"
}
stop launcher TERM stop-launcher
stop rank HUP stop-hangup
stop rank TERM stop-rank
# asked to stop twice, a process leaves at once, and nothing is started again
begin_long twice
rank=$(pgrep -f "^$dtrain run .*twice " | tail -n 1)
kill -TERM "$rank"
sleep 0.02
kill -TERM "$rank" 2>/dev/null
wait $job
code=$?
cases=$((cases + 1))
[ $code -eq 143 ] || [ $code -eq 75 ] || fail "TERM twice: exit code $code, expected 143, or 75 where it had saved"
says 0 "starting the 2 processes"
# term_early WHAT CODE|FUNCTION [options of dtrain run]: TERM to the launcher while ranks begin
term_early() {
    what=$1
    want=$2
    shift 2
    DTRAIN_FAULT="comm.begin:3@$work/here" timeout -k 5 120 "$dtrain" run "$@" --nproc 2 >"$work/out" 2>"$work/err" &
    job=$!
    await "$work/here"
    kill -TERM "$(pgrep -P $job)"
    sleep 0.3
    rm -f "$work/here"
    wait $job
    code=$?
    cases=$((cases + 1))
    [ "$want" != saved_early ] || want=$(saved_early)
    [ $code -eq "$want" ] || fail "TERM before $what: exit code $code, expected $want"
}
# before there is anything to save; of a run that goes on, its last checkpoint stands
saved_early() { # on a slow machine the signal may arrive after the first step
    test -e "$work/early/checkpoints/LATEST" && echo 75 || echo 143
}
term_early "the first step" saved_early --config "$work/job.cfg" --run-dir "$work/early" -q
cases=$((cases + 1))
[ -z "$(pgrep -f "$work/early")" ] || fail "TERM before the first step: processes are left"
term_early "a run goes on" 75 --resume "$work/stop-launcher"
says 1 "stopped before it continued, its last checkpoint is intact; continue with: "

cases=$((cases + 1))
timeout -s TERM 0.4 "$dtrain" run --config "$work/job.cfg" --run-dir "$work/soon" -q --nproc 2 \
    --set env_traffic.episode_s=600 --set phases.1.stop.iterations=100000 >"$work/out" 2>"$work/err" &
wait $!
sleep 0.1
tries=0
while [ -n "$(pgrep -f "$work/soon")" ] && [ $tries -lt 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
[ $tries -lt 100 ] || fail "TERM while it starts is lost"

# the hint names what was said; mpirun's own words are not the user's
says 0 "Forwarding signal"
cases=$((cases + 1))
grep -q "continue with: $dtrain run --resume $work/stop-rank --nproc 2" "$work/stop-rank/train.log" ||
    fail "the hint after a stop does not lead back"

# mpirun is signalled itself, or its launcher loses its terminal, or is killed: a run that is begun again waits for its end
# end NAME SIGNAL CODE
end() {
    # these tests may have been started by nohup, which a program takes over
    env --default-signal=HUP "$dtrain" run --config "$work/job.cfg" --run-dir "$work/$1" -q --nproc 2 \
        --set phase2_ppo.train_batch=2000 --set env_traffic.episode_s=600 --phase 1-2 \
        --set phases.1.stop.iterations=100000 >"$work/out" 2>"$work/err" &
    job=$!
    await "$work/$1/checkpoints/step-000000000005"
    sleep 0.3
    case $1 in
        mpirun*) kill -"$2" "$(pgrep -P "$job" -x mpirun)" ;;
        *) kill -"$2" $job ;;
    esac
    wait $job
    code=$?
    cases=$((cases + 1))
    [ $code -eq "$3" ] || fail "$2 to $1: exit code $code, expected $3"
}
end mpirun TERM 75
end terminal HUP 75
end gone KILL 137
train 0 gone --resume --nproc 2 --phase 1-2 --set phases.1.stop.iterations=1
tries=0 # mpirun may take a moment longer than what it started
until [ -z "$(pgrep -f "$work/gone")$(pgrep -f "$work/terminal")$(pgrep -f "$work/mpirun")" ] || [ $tries -gt 50 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
cases=$((cases + 1))
[ $tries -le 50 ] || fail "processes are left: $(pgrep -fa "$work/gone")"

# a second start in a folder where a run trains waits for its end, and neither starts again nor goes on from before it
"$dtrain" run --config "$work/job.cfg" --run-dir "$work/shared" -q --nproc 2 >"$work/out1" 2>"$work/err1" &
first=$!
await "$work/shared/run.lock"
train 2 shared --nproc 2 --seed 99
cases=$((cases + 1))
wait $first || fail "a second start in its folder ended a run"
same shared "after a second start in its folder"
records=$(wc -l <"$work/shared/metrics.jsonl")
train 0 shared --nproc 2 --resume auto
same shared "after a third, with --resume auto"
cases=$((cases + 1))
[ "$(wc -l <"$work/shared/metrics.jsonl")" -eq "$records" ] || fail "a run that was done trained again"

# one line for every life of a scheduler's job
train 0 auto --resume auto --nproc 2 --phase 1
train 0 auto --resume auto --nproc 2 --phase 1-3
same auto "--resume auto, twice"

# --- a lost process is named, and the run goes on from its last checkpoint ---
rank_of() { # RANK DIR: its process
    for pid in $(pgrep -f "^$dtrain run .*$2 "); do
        tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx "OMPI_COMM_WORLD_RANK=$1" && echo "$pid"
    done
}
# lose SIGNAL DIR SAID: both processes wait at their 60th collective until one got the signal
lose() {
    DTRAIN_FAULT="comm.begin:60@$work/here" timeout -k 5 120 "$dtrain" run --config "$work/job.cfg" --run-dir "$work/$2" \
        -q --nproc 2 --set comm.timeout_s=5 >"$work/out" 2>"$work/err" &
    job=$!
    await "$work/here"
    sleep 0.3
    kill -"$1" "$(rank_of 1 "$2")"
    while kill -0 $job 2>/dev/null; do # the next life comes there, too
        rm -f "$work/here"
        sleep 0.1
    done
    wait $job
    code=$?
    cases=$((cases + 1))
    [ $code -eq 0 ] || fail "$1: exit code $code, expected 0"
    says 1+ "$3"
    says 1 "restarting the 2 processes from the last checkpoint of $work/$2, restart 1 of 3"
    same "$2" "rank 1 lost by $1"
    cases=$((cases + 1))
    [ -z "$(pgrep -f "$work/$2")" ] || fail "$1: processes are left"
}
lose KILL killed "rank 1 was ended by signal 9 (Killed)"
says 1+ "is gone; its last was collective"
says 1 "error rank 0 (process"
says 1 "its log ($work/killed/rank-1.log)"
cases=$((cases + 1))
grep -q "restart 1 of 3" "$work/killed/launch.log" && grep -q "mpirun noticed that process rank 1" "$work/killed/launch.log" ||
    fail "launch.log lacks what the launcher said and heard"
# asked to stop before they begin again: the run was interrupted, whatever its first life noted
DTRAIN_FAULT="comm.begin:60@$work/here" timeout -k 5 120 "$dtrain" run --config "$work/job.cfg" --run-dir "$work/between" \
    -q --nproc 2 --set comm.timeout_s=5 >"$work/out" 2>"$work/err" &
job=$!
await "$work/here"
sleep 0.3
kill -KILL "$(rank_of 1 between)"
until grep -q "^warn  *restarting the 2 processes" "$work/err" || ! kill -0 $job 2>/dev/null; do
    rm -f "$work/here"
    sleep 0.05
done
kill -TERM "$(pgrep -P $job)"
wait $job
code=$?
cases=$((cases + 1))
[ $code -eq 75 ] || fail "told to stop between two lives: exit code $code, expected 75"
says 1 "asked to stop before they restarted: continue with --resume $work/between"
cases=$((cases + 1))
"$dtrain" runs "$work/between" | grep -q "^between  *interrupted " && ! grep -q '"exit_code"' "$work/between/meta.json" ||
    fail "between two lives: $("$dtrain" runs "$work/between")"
train 0 between --nproc 2 --resume "$work/between"
same between "told to stop between two lives"
# mpirun itself: its processes save and end, and the run goes on, too
DTRAIN_FAULT="comm.begin:60@$work/here" timeout -k 5 120 "$dtrain" run --config "$work/job.cfg" --run-dir "$work/headless" \
    -q --nproc 2 >"$work/out" 2>"$work/err" &
job=$!
await "$work/here"
sleep 0.3
# meanwhile another launch into its folder is refused before anything is started
mkdir "$work/none"
printf '#!/bin/sh\ntouch "%s"\nexit 1\n' "$work/started" >"$work/none/mpirun"
chmod +x "$work/none/mpirun"
PATH=$work/none:$PATH train 2 headless --nproc 2
says 1 "headless is in use by a training; wait until it ends or name another folder"
PATH=$work/none:$PATH train 2 headless --nproc 2 --resume "$work/headless"
cases=$((cases + 1))
[ ! -e "$work/started" ] || fail "a second launch started processes"
kill -KILL "$(pgrep -P "$(pgrep -P $job)" -x mpirun)"
while kill -0 $job 2>/dev/null; do
    rm -f "$work/here"
    sleep 0.1
done
cases=$((cases + 1))
wait $job || fail "mpirun killed: exit code $?, expected 0"
says 1 ") was ended by signal 9 (Killed), and all ranks with it"
says 1 "restarting the 2 processes from the last checkpoint of $work/headless, restart 1 of 3"
same headless "mpirun killed"

# a folder that one process trains into is not waited for as one that a killed job still holds
"$dtrain" run --config "$work/job.cfg" --run-dir "$work/lonely" -q >/dev/null 2>&1 &
job=$!
until [ -e "$work/lonely/meta.json" ] || ! kill -0 $job 2>/dev/null; do sleep 0.01; done
kill -STOP $job
timeout -k 5 "$limit" "$dtrain" run --config "$work/job.cfg" --run-dir "$work/lonely" --nproc 2 >"$work/out" 2>"$work/err"
code=$?
cases=$((cases + 1))
[ $code -eq 2 ] || fail "a folder that one process trains into: exit code $code, expected 2"
says 1 "waiting up to 2 s for the training in $(cd "$work/lonely" && pwd)"
kill -KILL $job
wait $job 2>/dev/null

# before there is any process, and so any run directory
mkdir "$work/bin"
cat >"$work/bin/mpirun" <<END
#!/bin/sh
[ -e "$work/begun" ] && exec $(command -v mpirun) "\$@"
touch "$work/begun"
kill -KILL \$\$
END
chmod +x "$work/bin/mpirun"
PATH=$work/bin:$PATH train 0 soon_headless --nproc 2
says 1 "starting the 2 processes, restart 1 of 3"
same soon_headless "mpirun killed before it started anything"

# a process is killed while it and mpirun are meeting: mpirun names nobody and ends with 1
cat >"$work/bin/mpirun" <<END
#!/bin/sh
[ -e "$work/met" ] && exec $(command -v mpirun) "\$@"
touch "$work/met"
DTRAIN_FAULT=comm.begin:3! $(command -v mpirun) "\$@" 2>"$work/unnamed"
exit 1
END
PATH=$work/bin:$PATH train 0 unnamed_killed --nproc 2
says 1 "is gone; "
says 1 "starting the 2 processes, restart 1 of 3"
same unnamed_killed "a process is killed, and mpirun names nobody"

# by a fault of its own: where it happened is in what its log said last. A sanitizer would end it with another code
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}handle_segv=0
export ASAN_OPTIONS
lose SEGV crashed "rank 1 was ended by signal 11 (Segmentation fault)"
says 1+ "| crash: ended by SIGSEGV: invalid memory access"
if grep -q "define HAVE_EXECINFO_H 1" "$DT_BUILDDIR/config.h" && ! grep -q -e "-fsanitize" "$DT_BUILDDIR/config.status"; then
    says 1+ "| crash: backtrace, most recent call first:"
    cases=$((cases + 1))
    grep -q "    | .*dtrain([^)]*)\[0x" "$work/err" || fail "the calls that led to a crash are not told"
fi
lose STOP hung "timed out after 5 s waiting for rank 1 (process "
says 1 "was stopped by a signal (SIGSTOP); its last was collective"
cases=$((cases + 1))
DTRAIN_FAULT="comm.begin:60!" timeout -k 5 60 "$dtrain" run --config "$work/job.cfg" --run-dir "$work/often" -q --nproc 2 \
    --max-restarts 1 >"$work/out" 2>"$work/err"
code=$?
[ $code -eq 6 ] || fail "lost in every life: exit code $code, expected 6"
says 1 "1 restart did not help; continue with: $dtrain run --resume $work/often --nproc 2"

# --- refused once, by one voice ---
# other PART [options of rank 1]
other() {
    part=$1
    shift
    cases=$((cases + 1))
    OMPI_MCA_rmaps_base_oversubscribe=1 mpi 1 "$dtrain" run --config "$work/job.cfg" --run-dir "$work/bad" -q --max-steps 3 : \
        -n 1 "$dtrain" run --config "$work/job.cfg" --run-dir "$work/bad" -q --max-steps 3 "$@" >"$work/out" 2>"$work/err"
    code=$?
    [ $code -eq 2 ] || fail "rank 1 with $*: exit code $code, expected 2"
    says 1 "rank 1 was started with a different $part"
}
other configuration --set data.batch=32
other configuration --seed 7
other "number of --max-steps" --max-steps 4
other comm.shard_weights --set comm.shard_weights=2,1
other --run-dir --run-dir "$work/elsewhere"
other --phase --phase 1
cases=$((cases + 1))
[ ! -e "$work/elsewhere" ] || fail "a rank made a folder of its own"
# processors that round differently; a cluster is not here, but DTRAIN_CPU_ISA is
if DTRAIN_CPU_ISA=avx2 "$dtrain" list >/dev/null 2>&1; then
    cases=$((cases + 1))
    OMPI_MCA_rmaps_base_oversubscribe=1 mpi 1 env DTRAIN_CPU_ISA=avx2 "$dtrain" run --config "$work/job.cfg" \
        --run-dir "$work/bad" -q --max-steps 3 : -n 1 env DTRAIN_CPU_ISA=base "$dtrain" run --config "$work/job.cfg" \
        --run-dir "$work/bad" -q --max-steps 3 >"$work/out" 2>"$work/err"
    code=$?
    [ $code -eq 2 ] || fail "two arithmetic classes: exit code $code, expected 2"
    says 1 "rank 1 computes in the arithmetic class base+libm_fma, rank 0 fma: ranks that round differently diverge"
else
    echo "this processor has the base kernels alone: a run of two arithmetic classes is not tried"
fi
if DTRAIN_CPU_ISA=avx512 "$dtrain" list >/dev/null 2>&1; then
    cases=$((cases + 1))
    OMPI_MCA_rmaps_base_oversubscribe=1 mpi 1 env DTRAIN_CPU_ISA=avx2 "$dtrain" run --config "$work/job.cfg" \
        --run-dir "$work/unequal" -q : -n 1 env DTRAIN_CPU_ISA=avx512 "$dtrain" run --config "$work/job.cfg" \
        --run-dir "$work/unequal" -q >"$work/out" 2>"$work/err" || fail "AVX2 and AVX-512 together: exit code $?"
    same unequal "AVX2 and AVX-512 together"
else
    echo "this processor or build has no AVX-512: a run of two kinds of vectors is not tried"
fi
train 2 bad --nproc 2 --set data.batch=nonsense
says 1 "data.batch"
train 2 bad --nproc 2 --set comm.backend=sim --set comm.ranks=2
says 1 "2 processes were started to train together, but comm.backend = \"sim\""
train 2 bad --set comm.backend=mpi
says 1 "this process was started alone; start several with --nproc N"
train 5 bad --nproc 2 --set comm.backend=nccl
says 1 'comm.backend = "nccl" of phase 1 sums from GPU to GPU, but with engine.device = "cpu" several processes compute'
# what was trained by several over MPI goes on in one process, and is evaluated by one
train 0 told --nproc 2 --set comm.backend=mpi --phase 1
train 0 told --resume --phase 1
cases=$((cases + 1))
"$dtrain" eval --checkpoint "$work/told" -q >"$work/out" 2>"$work/err" || fail "one process evaluates what several trained"
train 2 bad --nproc 16
says 1 "16 ranks share data.shards = 8"
train 2 bad --hostfile "$work/hosts"
says 1 "--hostfile requires a run that dtrain starts on several processes"
train 2 bad --max-restarts 2 --nproc 1
says 1 "--max-restarts requires a run that dtrain starts on several processes"
DTRAIN_FAULT=processes.word:1 train 6 bad --nproc 2 --max-restarts 0
says 1+ "self-check: rank"
DTRAIN_FAULT=processes.shm:1 train 5 bad --nproc 2
says 1 "need 8.8 MB of it"
TMPDIR=/nonexistent train 5 bad --nproc 2
says 1 "TMPDIR is /nonexistent, where mpirun cannot keep its files"
OMPI_COMM_WORLD_SIZE=2 train 5 bad
says 1 "mpirun started 2 processes, but"
train 2 bad --nproc 100000
says 1 "at most 4096 processes"
train 2 bad --nproc 2 --max-restarts 1000001
says 1 "--max-restarts 1000001: at most 1000000"
train 2 bad --nproc 2 --max-restarts 99999999999999999999
says 1 "--max-restarts 99999999999999999999: expected a whole number"
train 2 bad --nproc 2 --max-restarts x
says 1 "--max-restarts x: expected a whole number"

# other verbs: rank 0 alone
cases=$((cases + 1))
OMPI_MCA_rmaps_base_oversubscribe=1 mpi 2 "$dtrain" list >"$work/out" 2>"$work/err"
n=$(grep -c "^phase .*phase1_world_model" "$work/out")
[ "$n" -eq 1 ] || fail "mpirun dtrain list: told $n times"

echo "# nobody" >"$work/hosts"
train 2 bad --nproc 2 --hostfile "$work/hosts"
says 1 "names no host"
printf 'localhost slots=2\r\n' >"$work/hosts"
train 2 bad --nproc 2 --hostfile "$work/hosts"
says 1 "line 1: it has Windows line endings"
while read -r line said; do
    printf 'localhost slots=2\n%s\n' "$line" | tr '_' ' ' >"$work/hosts"
    train 2 bad --nproc 2 --hostfile "$work/hosts"
    says 1 "$said"
done <<END
other_slots=-3 line 2: slots=-3: expected a whole number from 1 to 65536
other_slots=x line 2: slots=x: expected a whole number
slots=3 line 2: "slots=3" is not a host
other_@@ line 2: "@@" after the host
END
printf 'localhost slots=2\nlocal;host\n' >"$work/hosts"
train 2 bad --nproc 2 --hostfile "$work/hosts"
says 1 "line 2: character 0x3b"
# mpirun refuses, before it has started anything
printf 'localhost slots=1\n' >"$work/hosts"
train 5 bad --nproc 3 --hostfile "$work/hosts"
says 1 "mpirun started no process on the hosts of"
printf '#!/bin/sh\necho "no such luck" >&2\nexit 213\n' >"$work/bin/mpirun"
PATH=$work/bin:$PATH train 5 bad --nproc 2
says 1 "no such luck"
says 1 "mpirun ended with code 213 and started no process"
mkfifo "$work/pipe"
train 2 bad --nproc 2 --hostfile "$work/pipe"
says 1 "is not a regular file"
train 2 bad --nproc 2 --hostfile "$work/nosuch"
says 1 "--hostfile"
# the launcher's options, given again: the last one counts
train 0 again --nproc 3 --max-restarts 1 --nproc 2 --max-restarts=2 --phase 1
cases=$((cases + 1))
grep -q '"ranks":2' "$work/again/meta.json" || fail "--nproc given twice"
# a checkpoint that is named, and one that is damaged: on all processes alike
train 0 named --phase 1
train 0 named --nproc 2 --resume "$work/named/checkpoints/step-000000000004" --phase 1 --set phases.0.stop.steps=6
cases=$((cases + 1))
[ -d "$work/named/checkpoints/step-000000000006" ] || fail "a named checkpoint on 2 processes"
printf 'x' | dd of="$work/named/checkpoints/step-000000000006/optim.safetensors" bs=1 seek=200 conv=notrunc 2>/dev/null
limit=20
train 4 named --nproc 2 --resume "$work/named/checkpoints/step-000000000006" --phase 1 --set phases.0.stop.steps=8
limit=120
says 1+ "optim.safetensors is damaged between"
cases=$((cases + 1))
PATH=/nonexistent "$dtrain" run --config "$work/job.cfg" --nproc 2 2>"$work/err"
[ $? -eq 5 ] && grep -q "apt-get install openmpi-bin" "$work/err" || fail "no mpirun on the PATH is not said"
cases=$((cases + 1))
[ ! -e "$work/bad" ] || fail "a refused run left a folder"

finish
