#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The example examples/dreamer.c on CartPole: returns rise from 9 to 61 after 10 rounds to 166 to 500 after 40 (seeds 1
# to 6). Threads, ranks, processes and a run killed with SIGKILL within an episode, whose latent state is carried
# on, end in the same bits. An exported policy has what it carries among its inputs and outputs.
set -u

name=dreamer
. "${DT_SRCDIR:?}/tests/run/job.inc"
DTRAIN_PLUGIN_PATH=$DT_BUILDDIR/examples/.libs
export DTRAIN_PLUGIN_PATH
cat >"$work/job.cfg" <<'END_OF_JOB'
env = { instances = 5; };
dreamer = { rounds = 6; steps = 12; updates = 4; window = 4; horizon = 4; };
training = { eval_interval = 0; save_interval = 2; };
evaluation = { seeds = "1,2,3,4,5"; episodes = 2; baselines = ""; };
checkpoint = { every_seconds = 0; mirror_seconds = 0; keep_last = 9; };
metrics = { tensorboard = false; };
report = { enabled = false; };
phases = ( { plugin = "dreamer"; } );
END_OF_JOB

checked dreamer
train 0 whole --threads 1
enough_states 3
train 0 threads --threads 2
same_all threads "2 threads"
same_ranks --threads 1
DTRAIN_FAULT=fs.rename:5!
export DTRAIN_FAULT
train 137 cut
unset DTRAIN_FAULT
train 0 cut --set comm.backend=sim --set comm.ranks=2 --resume "$work/cut"
same cut "killed, then continued on 2 virtual ranks"

exports whole
for text in '"name":"last_action"' '"name":"h"' '"carry/h"' '"carry/z"'; do
    cases=$((cases + 1))
    grep -qF "$text" "$work/whole.onnx.json" || fail "an exported policy has no $text"
done

train 0 learnt --set env.instances=8 --set dreamer.rounds=40 --set dreamer.steps=16 --set dreamer.updates=16 \
    --set dreamer.window=6 --set dreamer.horizon=12 --set training.eval_interval=40
returns learnt 100
finish
