#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The GPU module by several releases of CUDA: compiled for every GPU that the release knows, linked with its libraries,
# and opened by dtrain. From make check-cuda-versions, which says which sources and flags (CUDA_SOURCES, CUDA_FLAGS),
# the GPUs (CUDA_ARCHS), and what one file wants of its own (CUDA_FLAGS_<file>). Toolkits are made of packages by
# toolkit.sh, in DTRAIN_CUDA_TOOLKITS (~/.cache/dtrain-cuda), half a GB to one GB each; a release that cannot be had is
# skipped.
#   CUDA_VERSIONS   which releases: 11.8 12.0 12.4 12.5 12.9 13.0 13.5
#   CUDA_ARCHS      for which GPUs; PTX is kept of the newest that the release knows
set -u
build=${DT_BUILDDIR:?}
src=${DT_SRCDIR:?}
toolkits=${DTRAIN_CUDA_TOOLKITS:-$HOME/.cache/dtrain-cuda}
passed=0 failed=0 skipped=0
jobs=$(nproc 2>/dev/null || echo 2)

# what nvcc of this release is asked to write
gencode_of() { # NVCC
    known=" $("$1" --list-gpu-arch | tr '\n' ' ') " || return 1
    newest=
    for arch in ${CUDA_ARCHS:?}; do
        case $known in
            *" compute_$arch "*) printf -- '-gencode=arch=compute_%s,code=sm_%s ' "$arch" "$arch" && newest=$arch ;;
        esac
    done
    test -n "$newest" && printf -- '-gencode=arch=compute_%s,code=compute_%s' "$newest" "$newest"
}

# one source file into the folder, unless what is there is newer than all that it is made of
compile() { # FILE
    name=$(basename "$1" .cu)
    object=$INTO/$name.o
    if test -e "$object" && test -z "$(find "$src/$1" "$src/core/engine/backend" "$src/core/engine/device" "$src/include" \
        -newer "$object" \( -name '*.h' -o -name '*.def' -o -name "$name.cu" \))"; then
        return 0
    fi
    eval "own=\${CUDA_FLAGS_$name:-}"
    # shellcheck disable=SC2086,SC2154 # lists of flags; own is set by eval
    "$NVCC" $CUDA_FLAGS $GENCODE $own -Xcompiler -fPIC -c -o "$object" "$src/$1" >"$INTO/$name.log" 2>&1 || {
        echo "$1:"
        head -n 20 "$INTO/$name.log"
        rm -f "$object"
        return 255
    }
}
if [ "${1:-}" = compile ]; then
    compile "$2"
    exit
fi

one() { # RELEASE TOOLKIT
    NVCC=$2/bin/nvcc INTO=$build/cuda-versions/$1
    mkdir -p "$INTO"
    GENCODE=$(gencode_of "$NVCC") || { echo "CUDA $1 knows none of the GPUs $CUDA_ARCHS"; return 1; }
    # a release from before the compiler of this machine refuses it unread; what it cannot read still fails
    NVCC_APPEND_FLAGS=-allow-unsupported-compiler
    export NVCC INTO GENCODE NVCC_APPEND_FLAGS CUDA_FLAGS
    echo "$GENCODE $CUDA_FLAGS" | cmp -s - "$INTO/flags" || rm -f "$INTO"/*.o
    echo "$GENCODE $CUDA_FLAGS" >"$INTO/flags"
    # shellcheck disable=SC2086 # a list
    printf '%s\n' ${CUDA_SOURCES:?} | xargs -n 1 -P "$jobs" sh "$0" compile || return 1
    objects=
    for source in $CUDA_SOURCES; do
        objects="$objects $INTO/$(basename "$source" .cu).o"
    done
    # shellcheck disable=SC2086
    ${CC:-cc} -shared -Wl,-z,defs -Wl,-rpath,"$2/lib64" -o "$INTO/backend_cuda.so" $objects -L"$2/lib64" -lcublasLt \
        -lcudart -lm || return 1
    DTRAIN_PLUGIN_PATH=$INTO:${DTRAIN_PLUGIN_PATH:-} "$build/dtrain" doctor >"$INTO/doctor.log" 2>&1
    grep -q "built with $1, .*cuBLASLt ${1%%.*}\." "$INTO/doctor.log" || {
        echo "dtrain doctor does not say that the module was built with $1:"
        grep -i -e gpu -e driver "$INTO/doctor.log"
        return 1
    }
    printf '%s files, nvcc %s, ' "$(echo "$CUDA_SOURCES" | wc -w)" \
        "$("$NVCC" --version | sed -n 's/.*, V\([0-9.]*\).*/\1/p')"
    echo "$GENCODE" | sed 's/-gencode=arch=compute_[0-9]*,code=//g; s/compute_\([0-9]*\)$/PTX \1/'
}

for release in ${CUDA_VERSIONS:-11.8 12.0 12.4 12.5 12.9 13.0 13.5}; do
    from=$(date +%s)
    said=$(sh "$src/tests/engine/cuda/toolkit.sh" "$release" "$toolkits")
    code=$?
    if [ $code -eq 0 ]; then
        said=$(one "$release" "$(echo "$said" | tail -n 1)" 2>&1)
        code=$?
    fi
    case $code in
        0) passed=$((passed + 1)) word=passed ;;
        77) skipped=$((skipped + 1)) word=skipped ;;
        *) failed=$((failed + 1)) word=FAILED ;;
    esac
    printf 'CUDA %-5s %-8s %4d s  %s\n' "$release" $word $(($(date +%s) - from)) "$said"
done
if [ $((passed + failed)) -eq 0 ]; then
    echo "nothing was compiled: the packages come from PyPI and Debian, and are then kept in $toolkits"
fi
printf '%d passed, %d failed, %d skipped\n' $passed $failed $skipped
test $failed -eq 0 && test $passed -gt 0
