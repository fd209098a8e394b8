#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Phases 2 and 3 with a tiny environment on the emulated GPU: actions, losses and updates are the CPU's within rounding,
# and a run that was stopped after its first round ends in the bits of one that was not.
set -u

build=${DT_BUILDDIR:-.}
work=$(mktemp -d ./test-cuda-policies-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
DTRAIN_PLUGIN_PATH=$build/tests/engine/cuda/emulated:$build/phases/.libs:$build/models/.libs:$build/plugins/.libs
export DTRAIN_PLUGIN_PATH

train() { # PHASE DIR arguments...
    phase=$1
    dir=$2
    shift 2
    "$build/dtrain" --plugin "$phase" --run-dir "$work/$dir" --threads 1 -q --set env.id=env_traffic \
        --set env_traffic.control=signals --set env_traffic.scenario=intersection --set env_traffic.episode_s=60 \
        --set env.instances=2 --set data.batch=16 --set "$phase.fragment=8" --set "$phase.train_batch=16" \
        --set "$phase.iterations=2" "$@" 2>"$work/said" || {
        cat "$work/said"
        exit 1
    }
    if grep "left out" "$work/said"; then # controllers without parameters
        exit 1
    fi
}

losses() { # DIR
    sed -n 's/.*"loss":\([-0-9.e+]*\).*/\1/p' "$work/$1/metrics.jsonl"
}

state_hash() { # DIR
    "$build/dtrain" ckpt inspect "$work/$1" --json | sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p'
}

# the losses of two rounds, the second of which acted and learned from what the first left
for phase in phase2_ppo phase3_constrained; do
    limits=
    test $phase = phase2_ppo || limits="--set phase3_constrained.limits=starvation:5"
    for device in cpu cuda; do
        # shellcheck disable=SC2086 # an option and its value
        train $phase $phase-$device --device $device $limits
        losses $phase-$device >"$work/$device.loss"
    done
    paste "$work/cpu.loss" "$work/cuda.loss" | awk -v phase=$phase '
        { printf "%s: loss %s on the CPU, %s on the emulated GPU\n", phase, $1, $2 }
        !($1 != 0 && ($1 - $2) / $1 < 1e-5 && ($2 - $1) / $1 < 1e-5) { bad = 1 }
        END { exit bad || NR < 2 }' || exit 1
    # shellcheck disable=SC2086
    train $phase $phase-stopped --device cuda --max-steps 1 $limits
    "$build/dtrain" run --resume "$work/$phase-stopped" --device cuda --max-steps 1000 -q || exit 1
    hash=$(state_hash $phase-cuda)
    test -n "$hash" && test "$hash" = "$(state_hash $phase-stopped)" || {
        echo "$phase: stopped and resumed, other bits"
        exit 1
    }
done
