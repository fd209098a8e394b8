#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# shield_barrier through the program: random drivers that collide at once do not behind it, signals that starve a
# street do not either, a stopped and resumed run has the bits of a whole one, and it refuses worlds it does not know.
set -u

name=shield
base="--plugin phase2_ppo -q --set env.id=env_traffic --set env.instances=4 --set env_traffic.penetration=0.5
      --set env_traffic.agents=11 --set env_traffic.episode_s=200 --set env_traffic.low_mps2=-9
      --set evaluation.greedy=false --set phase2_ppo.iterations=4 --set phase2_ppo.fragment=32
      --set phase2_ppo.train_batch=256 --set data.batch=64 --set training.eval_interval=0
      --set checkpoint.every_seconds=0"
# shellcheck source=tests/phases/rig.inc
. "${DT_SRCDIR:-.}/tests/phases/rig.inc"

# mean GROUP NAME: of a table in JSON on standard input
mean() {
    sed -n "s/.*\"$1\":{.*\"$2\":{\"mean\":\\([0-9.e+-]*\\),.*/\\1/p"
}

# is TEXT: an expression of numbers holds
is() {
    cases=$((cases + 1))
    awk "BEGIN { exit !($1) }" || fail "$2: $1"
}

drive() { # more
    "$dtrain" eval $base --checkpoint "$work/whole" --episodes 4 --seeds 7,8 --json "$@" 2>"$work/err" ||
        fail "eval left with $?"
}

"$dtrain" run $base --set models.shield=shield_barrier --run-dir "$work/whole" >/dev/null 2>"$work/err" ||
    fail "training left with $?"
guarded=$(drive)
bare=$(drive --set models.shield=)
is "$(echo "$guarded" | mean costs collisions) == 0" "collisions behind the shield"
is "$(echo "$guarded" | sed -n 's/.*"interventions":\([0-9.e+]*\).*/\1/p') > 100" "interventions"
is "$(echo "$bare" | mean costs collisions) > 0.5" "collisions without it"

# a policy that learnt without a shield can be put behind one
"$dtrain" run $base --set phase2_ppo.iterations=1 --run-dir "$work/bare" >/dev/null 2>"$work/err" || fail "no shield: $?"
put=$("$dtrain" eval --checkpoint "$work/bare" --seeds 7 --json --set models.shield=shield_barrier 2>"$work/err") ||
    fail "a shield before weights without one: $?"
is "$(echo "$put" | mean costs collisions) == 0" "collisions behind a shield that came later"
grep -q "shield     starts from its initial weights" "$work/err" || fail "nothing was said of the shield's weights"

"$dtrain" run $base --set models.shield=shield_barrier --run-dir "$work/part" --max-steps 10 >/dev/null 2>"$work/err"
"$dtrain" --resume "$work/part" -q >/dev/null 2>"$work/err" || fail "resuming left with $?"
[ "$(state_hash "$work/part")" = "$(state_hash "$work/whole")" ] || fail "stopped and resumed: other bits"
cases=$((cases + 1))

# phase 3 trains the barrier of a shield that comes from phase 2, and measures it before it learns
learn() { # DIR [options]
    dir=$1
    shift
    "$dtrain" run --plugin phase3_constrained -q --init-from "$work/whole" --set env.id=env_traffic \
        --set env.instances=4 --set env_traffic.penetration=0.5 --set env_traffic.agents=11 \
        --set env_traffic.episode_s=200 --set env_traffic.low_mps2=-9 --set env_traffic.ttc_s=3 \
        --set models.shield=shield_barrier --set phase3_constrained.limits=time_to_collision:5 \
        --set phase3_constrained.iterations=30 --set phase3_constrained.fragment=64 \
        --set phase3_constrained.train_batch=512 --set phase3_constrained.sgd_epochs=4 --set data.batch=64 \
        --set training.learning_rate=2e-3 --set training.warmup_epochs=0 --set training.eval_interval=0 \
        --set phase3_constrained.shield_unsafe_steps=1 \
        --set phase3_constrained.shield_safe_steps=5 --set training.freeze=controller \
        --set training.weight_decay=0 --set checkpoint.every_seconds=0 \
        --set phase3_constrained.on_violations=none --run-dir "$work/$dir" "$@" >/dev/null 2>"$work/err" ||
        fail "learning the barrier left with $?"
}

# metric DIR NAME: all values of it
metric() {
    sed -n "s|.*\"$2\":\([0-9.e+-]*\).*|\1|p" "$work/$1/metrics.jsonl"
}

same() { # DIR WHAT
    cases=$((cases + 1))
    [ -n "$(state_hash "$work/$1")" ] || fail "$2: no checkpoint"
    [ "$(state_hash "$work/$1")" = "$(state_hash "$work/learnt")" ] || fail "$2: other bits"
}

learn learnt --threads 1
is "$(metric learnt barrier/accuracy_unsafe | head -n 1) < 0.2" "unsafe states told before learning"
is "$(metric learnt barrier/accuracy_unsafe | tail -n 1) > 0.65" "unsafe states told after learning"
is "$(metric learnt barrier/accuracy | tail -n 1) > 0.82" "states told after learning"
is "$(metric learnt barrier/violation_rate | tail -n 1) < 0.25" "steps that break the barrier's condition"
learn halted --threads 1 --max-steps 64
"$dtrain" --resume "$work/halted" -q >/dev/null 2>"$work/err" || fail "resuming the barrier left with $?"
same halted "a barrier stopped and resumed"
learn threads --threads 3
same threads "a barrier on 3 threads"
learn ranks --set comm.backend=sim --set comm.ranks=2
same ranks "a barrier on 2 virtual ranks"
learn without --set phase3_constrained.learn_shield=false --set training.freeze= --max-steps 16
is "$(metric without barrier/accuracy | wc -l) == 0" "a barrier that was not to be learnt"

refuse() { # PIECE [options]
    piece=$1
    shift
    cases=$((cases + 1))
    "$dtrain" run --plugin phase3_constrained -q --set env.id=env_traffic --set models.shield=shield_barrier \
        --run-dir "$work/refused" "$@" >/dev/null 2>"$work/err"
    [ $? -eq 2 ] || fail "$*: not refused"
    names "$work/err" "$piece"
}
refuse "phase3_constrained.shield_costs \"speeding\"" --set phase3_constrained.shield_costs=collisions,speeding
refuse "shield_safe_steps 1 shield_unsafe_steps 2" --set phase3_constrained.shield_safe_steps=1

grid() { # more
    "$dtrain" eval --plugin phase2_ppo -q --env env_traffic --set env_traffic.scenario=grid \
        --set env_traffic.control=signals --set env_traffic.episode_s=3600 --set models.controller=controller_greedy \
        --set controller_greedy.patience_s=0 --seeds 1 --episodes 1 --json "$@" 2>"$work/err" || fail "eval left with $?"
}
is "$(grid | mean costs starvation) > 0" "starvation by the greedy rule"
is "$(grid --set models.shield=shield_barrier | mean costs starvation) == 0" "starvation behind the shield"

"$dtrain" run --plugin phase2_ppo -q --set env.id=cartpole --set models.shield=shield_barrier --run-dir "$work/no" \
    >/dev/null 2>"$work/err"
[ $? -eq 2 ] || fail "cartpole has a shield"
names "$work/err" "shield_barrier"
cases=$((cases + 1))

echo "$cases cases, $failed failed"
[ "$failed" -eq 0 ]
