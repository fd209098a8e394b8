#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dtrain bench gpu --predict: the work of the plan on GPUs that are not here, and what it refuses.
set -u
dtrain=${DT_BUILDDIR:?}/dtrain
. "${DT_SRCDIR:?}/tests/run/half.inc"
out=$(mktemp)
trap 'rm -f "$out" "$out.plan"' EXIT
cases=0 failed=0

bad() {
    echo "FAIL: $*"
    sed 's/^/    /' "$out" | head -n 20
    failed=$((failed + 1))
}
# expect CODE TEXT OPTIONS...
expect() {
    code=$1 text=$2
    shift 2
    cases=$((cases + 1))
    "$dtrain" bench "$@" >"$out" 2>&1 </dev/null
    got=$?
    [ "$got" -eq "$code" ] && grep -q -e "$text" "$out" || bad "$*: ended with $got, expected $code and \"$text\""
}
number() { # KEY FILE: the first one
    grep -o "\"$1\":[0-9.e+-]*" "$2" | head -n 1 | cut -d: -f2
}

expect 0 "^  lstm_bwd .* arithmetic$" gpu --predict H100 --plugin phase1_world_model
if has_bf16; then
    expect 0 "products in bf16: by calculation, no step is faster than" gpu --predict 4090 --plugin phase1_world_model \
        --set amp.enabled=true
else # the plan is one of this machine
    expect 5 "bf16 on the CPU needs" gpu --predict 4090 --plugin phase1_world_model --set amp.enabled=true
fi
expect 0 "^  a round is [0-9]* batches, each of [0-9.]* instances with [0-9.]* agents in the mean: [0-9.]* ms$" \
    gpu --predict H100 --plugin phase2_ppo --set env.id=cartpole
expect 2 "^error --predict 4091: expected one of H100, H200, A100, 4090$" gpu --predict 4091 --plugin phase1_world_model
expect 2 "^error --predict: expected one of H100, H200, A100, 4090$" gpu
expect 2 "^error --nproc is not an option of dtrain bench gpu; it belongs to comm" gpu --predict H100 --nproc 2
expect 2 "^error --predict is not an option of dtrain bench comm; it belongs to gpu" comm --predict H100

# the operations add up to the plan's work, and a GPU with more bandwidth is not slower
"$dtrain" run --plugin phase1_world_model --dry-run --json >"$out.plan" 2>/dev/null
for gpu in H100 H200; do
    cases=$((cases + 1))
    "$dtrain" bench gpu --predict $gpu --plugin phase1_world_model --json >"$out" 2>/dev/null
    eval "${gpu}_s=$(number step_s "$out")"
    awk -v plan="$(number flops "$out.plan")" -v all="$(number flops "$out")" -v json="$(cat "$out")" 'BEGIN {
        n = split(json, op, "{\"operation\":")
        for (i = 2; i <= n; i++) {
            split(op[i], f, "\"flops\":")
            sum += f[2] + 0
            own += op[i] ~ /^"(update|sums of shards)"/ ? f[2] + 0 : 0
        }
        exit !(plan > 1e9 && n > 10 && (sum - all) ^ 2 < (1e-9 * all) ^ 2 && (sum - own - plan) ^ 2 < (1e-9 * plan) ^ 2)
    }' || bad "$gpu: the operations do not add up to the plan"
done
# a round is its steps and one more, in as many batches each as are in flight
cases=$((cases + 1))
"$dtrain" bench gpu --predict H100 --plugin phase2_ppo --set env.id=cartpole \
    --set phase2_ppo.train_batch=128 --set phase2_ppo.fragment=16 --set env.instances=8 --set engine.in_flight=4 \
    --json >"$out" 2>/dev/null
awk -v n="$(number batches "$out")" -v batch="$(number batch_s "$out")" -v round="$(number round_s "$out")" \
    'BEGIN { exit !(n == 68 && batch > 0 && (round - n * batch) ^ 2 < (1e-9 * round) ^ 2) }' || bad "a round of acting"
cases=$((cases + 1))
awk -v a="${H100_s:?}" -v b="${H200_s:?}" 'BEGIN { exit !(a > 0 && b > 0 && b < a) }' || bad "H200 $H200_s s, H100 $H100_s s"
echo "$cases cases, $failed failed"
[ "$failed" -eq 0 ]
