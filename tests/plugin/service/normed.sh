#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A policy with batch norm (normed.c) under PPO: `dtrain check` accepts it; threads, 2 and 3 ranks, 2 processes, a killed
# and a resumed run end in the same bits, with running statistics that moved; it is evaluated and exported.
set -u

name=normed
. "${DT_SRCDIR:?}/tests/run/job.inc"
DTRAIN_PLUGIN_PATH=$DT_BUILDDIR/tests/plugin/service/.libs
export DTRAIN_PLUGIN_PATH
cat >"$work/job.cfg" <<'END'
models = { world = ""; perception = ""; controller = "normed"; };
env = { id = "cartpole"; instances = 4; };
phase2_ppo = { iterations = 4; train_batch = 128; fragment = 16; sgd_epochs = 2; };
data = { batch = 64; shards = 4; };
training = { eval_interval = 0; save_interval = 1; };
evaluation = { seeds = "1"; episodes = 1; baselines = ""; };
checkpoint = { every_seconds = 0; mirror_seconds = 0; keep_last = 9; every_steps = 2; };
metrics = { tensorboard = false; };
report = { enabled = false; };
phases = ( { plugin = "phase2_ppo"; } );
END
cases=$((cases + 1))
"$dtrain" check normed >"$work/out" 2>"$work/err" || fail "dtrain check: exit code $?"
train 0 whole --threads 1
enough_states 2
train 0 threads --threads 3
same_all threads "3 threads"
same_ranks --threads 1
train 0 cut --max-steps 5
train 0 cut --resume "$work/cut"
same cut "stopped after 5 steps"

cases=$((cases + 1))
DTRAIN_FAULT=run.iterate:3! "$dtrain" run --config "$work/job.cfg" --run-dir "$work/killed" -q >"$work/out" 2>"$work/err"
code=$?
[ $code -eq 137 ] || fail "to be killed: exit code $code"
train 0 killed --resume "$work/killed"
same killed "killed in its third round"

cases=$((cases + 1))
"$dtrain" eval --checkpoint "$work/whole" --json >"$work/out" 2>"$work/err" || fail "dtrain eval: exit code $?"
exports whole
cases=$((cases + 1))
"$dtrain" export --checkpoint "$work/whole" --out "$work/policy.safetensors" -q >"$work/out" 2>"$work/err" ||
    fail "dtrain export: exit code $?"

# a phase that updates parameters itself
cases=$((cases + 1))
cat >"$work/own.cfg" <<'END'
models = { world = ""; perception = ""; controller = "normed"; };
env = { instances = 4; };
env_traffic = { episode_s = 10.0; action_s = 5.0; };
phase3_constrained = { iterations = 2; train_batch = 64; fragment = 8; algorithm = "cpo"; };
data = { batch = 32; shards = 4; };
phases = ( { plugin = "phase3_constrained"; } );
END
"$dtrain" run --config "$work/own.cfg" --run-dir "$work/own" -q >"$work/out" 2>"$work/err"
code=$?
[ $code -eq 2 ] && grep -q 'controller.seen.mean is a running statistic' "$work/err" ||
    fail "phase3_constrained: exit code $code"
finish
