#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dtrain bench comm between processes: started by itself, by mpirun, and what it refuses.
set -u
. "${DT_SRCDIR:?}/tests/mpi_job.sh"
dtrain=$DT_BUILDDIR/dtrain
out=$(mktemp)
trap 'rm -f "$out"' EXIT
cases=0 failed=0

# expect CODE TEXT COMMAND...
expect() {
    code=$1 text=$2
    shift 2
    cases=$((cases + 1))
    "$@" >"$out" 2>&1 </dev/null
    got=$?
    if [ "$got" -ne "$code" ] || ! grep -q -e "$text" "$out"; then
        echo "FAIL: $*: ended with $got, expected $code and \"$text\""
        sed 's/^/    /' "$out"
        failed=$((failed + 1))
    fi
}

expect 0 "^2 ranks, 2 of them on this machine, Open MPI" timeout -k 5 120 "$dtrain" bench comm --nproc 2 --parameters 0.2
expect 0 "^    512  " mpi 3 "$dtrain" bench comm --parameters 0.2 --step-time 0.5
expect 0 '"ranks":4,"local":4,"swaps":\[{"bytes":8,"median_s":' mpi 4 "$dtrain" bench comm --parameters 0.1 --json
cases=$((cases + 1))
[ "$(grep -c '"library"' "$out")" -eq 1 ] || { echo "FAIL: not one answer"; failed=$((failed + 1)); }
expect 2 "measures between processes: use --nproc 2 or more" "$dtrain" bench comm
expect 2 "measures between processes: use --nproc 2 or more" "$dtrain" bench comm --nproc 1
expect 2 "--hostfile requires a run that dtrain starts" "$dtrain" bench comm --hostfile hosts
expect 2 "expected one of comm, gpu" "$dtrain" bench
expect 2 "expected one of comm, gpu" "$dtrain" bench kernels
expect 2 "--parameters 0: expected a number above 0, at most 10000" "$dtrain" bench comm --nproc 2 --parameters 0
expect 2 "--step-time fast: expected a number" "$dtrain" bench comm --nproc 2 --step-time fast
expect 2 "--nproc two: expected a whole number" "$dtrain" bench comm --nproc two
expect 2 "--nproc 3, but mpirun started 2 processes" mpi 2 "$dtrain" bench comm --nproc 3
echo "$cases cases, $failed failed"
[ "$failed" -eq 0 ]
