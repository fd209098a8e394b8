#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The emulated GPU finds the mistakes that it is made for (test_emulator.cu), and code that was compiled for an older
# GPU runs on a later one without the kernels that it lacks.
set -u

build=${DT_BUILDDIR:-.}
"$build/tests/cuda/emulated/test_emulator" || exit 1

# clusters on later GPUs: one with as much shared memory, and one with less than half of it
for arch in 100 120; do
    DT_EMULATE_ARCH=$arch DT_CASE=lstm DT_TEST=test_products_of_rounded_inputs "$build/tests/cuda/test_kernels" || exit 1
done

# Compiled for 8.0: on 9.0 the LSTM whose kernels want 9.0 must not be chosen, and on 7.5 nothing runs.
DT_EMULATED_MODULE=emulated/older
export DT_EMULATED_MODULE
DT_CASE="lstm 64" "$build/tests/cuda/test_kernels" || exit 1
"$build/tests/cuda/test_doctor" || exit 1
if DT_EMULATE_ARCH=75 "$build/tests/cuda/test_kernels" >emulator-older.log 2>&1; then
    echo "code for 8.0 ran on 7.5"
    exit 1
fi
grep "for which this build holds no code; build with" emulator-older.log || {
    cat emulator-older.log
    exit 1
}
rm -f emulator-older.log
unset DT_EMULATED_MODULE

# whichever algorithm cuBLASLt names first, and whatever is late, the bits do not depend on leaves, graphs or resuming
for algo in 1 2 3; do
    DT_EMULATED_ALGO=$algo DT_CASE="linear large" "$build/tests/cuda/test_kernels" &&
        DT_EMULATED_ALGO=$algo DT_EMULATED_SEED=$algo "$build/tests/cuda/test_train" || {
        echo "with DT_EMULATED_ALGO=$algo"
        exit 1
    }
done
for seed in 1 2 3 4; do
    DT_EMULATED_SEED=$seed "$build/tests/cuda/test_finish" || {
        echo "with DT_EMULATED_SEED=$seed"
        exit 1
    }
done
