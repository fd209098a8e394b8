#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# One training as a Slurm job that survives its time limit and preemption: two minutes before the end, dtrain is asked
# to stop, saves, and leaves with 75; the job goes back into the queue and then goes on where it stopped, to the same
# bits. Options behind the script's name are dtrain's.
#
#     RUN=runs/mine sbatch slurm.sh --config hybrid.cfg
#
# Nothing but the lines below is Slurm's; set them as your site wants them (partition, account, --gres=gpu:1).
# One task: one process, whose threads take the job's cores. Several: docs/howto/processes.md.
#SBATCH --job-name=dtrain
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=8G
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=dtrain-%j.out
#SBATCH --signal=B:TERM@120
set -u

# Slurm signals this shell alone (B:), which hands the signal on and goes on waiting
child='' asked=''
trap 'asked=1; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null' TERM

# the same line in every life of the job: it begins where there is no run yet, and goes on where there is
set -- "$@" --run-dir "${RUN:-runs/job-$SLURM_JOB_ID}" --resume auto

dtrain "$@" -q --threads "${SLURM_CPUS_PER_TASK:-1}" &
child=$!
[ -z "$asked" ] || kill -TERM "$child" 2>/dev/null # it came before there was anybody to be told
wait "$child"
code=$?
while [ "$code" -gt 128 ] && kill -0 "$child" 2>/dev/null; do # a signal woke the shell, dtrain still saves
    wait "$child"
    code=$?
done
if [ "$code" -gt 128 ]; then # or has just ended: then its own code is still to be had
    wait "$child"
    last=$?
    [ "$last" -eq 127 ] || code=$last
fi

# 75: state saved, go on. 143: told to stop before there was anything to save. Every other code but 0 is a failure that
# another try would meet again.
if [ "$code" -eq 75 ] || { [ -n "$asked" ] && [ "$code" -eq 143 ]; }; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
