#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Phase 1 with tiny models that predict several futures, on the emulated GPU: the losses of its steps are the CPU's,
# features normalised by the store or not. Results of a device come a step late, so row 3 of its metrics is held against
# row 2 of the CPU's.
set -u

build=${DT_BUILDDIR:-.}
work=$(mktemp -d ./test-cuda-phase1-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
DTRAIN_PLUGIN_PATH=$build/tests/engine/cuda/emulated:$build/phases/.libs:$build/models/.libs
export DTRAIN_PLUGIN_PATH

# loss RUN ROW
loss() {
    sed -n "$2s/.*\"loss\":\([0-9.e+-]*\).*/\1/p" "$work/$1/metrics.jsonl"
}

for normalise in fixed store; do
    for device in cpu cuda; do
        "$build/dtrain" --plugin phase1_world_model.so --device $device --run-dir "$work/$device-$normalise" --max-steps 3 \
            --set risk_gnn.hidden=8 --set risk_gnn.heads=2 --set risk_gnn.layers=1 --set risk_gnn.normalise=$normalise \
            --set world_lstm.hidden=8 --set world_lstm.layers=1 --set world_lstm.futures=3 \
            --set world_lstm.kinematic=true --set world_lstm.calibrated=true --set data.batch=8 \
            --set training.eval_interval=0 --threads 2 -q || exit 1
    done
    for rows in "1 1" "2 3"; do
        echo "$(loss "cpu-$normalise" "${rows% *}") $(loss "cuda-$normalise" "${rows#* }")" | awk '
            { printf "loss %s on the CPU, %s on the emulated GPU\n", $1, $2 }
            !($1 > 0 && ($1 - $2) / $1 < 1e-5 && ($2 - $1) / $1 < 1e-5) { exit 1 }' || exit 1
    done
done
[ "$(loss cpu-fixed 1)" != "$(loss cpu-store 1)" ] || exit 1 # it makes a difference
