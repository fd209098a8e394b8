#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Recorded scenes in addition to the experience of phase 3, through the program: the world model goes on learning from them and
# is measured as in phase 1, a stopped and resumed run has the bits of a whole one, threads and virtual ranks change
# none, recomputing activations does not either, and where there is nothing to learn it is said.
set -u

name=stored
small="--set risk_gnn.hidden=16 --set risk_gnn.heads=2 --set risk_gnn.layers=1 --set world_lstm.hidden=16
       --set world_lstm.head=16 --set checkpoint.every_seconds=0"
base="$small --plugin phase3_constrained -q --set env.id=env_traffic --set env.instances=4
      --set env_traffic.scenario=merge --set env_traffic.episode_s=60 --set env_traffic.action_s=1
      --set env_traffic.agents=6 --set env_traffic.penetration=0.3 --set phase3_constrained.iterations=3
      --set phase3_constrained.fragment=50 --set phase3_constrained.train_batch=200 --set data.batch=100
      --set phase3_constrained.sgd_epochs=2 --set training.warmup_epochs=0 --set models.shield=shield_barrier
      --set phase3_constrained.shield_safe_steps=3
      --set phase3_constrained.foresight=true --set models.perception=risk_gnn --set models.world=world_lstm
      --set phase3_constrained.stored_samples=24 --set training.eval_interval=0"
# shellcheck source=tests/phases/rig.inc
. "${DT_SRCDIR:-.}/tests/phases/rig.inc"

# last DIR NAME: the last value of a metric
last() {
    sed -n "s|.*\"$2\":\([-0-9.e+]*\).*|\1|p" "$work/$1/metrics.jsonl" | tail -n 1
}

"$dtrain" --plugin phase1_world_model -q $small --set data.batch=16 --set training.eval_interval=0 --max-steps 3 \
    --run-dir "$work/first" >/dev/null 2>"$work/err" || fail "phase 1 left with $?"

# the world model comes from phase 1 and goes on learning, perception stays
init="--init-from $work/first --set training.freeze_loaded=perception"
train whole $init --threads 1
[ -n "$(last whole losses/nll)" ] && [ -n "$(last whole losses/position)" ] || fail "no loss of the world model is told"
[ -z "$(last whole losses/risk)" ] || fail "perception is frozen, and a loss of it alone is computed"
train without $init --set phase3_constrained.stored_samples=0
[ "$(state_hash "$work/without")" != "$(state_hash "$work/whole")" ] || fail "stored data changes nothing"
train part $init --max-steps 2
"$dtrain" --resume "$work/part" -q >/dev/null 2>"$work/err" || fail "resuming left with $?"
same part "stopped and resumed"
train threads $init --threads 3
same threads "3 threads instead of 1"
train ranks $init --set comm.backend=sim --set comm.ranks=2
same ranks "2 virtual ranks instead of 1"
train again $init --set engine.recompute=true --set engine.recompute_roles=world
same again "activations of the world model recomputed"

# measured as in phase 1; a world model that nobody foresees by learns all the same
train measured $init --set training.eval_interval=3 --set phase3_constrained.foresight=false --set evaluation.episodes=1
cases=$((cases + 1))
[ -n "$(last measured losses/nll)" ] || fail "without foresight the world model does not learn"
grep -q 'rmse_m' "$work/measured/metrics.jsonl" ||
    fail "predictions are not measured"
grep -q 'return/mean' "$work/measured/metrics.jsonl" || fail "the policy is not measured"

# the barrier learns from recorded vehicles, in addition to a world model or alone
cases=$((cases + 1))
for what in accuracy accuracy_safe violation_rate unsafe; do
    [ -n "$(last whole barrier/stored_$what)" ] || fail "nothing is told of the barrier's $what on stored data"
done
alone="--set models.perception= --set phase3_constrained.foresight=false"
train alone $alone --threads 1
[ -n "$(last alone barrier/stored_accuracy)" ] || fail "without a world model the barrier learns nothing from recordings"
[ -z "$(last alone losses/nll)" ] || fail "there is no world model, but a loss of it"
train alone3 $alone --threads 3
[ "$(state_hash "$work/alone3")" = "$(state_hash "$work/alone")" ] || fail "the barrier alone on 3 threads: other bits"
train online $alone --set phase3_constrained.stored_samples=0
[ "$(state_hash "$work/online")" != "$(state_hash "$work/alone")" ] || fail "the barrier is not trained on recordings"

# the recording's scenes are too short to say of any vehicle that 10 actions went well
train unknown $alone --set phase3_constrained.shield_safe_steps=10 --threads 1
grep -q "no recorded vehicle of this round is known to be safe.* 11 actions of 1 s, 11 s in sight" \
    "$work/unknown/train.log" || fail "nobody says that nothing is learnt"

off="--set phase3_constrained.stored_barrier=false"
refused 2 "frozen" --init-from "$work/first" $off
refused 2 "stored_samples models.world" $alone $off
refused 2 "stored_samples models.world" $alone \
    --set phase3_constrained.limits=conflicting_greens:1
refused 2 "0.25 1.25 5" $alone --set env_traffic.action_s=0.25 \
    --set env_traffic.dt_s=0.05
refused 2 '"cpo"' --init-from "$work/first" $off \
    --set training.freeze_loaded=perception --set phase3_constrained.algorithm=cpo
refused 2 "stored_coef 0" --set phase3_constrained.stored_coef=0
refused 4 "no-such-store" --set data.store=./no-such-store

echo "$cases cases, $failed failed"
[ "$failed" -eq 0 ]
