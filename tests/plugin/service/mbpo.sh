#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The example examples/mbpo.c, a phase with two trainers: threads, ranks, processes and resumes end in the same bits,
# those of both trainers, also after a run was killed.
set -u

name=mbpo
. "${DT_SRCDIR:?}/tests/run/job.inc"
DTRAIN_PLUGIN_PATH=$DT_BUILDDIR/examples/.libs
export DTRAIN_PLUGIN_PATH
cat >"$work/job.cfg" <<'END'
models = { world = ""; };
env = { id = "pendulum"; instances = 3; };
controller_mlp = { hidden = 16; };
critic_mlp = { hidden = 16; };
mbpo_ensemble = { hidden = 16; };
mbpo = { iterations = 4; learning_starts = 24; members = 2; model_updates = 4; model_batch = 64;
         branches = 32; imagined_size = 150; updates = 4; batch = 32; };
data = { shards = 8; };
training = { eval_interval = 0; save_interval = 1; };
evaluation = { seeds = "1"; episodes = 1; baselines = ""; };
checkpoint = { every_seconds = 0; mirror_seconds = 0; keep_last = 9; };
metrics = { tensorboard = false; };
report = { enabled = false; };
phases = ( { plugin = "mbpo"; } );
END

checked mbpo
train 0 whole --threads 1
enough_states 4
same_ranks --threads 2
train 0 cut --max-steps 8
train 0 cut --resume "$work/cut" --threads 2
same cut "stopped after 8 steps"
# killed by SIGKILL once it has a checkpoint, it continues from the last one
cases=$((cases + 1))
"$dtrain" run --config "$work/job.cfg" --run-dir "$work/killed" -q --threads 1 >"$work/out" 2>"$work/err" &
pid=$!
await "$work/killed/checkpoints/LATEST"
kill -9 "$pid" 2>/dev/null
wait "$pid" 2>/dev/null
train 0 killed --resume "$work/killed" --threads 1
same killed "killed and resumed"
# what is exported acts without noise
cases=$((cases + 1))
"$dtrain" export --checkpoint "$work/whole" --out "$work/policy.safetensors" -q >"$work/out" 2>"$work/err" &&
    [ -s "$work/policy.safetensors" ] || fail "export: $(cat "$work/err")"
finish
