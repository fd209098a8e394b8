#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The emulated GPU finds the mistakes that it is made for (test_emulator.cu), and code that was compiled for an older
# GPU runs on a later one without the kernels that it lacks.
set -u

build=${DT_BUILDDIR:-.}
"$build/tests/engine/cuda/emulated/test_emulator" || exit 1

# clusters on later GPUs: one with as much shared memory, and one with less than half of it
for arch in 100 120; do
    DT_EMULATE_ARCH=$arch DT_CASE=lstm DT_TEST=test_products_of_rounded_inputs "$build/tests/engine/cuda/test_kernels" || exit 1
done

# Compiled for 8.0: on 9.0 the LSTM whose kernels want 9.0 must not be chosen, and on 7.5 nothing runs.
DT_EMULATED_MODULE=emulated/older
export DT_EMULATED_MODULE
DT_CASE="lstm 64" "$build/tests/engine/cuda/test_kernels" || exit 1
"$build/tests/engine/cuda/test_doctor" || exit 1
if DT_EMULATE_ARCH=75 "$build/tests/engine/cuda/test_kernels" >emulator-older.log 2>&1; then
    echo "code for 8.0 ran on 7.5"
    exit 1
fi
grep "for which this build contains no code; build with" emulator-older.log || {
    cat emulator-older.log
    exit 1
}
rm -f emulator-older.log
unset DT_EMULATED_MODULE

# whichever algorithm cuBLASLt names first, and whatever is late, the bits do not depend on leaves, graphs or resuming
algos=1
[ "${DT_LONG:-}" != 1 ] || algos="1 2 3"
for algo in $algos; do
    DT_EMULATED_ALGO=$algo DT_CASE="linear large" "$build/tests/engine/cuda/test_kernels" &&
        DT_EMULATED_ALGO=$algo DT_EMULATED_SEED=$algo "$build/tests/engine/cuda/test_train" || {
        echo "with DT_EMULATED_ALGO=$algo"
        exit 1
    }
done

# an algorithm whose bits change with the number of leaves (4), one that splits k (5), one that is found and does not
# run (6), and none at all
for algo in 4 5 6; do
    DT_EMULATED_ALGO=$algo DT_CASE="linear prime" "$build/tests/engine/cuda/test_kernels" || {
        echo "with DT_EMULATED_ALGO=$algo"
        exit 1
    }
done
[ "${DT_LONG:-}" != 1 ] || DT_EMULATED_ALGO=4 "$build/tests/engine/cuda/test_train" || exit 1
for finds in all nothing; do
    DT_EMULATED_BLAS_FINDS=$finds DT_CASE="linear relu of two" "$build/tests/engine/cuda/test_kernels" || {
        echo "with DT_EMULATED_BLAS_FINDS=$finds"
        exit 1
    }
done
DT_EMULATED_RELU=nan DT_CASE="linear relu" "$build/tests/engine/cuda/test_kernels" || exit 1

# which products have no algorithm of cuBLASLt is logged once for each shape
DT_CASE="linear one output" DT_TEST=test_what_is_stored_in_bf16 "$build/tests/engine/cuda/test_kernels" >emulator-own.log 2>&1
if ! grep -q "own kernel" emulator-own.log || test -n "$(grep "own kernel" emulator-own.log | sort | uniq -d)"; then
    cat emulator-own.log
    exit 1
fi
rm -f emulator-own.log

# no room for a cluster: step by step
for clusters in 0 error; do
    DT_EMULATED_CLUSTERS=$clusters DT_CASE="lstm 64" DT_TEST=test_products_of_rounded_inputs \
        "$build/tests/engine/cuda/test_kernels" || {
        echo "with DT_EMULATED_CLUSTERS=$clusters"
        exit 1
    }
done
seeds=1
[ "${DT_LONG:-}" != 1 ] || seeds="1 2 3 4"
for seed in $seeds; do
    DT_EMULATED_SEED=$seed "$build/tests/engine/cuda/test_finish" || {
        echo "with DT_EMULATED_SEED=$seed"
        exit 1
    }
done
