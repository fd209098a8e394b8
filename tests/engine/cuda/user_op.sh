#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# An op of a plugin that brings kernels along trains on the emulated GPU: its losses are the CPU's within rounding, its
# bits do not depend on how many shards a launch holds nor on an interruption. Without launch functions it is rejected.
set -u

build=${DT_BUILDDIR:-.}
work=$(mktemp -d ./test-cuda-user-op-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
cat >"$work/job.cfg" <<'END'
bars_data = { samples = 128; };
bars_model = { channels = 2; };
data = { batch = 16; };
training = { epochs = 1; };
checkpoint = { every_seconds = 0; mirror_seconds = 0; };
metrics = { tensorboard = false; };
report = { enabled = false; };
phases = ( { plugin = "bars"; } );
END

train() { # FOLDER-OF-PLUGIN DIR arguments...
    DTRAIN_PLUGIN_PATH=$build/tests/engine/cuda/emulated:$build/$1
    export DTRAIN_PLUGIN_PATH
    dir=$2
    shift 2
    "$build/dtrain" --config "$work/job.cfg" --run-dir "$work/$dir" --threads 1 -q "$@" 2>"$work/said"
}

must() {
    train "$@" && return
    cat "$work/said"
    exit 1
}

value() { # DIR KEY
    "$build/dtrain" ckpt inspect "$work/$1" --json | sed -n 's/.*"'"$2"'":"\([0-9a-f]*\)".*/\1/p'
}

same() { # DIR
    hash=$(value whole state_hash)
    test -n "$hash" && test "$hash" = "$(value "$1" state_hash)" && return
    echo "$1: other bits than whole"
    exit 1
}

kernels=tests/engine/cuda/emulated/bars
must $kernels cpu --device cpu
must $kernels whole --device cuda
# a device's losses are read a step late; the last line of an epoch is of another step
for dir in cpu whole; do
    sed -n 's/.*"loss":\([-0-9.e+]*\).*/\1/p' "$work/$dir/metrics.jsonl" >"$work/$dir.losses"
done
tail -n +2 "$work/whole.losses" | head -n 5 >"$work/whole.loss"
head -n 5 "$work/cpu.losses" >"$work/cpu.loss"
paste "$work/cpu.loss" "$work/whole.loss" | awk '
    !($1 != 0 && ($1 - $2) / $1 < 1e-4 && ($2 - $1) / $1 < 1e-4) { print "loss " $1 " on the CPU, " $2; bad = 1 }
    END { exit bad || NR != 5 }' || exit 1
must $kernels shards --device cuda --set engine.micro_shards=1
same shards
must $kernels cut --device cuda --max-steps 3
must $kernels cut --device cuda --resume "$work/cut" --max-steps 1000
same cut

train examples/.libs without --device cuda
code=$?
grep -q 'bars_swish.*--device cpu' "$work/said" && test $code -ne 0 || {
    cat "$work/said"
    echo "exit code $code without launch functions"
    exit 1
}
