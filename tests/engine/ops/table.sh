#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every op of ops.def has a contract there and a CUDA kernel. What else an op needs is a compiler error without it, or
# fails test_graph and test_ops (docs/explanation/architecture.md, "Adding an operation").
set -u
rc=0
for table in include/dtrain/ops.def core/engine/backend/ops.def; do
    sed -nE 's/^DT_OP(_[A-Z]+)?\(([A-Z0-9_]+), .*/\2/p' "$DT_SRCDIR/$table" >ops-table.tmp
    [ -s ops-table.tmp ] || { echo "FAIL: $table has no rows"; rc=1; }
    while read -r op; do
        grep -qE "^ \*  $op +[a-z*]" "$DT_SRCDIR/$table" || { echo "FAIL: $table: no contract of $op"; rc=1; }
        grep -q "^DT_OP_VIEW($op," "$DT_SRCDIR/$table" || grep -qE "^DT_CUDA_KERNEL(_WITH)?\($op," \
            "$DT_SRCDIR"/core/engine/backend/cuda/*.cu || { echo "FAIL: core/engine/backend/cuda: no kernel of $op"; rc=1; }
    done <ops-table.tmp
done
rm -f ops-table.tmp
exit $rc
