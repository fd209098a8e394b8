#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The example examples/bars.c: `dtrain check` accepts its op and its model, 2 and 3 ranks and a resume end in the same
# bits, and it learns.
set -u

name=bars
. "${DT_SRCDIR:?}/tests/run/job.inc"
DTRAIN_PLUGIN_PATH=$DT_BUILDDIR/examples/.libs
export DTRAIN_PLUGIN_PATH
cat >"$work/job.cfg" <<'END'
bars_data = { samples = 512; };
data = { batch = 16; };
training = { epochs = 5; save_interval = 1; };
checkpoint = { every_seconds = 0; mirror_seconds = 0; keep_last = 9; };
metrics = { tensorboard = false; };
report = { enabled = false; };
phases = ( { plugin = "bars"; } );
END
cases=$((cases + 1))
"$dtrain" check bars >"$work/out" 2>"$work/err" || fail "dtrain check: exit code $?"
cases=$((cases + 1))
grep -qF 'PASS bars: op bars_swish: writes its outputs, its derivative is that of central differences' "$work/out" ||
    fail "check says nothing of the op"
train 0 whole --threads 1
enough_states 2
same_ranks --threads 1
train 0 cut --threads 1 --max-steps 5
train 0 cut --threads 1 --resume "$work/cut"
same cut "stopped after 5 steps"
cases=$((cases + 1))
rmse=$("$dtrain" eval --plugin bars --checkpoint "$work/whole" --json 2>"$work/err" | sed -n 's/.*"rmse":0\.\([0-9]\).*/\1/p')
[ "${rmse:-9}" -le 4 ] || fail "the root mean square of errors is 0.$rmse; 1 is known without learning"
finish
