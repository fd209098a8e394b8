#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Mistakes that were in the CUDA module are put back, one at a time, into a copy of it: the emulated GPU must find each.
# From make check-gpu-emulated: EMULATED_CXX is the compiler with its flags, EMULATED_PARTS the objects of the module;
# DTRAIN_COMPILE and DTRAIN_LINK compile a file of the host and link dtrain.
set -u

build=${DT_BUILDDIR:-.}
source=${DT_SRCDIR:-.}
translate=$source/tests/engine/cuda/emulate/launch.sed
cd "$build" || exit 1
mutant=tests/engine/cuda/mutant
failed=0

# mutate FILE SED: FILE.o of the module, changed; not when the change changes nothing
mutate() {
    name=$(basename "$1" .cu)
    sed "$2" "$source/core/engine/backend/cuda/$1" >"$mutant/$name.cu"
    if cmp -s "$mutant/$name.cu" "$source/core/engine/backend/cuda/$1"; then
        echo "mutations: $1 is no longer what \"$2\" changes"
        exit 1
    fi
}

# compile NAME [FLAG...]: the object of NAME.cu, changed or not
compile() {
    name=$1
    shift
    test -e "$mutant/$name.cu" || cp "$source/core/engine/backend/cuda/$name.cu" "$mutant/$name.cu"
    sed -f "$translate" "$mutant/$name.cu" >"$mutant/$name.cc"
    # shellcheck disable=SC2086 # a compiler and its flags
    ${EMULATED_CXX%% *} -I$mutant/include ${EMULATED_CXX#* } "$@" -c -o "$mutant/$name.o" "$mutant/$name.cc" || exit 1
}

link() {
    objects=
    for part in $EMULATED_PARTS; do
        own=$mutant/$(basename "$part")
        test -e "$own" && objects="$objects $own" || objects="$objects $part"
    done
    # shellcheck disable=SC2086
    ${EMULATED_CXX%% *} -shared -o $mutant/backend_cuda.so $objects || exit 1
}

# finds WORDS COMMAND...: fails under some seed, and says so
finds() {
    words=$1
    shift
    for seed in 1 2 3 4 5 6 7 8; do
        if ! DT_EMULATED_SEED=$seed DT_EMULATED_MODULE=mutant "$@" >$mutant/said 2>&1; then
            if grep -q "$words" $mutant/said; then
                echo "found with seed $seed: $mistake"
            else
                echo "NOT found, something else was: $mistake"
                tail -n 5 $mutant/said
                failed=1
            fi
            return
        fi
    done
    echo "NOT found: $mistake"
    failed=1
}

begin() { # WHAT
    mistake=$1
    rm -rf $mutant
    mkdir -p $mutant/include/backend/cuda
}

begin "zeros of fresh memory are not waited for"
mutate device.cu '/DT_CUDA(cudaStreamSynchronize(NULL));/d'
compile device
link
finds "FAILED TEST\|inside one block\|nobody wrote" tests/engine/cuda/test_finish

begin "an algorithm for 8 products is used for another number"
mutate product.cu '/cublasLtMatmulHeuristicResult_t r = {};/s/.*/*fits_p = true; return DT_OK;\n&/'
compile product -Wno-unused-variable
link
finds "was neither found nor checked" tests/engine/cuda/test_train

begin "leaves are multiplied at once whatever bits that gives"
mutate product.cu 's/out->is_same = (answer & IS_OTHER) == 0;/out->is_same = true;/'
compile product
link
finds "other bits when it is alone" env DT_EMULATED_ALGO=4 DT_CASE="linear prime" tests/engine/cuda/test_kernels

begin "an algorithm that splits k"
mutate product.cu 's/ && !splits_k(&found\[i\].algo)//'
compile product -Wno-unused-function
link
finds "splits k" env DT_EMULATED_ALGO=5 DT_CASE="linear prime" tests/engine/cuda/test_kernels

begin "clusters are launched unasked"
mutate lstm_cluster.cu 's/ && query_device(a, H)//'
compile lstm_cluster -Wno-unused-function
link
finds "too many resources requested" env DT_EMULATED_CLUSTERS=0 DT_CASE="lstm 64" \
    DT_TEST=test_products_of_rounded_inputs tests/engine/cuda/test_kernels

begin "relu in the epilogue turns NaN into 0"
mutate product.cu 's/out->keeps_nan = (answer & IS_LOST) == 0;/out->keeps_nan = true;/'
compile product
link
finds "NaN in input" env DT_CASE="linear relu" tests/engine/cuda/test_kernels

begin "1024 threads without __launch_bounds__"
mutate reduce.cu 's/__launch_bounds__(DT_CUDA_COLUMN_THREADS)//'
compile reduce
link
finds "too many resources requested for launch" tests/engine/cuda/test_train

begin "without a ragged dimension rows beyond the last are read, step by step"
sed '/s.cap = (int32_t)v->dim\[1\];/d' "$source/core/engine/backend/cuda/recurrent.h" |
    sed -f "$translate" >$mutant/include/backend/cuda/recurrent.h
compile lstm
compile gru
link
finds "beyond what is held there" env DT_CASE="lstm of a fixed number" tests/engine/cuda/test_kernels
finds "beyond what is held there" env DT_CASE="gru of a fixed number" tests/engine/cuda/test_kernels
mistake="the same in a cluster"
finds "beyond what is held there" env DT_CASE="lstm of a fixed number" DT_TEST=test_products_of_rounded_inputs \
    tests/engine/cuda/test_kernels

begin "code for 8.0 runs on 9.0 without its kernels"
mutate lstm_cluster.cu '/__trap();/d; s/dt_cuda_code(a->device) >= 90 &&//'
compile lstm_cluster -D__CUDA_ARCH__=800
cp tests/engine/cuda/emulated/older/emulate_runtime.o $mutant/
link
finds "difference\|nan\|nobody wrote" env DT_CASE="lstm 64" tests/engine/cuda/test_kernels

# Two processes by NCCL's stand-in with the program changed, and one without: other bits are what is found.
begin "a bucket goes to other ranks before its gradients are summed"
sed '/event_wait(d->device, w->ready\[b\]/d' "$source/core/train/device/link.c" >$mutant/link.c
if cmp -s $mutant/link.c "$source/core/train/device/link.c"; then
    echo "mutations: link.c has no wait for a bucket"
    exit 1
fi
# shellcheck disable=SC2086
$DTRAIN_COMPILE -c -o $mutant/link.o $mutant/link.c &&
    $DTRAIN_LINK -o dtrain-mutant core/cli/main.o $mutant/link.o core/libdtcore.la -lm || exit 1
cat >$mutant/pair <<'EOF'
here=$(pwd)
DTRAIN_PLUGIN_PATH=$here/tests/engine/cuda/emulated:$here/phases/.libs:$here/models/.libs:$here/plugins/.libs
LD_LIBRARY_PATH=$here/tests/engine/cuda/emulated/nccl DT_EMULATE_DEVICES=4 DT_NCCL_DIR=$here/$1
export DTRAIN_PLUGIN_PATH LD_LIBRARY_PATH DT_EMULATE_DEVICES DT_NCCL_DIR
unset DTRAIN__ENGINE__DEVICE
train() { # PROGRAM DIR [options]
    program=$1 dir=$2
    shift 2
    rm -rf "$dir"
    ./$program --plugin phase1_world_model --set risk_gnn.hidden=4 --set risk_gnn.heads=1 --set risk_gnn.layers=1 \
        --set world_lstm.hidden=4 --set world_lstm.layers=1 --set data.batch=4 --set data.shards=4 \
        --set training.eval_interval=0 --set comm.bucket_mb=0.01 --set engine.threads=1 --max-steps 4 --device cuda \
        -q --run-dir "$dir" "$@" >&2 || exit 1
    ./dtrain ckpt inspect "$dir" --json | sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p'
}
one=$(unset DT_EMULATED_SEED && train dtrain "$1/one") || exit 1
two=$(train dtrain-mutant "$1/two" --nproc 2 --max-restarts 0) || exit 1
test "$one" = "$two" || { echo "other bits"; exit 1; }
EOF
finds "other bits" sh $mutant/pair $mutant
rm -f dtrain-mutant

rm -rf $mutant
exit $failed
