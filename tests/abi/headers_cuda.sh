#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# All public headers compile together as CUDA C++, and so does every .cu file, where the module of them is not built:
# that takes warnings for errors, too. Skipped where there is no nvcc.
. "$DT_SRCDIR/tests/abi/headers.inc"
if [ -z "${NVCC:-}" ]; then
    echo "skipped: no nvcc"
    exit 77
fi
for h in $headers; do
    printf '#include "%s"\n' "$h"
done >"$tmp/unit.cu"
printf '__global__ void dt_unit(dt_status *st) { *st = DT_OK; }\n' >>"$tmp/unit.cu"
"$NVCC" -std=c++17 -Werror all-warnings -I"$headers_in" -c -o "$tmp/unit.o" "$tmp/unit.cu"
if [ -e "${DT_BUILDDIR:-.}/core/engine/backend/cuda/backend_cuda.la" ]; then
    echo "the .cu files were compiled as a module"
    exit 0
fi
find "$DT_SRCDIR/core" -name '*.cu' | sort | while read -r f; do
    echo "$f"
    "$NVCC" -std=c++17 -Werror all-warnings -I"$DT_SRCDIR/include" -I"$DT_SRCDIR/core" -c -o "$tmp/file.o" "$f"
done
