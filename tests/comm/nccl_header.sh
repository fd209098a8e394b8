#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What is declared of NCCL by hand (core/comm/nccl/abi.h) against each nccl.h that is there: of the CUDA toolkit, of
# the system, of Python's nvidia-nccl packages, and in the folders of NCCL_INCLUDE (separated by colons). Skipped, and
# said so, where there is none.
set -u

work=$(mktemp -d ./test-nccl-header-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
cc=${CC:-cc}

# what nccl.h wants of CUDA
mkdir "$work/cuda"
printf '#include <stddef.h>\n#include <stdint.h>\ntypedef struct CUstream_st *cudaStream_t;\n' >"$work/cuda/cuda_runtime.h"
: >"$work/cuda/cuda_fp16.h"
: >"$work/cuda/cuda_bf16.h"
: >"$work/cuda/cuda_fp8.h"
cat >"$work/check.c" <<'END'
#include <nccl.h>
#include "comm/nccl/abi.h"
#define SAME(what) _Static_assert(what, #what)
#define AT(ours, theirs) SAME(offsetof(dt_nccl_config, ours) == offsetof(ncclConfig_t, theirs))
SAME(NCCL_VERSION_CODE >= DT_NCCL_CONFIG_VERSION);
SAME((int)DT_NCCL_SUCCESS == (int)ncclSuccess && (int)DT_NCCL_IN_PROGRESS == (int)ncclInProgress);
SAME((int)DT_NCCL_FLOAT32 == (int)ncclFloat32 && (int)DT_NCCL_SUM == (int)ncclSum);
SAME(sizeof(ncclResult_t) == sizeof(int) && sizeof(ncclDataType_t) == sizeof(int) && sizeof(ncclRedOp_t) == sizeof(int));
SAME(sizeof(dt_nccl_id) == sizeof(ncclUniqueId) && NCCL_UNIQUE_ID_BYTES == sizeof(dt_nccl_id));
SAME(sizeof(ncclConfig_t) >= sizeof(dt_nccl_config) && DT_NCCL_UNDEFINED == NCCL_CONFIG_UNDEF_INT);
AT(size, size);
AT(magic, magic);
AT(version, version);
AT(blocking, blocking);
AT(cga_cluster_size, cgaClusterSize);
AT(min_ctas, minCTAs);
AT(max_ctas, maxCTAs);
AT(net_name, netName);
AT(split_share, splitShare);
/* every call, with what is given to it: one argument more or fewer does not compile */
int main(void)
{
    static const ncclConfig_t c = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm = 0;
    ncclUniqueId id;
    ncclResult_t e;
    cudaStream_t s = 0;
    int version;
    void *p = 0;
    (void)ncclGetVersion(&version);
    (void)ncclGetUniqueId(&id);
    (void)ncclCommInitRankConfig(&comm, 1, id, 0, (ncclConfig_t *)&c);
    (void)ncclCommFinalize(comm);
    (void)ncclCommDestroy(comm);
    (void)ncclCommAbort(comm);
    (void)ncclCommGetAsyncError(comm, &e);
    (void)ncclGetErrorString(e);
    (void)ncclGroupStart();
    (void)ncclGroupEnd();
    (void)ncclSend(p, 1, ncclFloat32, 0, comm, s);
    (void)ncclRecv(p, 1, ncclFloat32, 0, comm, s);
    (void)ncclReduce(p, p, 1, ncclFloat32, ncclSum, 0, comm, s);
    (void)ncclReduceScatter(p, p, 1, ncclFloat32, ncclSum, comm, s);
    (void)ncclAllGather(p, p, 1, ncclFloat32, comm, s);
#if NCCL_VERSION_CODE >= 21903 /* of the header that is held against ours; the program asks the library itself */
    (void)ncclCommRegister(comm, p, 1, &p);
    (void)ncclCommDeregister(comm, p);
#endif
    (void)ncclGetLastError(comm);
    return c.magic == DT_NCCL_MAGIC ? 0 : 1;
}
END

is_as_declared() ( # folder of a header; in a shell of its own: "ccache gcc" is two words
    unset IFS
    # shellcheck disable=SC2086
    $cc -std=c11 -Werror -I"$1" -I"$work/cuda" -I"${DT_SRCDIR:-.}/core" -fsyntax-only "$work/check.c"
)
found=0
failed=0
python=$(python3 -c 'import site, sys; print(":".join(p + "/nvidia/nccl/include" for p in site.getsitepackages()))' 2>/dev/null || true)
IFS=:
for folder in ${NCCL_INCLUDE:-} ${CUDA_HOME:-/usr/local/cuda}/include /usr/include $python; do
    test -n "$folder" && test -f "$folder/nccl.h" || continue
    found=$((found + 1))
    mkdir "$work/$found"
    cp "$folder"/nccl*.h "$work/$found/"
    version=$(sed -n 's/^#define NCCL_\(MAJOR\|MINOR\|PATCH\) \([0-9]*\)$/\2/p' "$folder/nccl.h" | paste -s -d .)
    if is_as_declared "$work/$found"; then
        echo "NCCL $version: as declared"
    else
        echo "NCCL $version: other than declared ($folder/nccl.h)"
        failed=1
    fi
done
if [ $found -eq 0 ]; then
    echo "skipped: no nccl.h here (NCCL_INCLUDE names folders; pip install nvidia-nccl-cu12 brings one)"
    exit 77
fi
exit $failed
