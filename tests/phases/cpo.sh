#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# phase3_constrained by constrained policy optimisation, through the program: it finds the best policy under a limit of
# a problem whose answer is known; a stopped and resumed run has the bits of one that nobody stopped, threads and
# virtual ranks change none; a shared trunk is moved with the policy alone; and bad input is refused.
set -u

name=cpo
base="--plugin phase3_constrained -q --set phase3_constrained.algorithm=cpo --set training.eval_interval=0
      --set checkpoint.every_seconds=0"
# shellcheck source=tests/phases/rig.inc
. "${DT_SRCDIR:-.}/tests/phases/rig.inc"

bandit="--set env.id=env_constrained --set phase3_constrained.limits=price:0.6 --set env.instances=16
        --set phase3_constrained.fragment=16 --set phase3_constrained.train_batch=2048 --set data.batch=256
        --set phase3_constrained.sgd_epochs=1 --set phase3_constrained.iterations=40 --set training.learning_rate=1e-3
        --threads 1"
tiny="--set env.id=env_traffic --set env_traffic.episode_s=60 --set env_traffic.action_s=5 --set env.instances=4
      --set phase3_constrained.fragment=16 --set phase3_constrained.train_batch=64 --set data.batch=32
      --set phase3_constrained.sgd_epochs=2 --set phase3_constrained.iterations=4
      --set phase3_constrained.cg_iterations=4 --set training.warmup_epochs=0"
limits="--set phase3_constrained.limits=starvation:0,collisions:1000"

# between DIR NAME LOW HIGH: the mean of a metric over the last half of the rounds
between() {
    cases=$((cases + 1))
    sed -n "s|.*\"$2\":\([0-9.e+-]*\).*|\1|p" "$work/$1/metrics.jsonl" | tail -n 20 |
        awk -v low="$3" -v high="$4" '{ s += $1 } END { m = NR ? s / NR : -1; exit !(m >= low && m <= high) }' ||
        fail "$1: $2 is not in $3 .. $4"
}

# The best policy under a price of 0.6 earns 0.84, and a limit raised by one would be worth 0.4.
train bandit $bandit
between bandit charts/episodic_return 0.82 0.85
between bandit costs/price 0.58 0.605
between bandit multipliers/price 0.38 0.42
between bandit trust_region/kl 0 0.01
train loose $bandit --set phase3_constrained.limits=price:2
between loose charts/episodic_return 0.97 1
train shared $bandit --set controller_mlp.trunk=shared
between shared costs/price 0.57 0.61

train whole $tiny $limits --threads 1
train stopped $tiny $limits --threads 1 --max-steps 4
"$dtrain" --resume "$work/stopped" -q >/dev/null 2>"$work/err" || fail "resuming left with $?"
same stopped "stopped and resumed"
train threads $tiny $limits --threads 3
same threads "3 threads instead of 1"
train ranks $tiny $limits --set comm.backend=sim --set comm.ranks=2
same ranks "2 virtual ranks instead of 1"

refused 2 "phase3_constrained.target_kl" --set phase3_constrained.target_kl=0.01
refused 2 "phase3_constrained.kl_target" --set phase3_constrained.kl_target=0.01
refused 2 "max_kl" --set phase3_constrained.max_kl=0
refused 2 "backtrack" --set phase3_constrained.backtrack=1
refused 2 "policy_loss" $tiny $limits --set training.freeze=controller

echo "$cases cases, $failed failed"
[ "$failed" -eq 0 ]
