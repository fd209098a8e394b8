#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# make check-cuda-versions without network and toolkits: what it says when packages cannot be had, of a release that
# nobody knows, and of a file that a release cannot compile. The compiler is a stand-in.
set -u
src=$(cd "${DT_SRCDIR:-.}" && pwd)
work=$(mktemp -d ./test-cuda-versions-XXXXXX) || exit 1
work=$(cd "$work" && pwd)
trap 'rm -rf "$work"' EXIT INT TERM
cases=0 failed=0
out=$work/out
mkdir -p "$work/bin" "$work/build" "$work/have/11.8/bin" "$work/have/11.8/lib64"

# check CODE TEXT RELEASES FOLDER
check() {
    cases=$((cases + 1))
    env DT_BUILDDIR="$work/build" DT_SRCDIR="$src" CUDA_VERSIONS="$3" DTRAIN_CUDA_TOOLKITS="$work/$4" CUDA_ARCHS="75 80 90" \
        CUDA_SOURCES="core/engine/backend/cuda/unary.cu core/engine/backend/cuda/optim.cu" CUDA_FLAGS="-O3" CUDA_FLAGS_optim="-fmad=false" \
        PATH="$work/bin:$PATH" WORK="$work" CC=false sh "$src/tests/engine/cuda/versions.sh" >"$out" 2>&1 </dev/null
    code=$?
    [ $code -eq "$1" ] && grep -qE -e "$2" "$out" || {
        echo "FAIL: ended with $code, expected $1 and \"$2\""
        sed 's/^/    /' "$out" | head -n 20
        failed=$((failed + 1))
    }
}

cat >"$work/bin/python3" <<'END'
#!/bin/sh
case "$*" in
    *--version*) exit 0 ;;
esac
echo "ERROR: No matching distribution found for nvidia-cuda-nvcc-cu11==11.8.89" >&2
exit 1
END
chmod 755 "$work/bin/python3"
check 1 '^CUDA 11.8 +skipped .*CUDA 11.8 cannot be had from PyPI: ERROR: No matching distribution' 11.8 none
grep -q '^nothing was compiled: the packages come from PyPI and Debian, and are then kept in ' "$out" || {
    echo "FAIL: what is missing, and where it would be"
    failed=$((failed + 1))
}
check 1 '^0 passed, 0 failed, 2 skipped$' "12.4 13.0" none
check 1 '^CUDA 12.7 +FAILED .*CUDA 12.7 is none of 11.8 12.0' 12.7 none

# a toolkit that is there is taken as it is: no package is asked for
cat >"$work/have/11.8/bin/nvcc" <<'END'
#!/bin/sh
echo "$*" >>"$WORK/calls"
case "$*" in
    *--list-gpu-arch*) printf 'compute_80\ncompute_86\n'; exit 0 ;;
    *unary.cu) echo "unary.cu(7): error: this release does not know it"; exit 1 ;;
esac
while [ $# -gt 0 ]; do
    [ "$1" != -o ] || : >"$2"
    shift
done
END
chmod 755 "$work/have/11.8/bin/nvcc"
: >"$work/have/11.8/complete"
check 1 '^unary.cu\(7\): error: this release does not know it$' 11.8 have
check 1 '^0 passed, 1 failed, 0 skipped$' 11.8 have
cases=$((cases + 1))
grep -qE '^-O3 -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_80,code=compute_80 -fmad=false .*/optim.cu$' "$work/calls" || {
    echo "FAIL: the flags of optim.cu"
    cat "$work/calls"
    failed=$((failed + 1))
}
echo "$cases cases, $failed failed"
[ $failed -eq 0 ]
