#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# --profile-steps: spans of real runs, read by check_trace.py; the recorded run has the bits of one that is not.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
check=${DT_SRCDIR:-.}/tests/run/check_trace.py
command -v python3 >/dev/null 2>&1 || { echo "no python3"; exit 77; }
work=$(mktemp -d ./test-trace-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
common="--set checkpoint.every_seconds=0 --set report.enabled=false --threads 2 -q"
one="--plugin phase1_world_model $common --set risk_gnn.hidden=8 --set risk_gnn.heads=1 --set risk_gnn.layers=1
     --set world_lstm.hidden=8 --set world_lstm.layers=1 --set data.batch=16 --set checkpoint.every_steps=3"

fail() {
    echo "FAIL: $*"
    failed=$((failed + 1))
}
state_hash() {
    "$dtrain" ckpt inspect "$1" --json | sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p'
}

"$dtrain" $one --run-dir "$work/one" --max-steps 6 --profile-steps 2:4 2>"$work/err" || fail "phase 1: $(cat "$work/err")"
python3 "$check" "$work/one/trace.json" run/iteration run/checkpoint "step/training step" step/leaf step/leaves graph/forward graph/backward \
    "data/data wait" "data/read shard" step/reduce "step/sum gradients" step/optimizer step/update op/linear || fail "phase 1"
[ "$(grep -c '"name":"training step"' "$work/one/trace.json")" -eq 3 ] || fail "steps 2 to 4: $(grep '"name":"training step"' "$work/one/trace.json")"
grep -q '"name":"training step".*"args":{"step":2}' "$work/one/trace.json" || fail "step 2 is not there"
grep -q "trace of [0-9]* spans: $work/one/trace.json" "$work/one/train.log" || fail "it is not told"
"$dtrain" $one --run-dir "$work/plain" --max-steps 6 2>"$work/err" || fail "not recorded: $(cat "$work/err")"
[ "$(state_hash "$work/plain")" = "$(state_hash "$work/one")" ] || fail "the trace changes bits"
[ ! -e "$work/plain/trace.json" ] || fail "a trace nobody asked for"

"$dtrain" --plugin phase2_ppo $common --set env.id=cartpole --set env.instances=4 --set phase2_ppo.train_batch=64 --set phase2_ppo.fragment=16 \
    --set phase2_ppo.iterations=3 --set phase2_ppo.sgd_epochs=2 --set data.batch=32 --set training.eval_interval=1 \
    --run-dir "$work/two" --profile-steps 5 2>"$work/err" || fail "phase 2: $(cat "$work/err")"
python3 "$check" "$work/two/trace.json" rollout/collect rollout/advantages policy/act policy/policy env/environments \
    "env/wait for environments" run/evaluation "step/training step" graph/backward || fail "phase 2"
"$dtrain" --plugin phase1_world_model $one --set comm.backend=sim --set comm.ranks=2 --run-dir "$work/ranks" --max-steps 2 \
    --profile-steps 1:2 2>"$work/err" || fail "two ranks: $(cat "$work/err")"
python3 "$check" "$work/ranks/trace.json" "step/training step" || fail "two ranks"
grep -q '"name":"rank 1"' "$work/ranks/trace.json" || fail "the second rank's thread"

# what cannot be
for bad in 0:3 5:2 x 3: -1 1:2:3; do
    "$dtrain" $one --run-dir "$work/bad" --profile-steps=$bad >/dev/null 2>"$work/err"
    [ $? -eq 2 ] && grep -q "profile-steps $bad: expected FIRST:LAST" "$work/err" || fail "--profile-steps $bad: $(cat "$work/err")"
done
"$dtrain" $one --run-dir "$work/late" --max-steps 2 --profile-steps 50:60 2>"$work/err" || fail "too late: $(cat "$work/err")"
grep -q "no trace: the run ended before step 50" "$work/err" || fail "it is not said: $(cat "$work/err")"
"$dtrain" $one --run-dir "$work/cut" --max-steps 3 --profile-steps 2:60 2>"$work/err" || fail "cut: $(cat "$work/err")"
python3 "$check" "$work/cut/trace.json" "step/training step" || fail "a run that ends within what is recorded"
[ $failed -eq 0 ]
