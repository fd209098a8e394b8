#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Phases 1, 2 and 3 with tiny models on the emulated GPU, stored in bf16 and in fp16: losses are those of fp32 within
# what their precision allows, a step moves about half the bytes, and the bits depend neither on how many shards a
# launch holds nor on an interruption. What fp16 cannot hold is skipped, and the loss scale falls.
set -u

build=${DT_BUILDDIR:-.}
work=$(mktemp -d ./test-cuda-half-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
DTRAIN_PLUGIN_PATH=$build/tests/engine/cuda/emulated:$build/phases/.libs:$build/models/.libs:$build/plugins/.libs
export DTRAIN_PLUGIN_PATH
unset DT_EMULATED_SEED || true

fail() {
    echo "FAIL: $*"
    exit 1
}

# train PHASE DIR arguments...: a little of a phase
train() {
    phase=$1
    dir=$2
    shift 2
    case $phase in
        phase1_world_model) set -- --max-steps 4 --set risk_gnn.hidden=8 --set risk_gnn.heads=2 --set risk_gnn.layers=1 \
            --set world_lstm.hidden=8 --set world_lstm.layers=1 --set data.batch=8 --set data.shards=4 \
            --set training.eval_interval=0 "$@" ;;
        *) set -- --set env.id=env_traffic --set env_traffic.control=signals --set env_traffic.scenario=intersection \
            --set env_traffic.episode_s=60 --set env.instances=2 --set evaluation.baselines= --set evaluation.seeds=1 \
            --set data.batch=8 --set data.shards=2 --set "$phase.fragment=8" --set "$phase.train_batch=16" \
            --set "$phase.iterations=2" "$@" ;;
    esac
    "$build/dtrain" --plugin "$phase" --device cuda --threads 1 --run-dir "$work/$dir" -q "$@" >"$work/said" 2>&1 || {
        cat "$work/said"
        fail "$phase $*"
    }
}

losses() { # DIR
    sed -n 's/.*"loss":\([-0-9.e+]*\).*/\1/p' "$work/$1/metrics.jsonl"
}

state_hash() { # DIR
    "$build/dtrain" ckpt inspect "$work/$1" --json | sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p'
}

same_state() { # DIR DIR
    test -n "$(state_hash "$1")" && test "$(state_hash "$1")" = "$(state_hash "$2")" || fail "$1 and $2: other bits"
}

bf16="--set amp.enabled=true"
fp16="--set amp.enabled=true --set amp.dtype=fp16 --set amp.initial_scale=256"

# losses: bf16 has 8 bits, fp16 11; errors of single values average out. What acts in half draws some other actions, so
# that phases 2 and 3 learn from other rounds.
# phase3_constrained shares the way that phase2_ppo acts and learns
phases="phase1_world_model phase2_ppo"
[ "${DT_LONG:-}" != 1 ] || phases="$phases phase3_constrained"
for phase in $phases; do
    tol=0.1
    test $phase != phase1_world_model || tol=0.02
    train $phase $phase-fp32
    losses $phase-fp32 >"$work/fp32.loss"
    for half in bf16 fp16; do
        eval "options=\$$half"
        # shellcheck disable=SC2154,SC2086 # options and their values
        train $phase $phase-$half $options
        losses $phase-$half >"$work/$half.loss"
        paste "$work/fp32.loss" "$work/$half.loss" | awk -v what="$phase $half" -v tol="$tol" '
            { printf "%s: loss %s, in fp32 %s\n", what, $2, $1 }
            $1 != $2 { differs = 1 }
            { d = $1 > $2 ? $1 - $2 : $2 - $1; size = $1 < 0 ? -$1 : $1 }
            !(size > 0 && d <= tol * size) { bad = 1 }
            END { exit bad || !differs || NR < 2 }' || exit 1
    done
done

# neither the shards of a launch nor an interruption change a bit
phase=phase1_world_model
# shellcheck disable=SC2086
{
    train $phase alone $bf16 --set engine.micro_shards=1 --no-graphs
    train $phase stopped $fp16 --max-steps 2
}
same_state $phase-bf16 alone
"$build/dtrain" run --resume "$work/stopped" --device cuda --max-steps 4 -q || exit 1
same_state $phase-fp16 stopped

# bytes between the operations of a step, as the plan has them, with models of real size
plan_bytes() { # OPTIONS
    "$build/dtrain" run --plugin phase1_world_model --device cuda --dry-run --json "$@" 2>/dev/null |
        sed -n 's/.*"flops":[^,]*,"bytes":\([0-9.e+]*\).*/\1/p'
}
full=$(plan_bytes)
for half in bf16 fp16; do
    half_bytes=$(plan_bytes --set amp.enabled=true --set amp.dtype=$half)
    echo "a step of phase 1 moves $half_bytes bytes in $half, $full in fp32"
    awk -v half="$half_bytes" -v full="$full" 'BEGIN { exit !(full > 0 && half > 0.45 * full && half < 0.6 * full) }' ||
        exit 1
done

# a scale that no gradient survives: steps are skipped until it has fallen, and then there are updates
# shellcheck disable=SC2086 # options and their values
train $phase over $fp16 --set amp.initial_scale=16777216 --set amp.backoff_factor=0.0009765625 --set amp.hysteresis=1
test "$(losses over | wc -l)" -gt 0 || fail "no step was applied after the scale had fallen"

[ "${DT_LONG:-}" = 1 ] || exit 0
# the same by halves, the default: two overflows before the first, then one for each
# shellcheck disable=SC2086
train $phase falls $fp16 --set amp.initial_scale=16777216 --max-steps 16
overflows=$(sed -n 's/.*"overflows":\([0-9]*\).*/\1/p' "$work"/falls/checkpoints/*16/state.json)
awk -v n="$overflows" 'BEGIN { exit !(n > 1 && n < 16) }' || fail "of 16 steps '$overflows' overflowed: the scale did not fall"
