#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The example examples/qmix.c in the two-step game: the mixing network reaches the optimum of 8, a sum and independent
# agents the 7 of the other game (Rashid et al. 2018, section 5). Threads, ranks, processes and a run killed with SIGKILL
# end in the same bits; an exported policy acts without exploration.
set -u

name=qmix
. "${DT_SRCDIR:?}/tests/run/job.inc"
DTRAIN_PLUGIN_PATH=$DT_BUILDDIR/examples/.libs
export DTRAIN_PLUGIN_PATH
cat >"$work/job.cfg" <<'END_OF_JOB'
training = { eval_interval = 40; save_interval = 10; };
evaluation = { seeds = "1"; episodes = 1; baselines = ""; };
checkpoint = { every_seconds = 0; mirror_seconds = 0; keep_last = 9; };
metrics = { tensorboard = false; };
report = { enabled = false; };
qmix = { rounds = 40; };
phases = ( { plugin = "qmix"; } );
END_OF_JOB

payoff() { # DIR WANT: of the last evaluation
    cases=$((cases + 1))
    got=$(tail -n 1 "$work/$1/metrics.jsonl" | grep -o '"eval/metrics/payoff/mean":[0-9.]*')
    [ "${got#*:}" = "$2" ] || fail "$1: a game pays ${got#*:}, expected $2"
}

checked qmix
train 0 whole --threads 1
enough_states 3
payoff whole 8
for mixing in sum none; do
    train 0 $mixing --set qmix.mixing=$mixing
    payoff $mixing 7
done
train 0 threads --threads 2
same_all threads "2 threads"
same_ranks --threads 1
DTRAIN_FAULT=fs.rename:5!
export DTRAIN_FAULT
train 137 cut
unset DTRAIN_FAULT
train 0 cut --resume "$work/cut"
same cut "killed"
exports whole
finish
