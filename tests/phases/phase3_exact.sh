#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# phase3_constrained finds the optimum of a bandit under a limit (env_constrained: 0.84 at a cost of 0.6), whatever its
# algorithm. The tolerance is that of 20000 pulls of the policy that a short training leaves; bench/phase3_exact
# measures better, on more problems and seeds.
set -u

dtrain=${DT_BUILDDIR:-.}/dtrain
work=$(mktemp -d ./test-exact-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
failed=0
cases=0

set_of="--plugin phase3_constrained -q --threads 1 --set env.id=env_constrained --set env.instances=20
        --set phase3_constrained.limits=price:0.6 --set phase3_constrained.fragment=400
        --set phase3_constrained.train_batch=8000 --set data.batch=4000 --set phase3_constrained.sgd_epochs=5
        --set phase3_constrained.entropy_coef=0 --set phase3_constrained.entropy_coef_end=0
        --set phase3_constrained.on_violations=none --set controller_mlp.layers=0 --set training.learning_rate=3e-2
        --set training.weight_decay=0 --set training.warmup_epochs=0 --set training.eta_min=0
        --set training.eval_interval=0 --set checkpoint.every_seconds=0 --set evaluation.greedy=false"

fail() {
    echo "FAIL: $*"
    tail -n 5 "$work/err" | sed 's/^/    /'
    failed=$((failed + 1))
}

# near WHAT VALUE FROM TO
near() {
    cases=$((cases + 1))
    awk -v x="$2" -v from="$3" -v to="$4" 'BEGIN { exit !(x != "" && x >= from && x <= to) }' ||
        fail "$1 is '$2', expected $3 to $4"
}

# mean NAME: of the evaluation
mean() {
    sed -n "s|.*\"$1\":{\"mean\":\([0-9.e+-]*\).*|\1|p" "$work/json"
}

for algorithm in pid_lagrangian penalty log_barrier cpo; do
    # shellcheck disable=SC2086
    "$dtrain" $set_of --set phase3_constrained.algorithm=$algorithm --run-dir "$work/$algorithm" >/dev/null \
        2>"$work/err" || fail "$algorithm left with $?"
    # shellcheck disable=SC2086
    "$dtrain" eval $set_of --checkpoint "$work/$algorithm" --json --episodes 20000 --seeds 7 >"$work/json" \
        2>"$work/err" || fail "evaluating $algorithm left with $?"
    near "$algorithm: value" "$(mean return)" 0.83 0.85
    near "$algorithm: cost" "$(mean price)" 0.588 0.612
done
last=$(sed -n 's|.*"multipliers/price":\([0-9.e+-]*\).*|\1|p' "$work/pid_lagrangian/metrics.jsonl" | tail -n 1)
near "pid_lagrangian: multiplier" "$last" 0.38 0.42

echo "$cases cases, $failed failed"
[ "$failed" -eq 0 ]
