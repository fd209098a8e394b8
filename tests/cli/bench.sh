#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dtrain bench comm between processes: started by itself, by mpirun, and what it refuses.
set -u
. "${DT_SRCDIR:?}/tests/mpi_job.sh"
. "$DT_SRCDIR/tests/check.inc"

expect 0 "2 ranks" timeout -k 5 120 "$dtrain" bench comm --nproc 2 --parameters 0.2
expect 0 "    512  " mpi 3 "$dtrain" bench comm --parameters 0.2 --step-time 0.5
expect 0 '"ranks":4,"local":4,"swaps":[{"bytes":8,"median_s":' mpi 4 "$dtrain" bench comm --parameters 0.1 --json
cases=$((cases + 1))
[ "$(grep -c '"library"' "$work/out")" -eq 1 ] || fail "not one answer"
expect 2 "--nproc 2" "$dtrain" bench comm
expect 2 "--nproc 2" "$dtrain" bench comm --nproc 1
expect 2 "--hostfile" "$dtrain" bench comm --hostfile hosts
expect 2 "comm, gpu" "$dtrain" bench
expect 2 "comm, gpu" "$dtrain" bench kernels
expect 2 "--parameters 0" "$dtrain" bench comm --nproc 2 --parameters 0
expect 2 "--step-time fast" "$dtrain" bench comm --nproc 2 --step-time fast
expect 2 "--nproc two" "$dtrain" bench comm --nproc two
expect 2 "--nproc 3" mpi 2 "$dtrain" bench comm --nproc 3
finish "$cases cases"
