#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Under Slurm itself: its controller and two nodes of it run on this machine, out of a temporary folder, with keys and
# ports of their own. docs/slurm.sh trains on two processes, is put back into the queue in the middle, comes to its time
# limit, and ends in the bits of the undisturbed run; srun --mpi=pmix, too; srun without it is refused.
# By root; takes some minutes; `make check-slurm`.
set -u
. "${DT_SRCDIR:?}/tests/mpi_job.sh"
unset OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_hwloc_base_binding_policy # of the launcher, which knows
for tool in munged slurmctld slurmd sbatch srun scontrol bash; do
    command -v $tool >/dev/null || { echo "skipped: no $tool here (Debian: apt-get install slurm-wlm munge)"; exit 77; }
done
if [ "$(id -u)" -ne 0 ]; then
    echo "skipped: slurmd wants root"
    exit 77
fi
name=slurm
. "$DT_SRCDIR/tests/run/job.inc"
dtrain=$(cd "$DT_BUILDDIR" && pwd)/dtrain
work=$(cd "$work" && pwd)
# a folder that munged takes: nobody else may write above it
base=$(mktemp -d /run/dtrain-slurm-XXXXXX) || exit 1
chmod 755 "$base"
started=
clear_away() {
    # shellcheck disable=SC2086 # several
    [ -z "$started" ] || kill $started 2>/dev/null
    wait
    rm -rf "$base" "$work"
}
trap clear_away EXIT
trap 'exit 1' INT TERM

# --- Slurm ---
host=$(hostname -s)
port=$((20000 + $$ % 20000))
mkdir "$base/state"
dd if=/dev/urandom of="$base/munge.key" bs=1024 count=1 2>/dev/null
chmod 600 "$base/munge.key"
cat >"$base/slurm.conf" <<END
ClusterName=dtrain
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$base/munge.sock,cred_expire=5
StateSaveLocation=$base/state
SlurmctldPidFile=$base/slurmctld.pid
SlurmctldLogFile=$base/slurmctld.log
SlurmdPidFile=$base/slurmd.%n.pid
SlurmdSpoolDir=$base/spool.%n
SlurmdLogFile=$base/slurmd.%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=2,bf_interval=2
ReturnToService=2
KillWait=20
MpiDefault=none
NodeName=node1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=4
NodeName=node2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=4
PartitionName=all Nodes=node1,node2 Default=YES MaxTime=INFINITE State=UP
END
SLURM_CONF=$base/slurm.conf
export SLURM_CONF
daemon() { # in the foreground of the background, so that its process is known
    "$@" >>"$base/out" 2>&1 &
    started="$started $!"
}
daemon munged --foreground --force --key-file="$base/munge.key" --socket="$base/munge.sock" \
    --pid-file="$base/munge.pid" --log-file="$base/munge.log" --seed-file="$base/munge.seed"
await "$base/munge.sock"
daemon slurmctld -D
mkdir "$base/spool.node1" "$base/spool.node2"
daemon slurmd -D -N node1
daemon slurmd -D -N node2
tries=0
until [ "$(sinfo -h -N -o %t 2>/dev/null | grep -c idle)" -eq 2 ] || [ $tries -gt 100 ]; do
    sleep 0.2
    tries=$((tries + 1))
done
if [ $tries -gt 100 ]; then
    echo "skipped: Slurm does not start here: $(tail -n 3 "$base/out" "$base"/*.log 2>/dev/null | tail -n 12)"
    exit 77
fi

# --- a training of a minute and a half ---
training='epochs = 100000;'
save='every_steps = 50; keep_last = 3;'
job <<'END'
phases = ( { plugin = "phase1_world_model"; } );
END
limit=0
began=$(date +%s%N)
train 0 slow --max-steps 400
steps=$((400 * 90000 / (($(date +%s%N) - began) / 1000000)))
echo "$steps steps"
train_whole() {
    "$dtrain" run --config "$work/job.cfg" --run-dir "$work/whole" -q --max-steps "$steps" >"$work/whole.out" 2>&1
}
train_whole &
whole=$!

# --- docs/slurm.sh: back into the queue, a time limit, the end ---
field() { # JOB NAME
    scontrol show job "$1" | sed -n "s/.*$2=\([^ ]*\).*/\1/p" | head -n 1
}
# until_is JOB NAME VALUE SECONDS
until_is() {
    tries=0
    until [ "$(field "$1" "$2")" = "$3" ] || [ $tries -gt "$4" ]; do
        sleep 1
        tries=$((tries + 1))
    done
    cases=$((cases + 1))
    [ $tries -le "$4" ] || fail "job $1: $2 is $(field "$1" "$2"), expected $3 after at most $4 s"
}
PATH=$(dirname "$dtrain"):$PATH
export PATH
: >"$work/err"
# a limit of a minute, of which the signal may take half: so 15 s after the start at the earliest
id=$(RUN=$work/run sbatch --parsable --time=1 --signal=B:TERM@15 --cpus-per-task=1 --ntasks=2 --mem=0 --output="$work/err" \
    "$DT_SRCDIR/docs/slurm.sh" --config "$work/job.cfg" --nproc 2 --max-steps "$steps")
until_is "$id" JobState RUNNING 60
await "$work/run/checkpoints/step-000000000100"
scontrol requeue "$id"
until_is "$id" Restarts 1 60
until_is "$id" Restarts 2 150
tries=0
until [ "$(field "$id" JobState)" = COMPLETED ] || [ "$(field "$id" JobState)" = FAILED ] || [ $tries -gt 400 ]; do
    sleep 1
    tries=$((tries + 1))
done
cases=$((cases + 1))
[ "$(field "$id" JobState)" = COMPLETED ] || fail "the job is $(field "$id" JobState), expected COMPLETED"
echo "docs/slurm.sh: $(field "$id" Restarts) times put back, $(grep -c "resuming" "$work/run/train.log") times gone on"
cases=$((cases + 1))
[ "$(grep -c "resuming .* at step" "$work/run/train.log")" -ge 2 ] || fail "a life of the job did not go on"
cases=$((cases + 1))
wait $whole || fail "the undisturbed run: $(tail -n 3 "$work/whole.out")"
same run "docs/slurm.sh"

# --- srun ---
cases=$((cases + 1))
unset OMPI_MCA_btl OMPI_MCA_pml
srun --mpi=pmix -N1 -n2 --time=5 "$dtrain" run --config "$work/job.cfg" --run-dir "$work/srun" -q --max-steps 400 \
    >"$work/out" 2>"$work/err" || fail "srun --mpi=pmix: code $?"
cases=$((cases + 1))
[ "$(states srun)" = "$(states slow)" ] || fail "srun --mpi=pmix: other bits than those of one process"
cases=$((cases + 1))
srun --mpi=none -N1 -n2 --time=5 "$dtrain" run --config "$work/job.cfg" --run-dir "$work/none" -q --max-steps 400 \
    >"$work/out" 2>"$work/err"
code=$?
[ $code -eq 5 ] || fail "srun --mpi=none: code $code, expected 5"
says 1+ "srun started 2 processes, but they do not see each other"
finish
