#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Event files of real runs, decoded by check_events.py: of two phases, over a resume that undoes steps, and switched
# off.
set -u

. "${DT_SRCDIR:-.}/tests/check.inc"
check=${DT_SRCDIR:-.}/tests/telemetry/metrics/check_events.py
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }
tiny="--set risk_gnn.hidden=8 --set risk_gnn.heads=1 --set risk_gnn.layers=1 --set world_lstm.hidden=8
      --set world_lstm.layers=1 --set data.batch=16 --set checkpoint.every_seconds=0 --threads 1 -q"

# a run of two phases, whole
cat >"$work/two.cfg" <<'END'
training = { epochs = 1; };
phases = ( { plugin = "phase1_world_model"; }, { plugin = "phase1_world_model"; init = "previous"; } );
END
sed 's/{ plugin = "phase1_world_model"; init = "previous"; }/{ plugin = "phase2_ppo"; init = "random"; stop = { iterations = 2; }; env = { id = "cartpole"; }; }/' \
    "$work/two.cfg" >"$work/mixed.cfg"
"$dtrain" --config "$work/mixed.cfg" $tiny --run-dir "$work/two" 2>"$work/err" || fail "two phases: $(cat "$work/err")"
python3 "$check" "$work/two" success success || fail "two phases"

# killed at some step after the last checkpoint: the resume does steps again
"$dtrain" --plugin phase1_world_model $tiny --set training.epochs=100000 --set checkpoint.every_steps=4 \
    --run-dir "$work/cut" 2>"$work/err" &
pid=$!
tries=0
until [ "$(sed -n '$=' "$work/cut/metrics.jsonl" 2>/dev/null)0" -ge 90 ] || [ $tries -gt 400 ]; do
    tries=$((tries + 1))
    sleep 0.05
done
kill -TERM $pid
wait $pid
[ $? -eq 75 ] || fail "stopped: $(cat "$work/err")"
step=$("$dtrain" ckpt list "$work/cut" | awk 'NR == 1 { print $1 }')
"$dtrain" run --resume "$work/cut/checkpoints/step-$(printf %012d "$step")" --max-steps $((step + 3)) -q 2>"$work/err" ||
    fail "resumed at $step: $(cat "$work/err")"
set -- "$work/cut/tensorboard/1-phase1_world_model"/events.out.tfevents.*
[ $# -eq 2 ] || fail "a file of each process: $*"
python3 "$check" "$work/cut" none || fail "resumed"

# a session ends once, at the real end: not where a failure is retried, nor where a resume goes on after one
ppo="--plugin phase2_ppo --set env.id=cartpole --set phase2_ppo.iterations=4 --set checkpoint.every_steps=1 --threads 1 -q"
DTRAIN_FAULT=run.iterate:3 "$dtrain" $ppo --set training.retries=1 --run-dir "$work/again" 2>"$work/err" ||
    fail "retried: $(cat "$work/err")"
python3 "$check" "$work/again" success || fail "retried"
DTRAIN_FAULT=run.iterate:3 "$dtrain" $ppo --set training.retries=0 --run-dir "$work/failed" 2>"$work/err" &&
    fail "a fault, and no failure"
python3 "$check" "$work/failed" failure || fail "failed"
"$dtrain" run --resume "$work/failed" -q 2>"$work/err" || fail "after a failure: $(cat "$work/err")"
python3 "$check" "$work/failed" success || fail "failed, then resumed"

# none wanted, none to be had: training does not mind
"$dtrain" --plugin phase1_world_model $tiny --max-steps 2 --set metrics.tensorboard=false --run-dir "$work/off" 2>"$work/err" ||
    fail "off: $(cat "$work/err")"
[ ! -e "$work/off/tensorboard" ] || fail "metrics.tensorboard=false"
mkdir "$work/file"
: >"$work/file/tensorboard"
"$dtrain" --plugin phase1_world_model $tiny --max-steps 2 --run-dir "$work/file" 2>"$work/err" || fail "no place: $(cat "$work/err")"
grep -q "no files for TensorBoard: .*tensorboard" "$work/err" || fail "no place, and nothing said: $(cat "$work/err")"
[ $failed -eq 0 ]
