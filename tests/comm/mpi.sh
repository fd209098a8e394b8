#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The communicator of processes: every call on 2 to 4 of them, sums with the bits of one, and every way to fail named
# within seconds on every rank that can.
set -u
. "${DT_SRCDIR:?}/tests/mpi_job.sh"
job=$DT_BUILDDIR/tests/comm/processes
out=$(mktemp)
trap 'rm -f "$out"' EXIT
cases=0 failed=0

# expect CODE N LINES... -- PROGRAM...: ends with that code, and each text is on so many lines ("3:text")
expect() {
    code=$1 n=$2 texts=
    shift 2
    while [ "$1" != -- ]; do
        texts="$texts$1
"
        shift
    done
    shift
    cases=$((cases + 1))
    mpi "$n" "$@" >"$out" 2>&1
    got=$?
    bad=
    [ "$got" -eq "$code" ] || bad="ended with $got, expected $code"
    while IFS= read -r line; do
        [ -z "$line" ] && continue
        [ "$(grep -c -F -e "${line#*:}" "$out")" -eq "${line%%:*}" ] || bad="$bad; not on ${line%%:*} lines: ${line#*:}"
    done <<END
$texts
END
    if [ -n "$bad" ]; then
        echo "FAIL: $n processes of $*: $bad"
        sed 's/^/    /' "$out"
        failed=$((failed + 1))
    fi
}

for n in 2 3 4; do
    expect 0 $n "$n:DT_OK" "1:rank 0 of $n ($n here)" -- "$job" all
    expect 0 $n "$n:DT_OK" -- "$job" flight
    expect 0 $n "$n:DT_OK" -- "$job" reduce
done
expect 6 3 "3:collective 2 does not match: rank 0 called all_gather of 8 bytes, rank 2 called all_gather of 16 bytes" \
    -- "$job" mismatch 0
expect 6 3 "3:rank 0 called all_gather of 8 bytes, rank 2 called barrier" -- "$job" mismatch 1
expect 6 3 "3:rank 0 called all_gather of 8 bytes, rank 2 called broadcast of 8 bytes from rank 0" -- "$job" mismatch 2
expect 6 3 "3:broadcast of 8 bytes from rank 0, rank 2 called broadcast of 8 bytes from rank 1" -- "$job" mismatch 3
expect 6 3 "1:DT_ECOMM rank 1 sent 8 bytes, expected 12" -- "$job" mismatch 4
expect 6 3 "3:collective 2 does not match: rank 0 called reduce_scatter of 48 bytes, rank 2 called reduce_scatter of 48 " \
    "3:cut differently" -- "$job" mismatch 5
expect 6 3 "3:rank 0 called reduce_scatter of 48 bytes, rank 2 called reduce_scatter of 52 bytes" -- "$job" mismatch 6
expect 6 3 "3:collective 2 does not match: rank 0 called reduce_scatter of 48 bytes, rank 2 called barrier" -- "$job" mismatch 7
expect 6 3 "1:DT_EDIVERGED the loss is not finite" "2:DT_EPEER rank 1 left: the loss is not finite" -- "$job" broken 0
expect 6 3 "3:DT_EPEER rank 1 left: aborted: enough" -- "$job" broken 1
expect 6 3 "3:DT_EPEER rank 1 left: aborted: enough" -- "$job" broken 2
expect 6 3 "3:called all_gather of 4 bytes and timed out after 0.3 s waiting for rank 1 (process " -- "$job" broken 3
expect 6 3 "1:rank 1 of 3 (3 here): DT_EDIVERGED the loss is not finite" "2:DT_EPEER rank 1 left: the loss is not finite" \
    -- "$job" abandon
expect 6 3 "2:collective 1: rank" "2:called barrier and timed out after 0.5 s waiting for rank 1 (process " -- "$job" late
# one of three is gone without a word: their starter ends the others, within seconds
mpi_timeout=20
cases=$((cases + 1))
mpi 1 env DTRAIN_FAULT=comm.begin:50 "$job" all : -n 2 "$job" all >"$out" 2>&1
code=$?
[ "$code" -eq 9 ] || { echo "FAIL: a process that was lost: code $code, expected its 9"; failed=$((failed + 1)); }
left=$(pgrep -f "$job" | wc -l)
cases=$((cases + 1))
[ "$left" -eq 0 ] || { echo "FAIL: $left processes are left"; failed=$((failed + 1)); }

# started alone, or by another MPI's mpirun
cases=$((cases + 1))
"$job" all >"$out" 2>&1
[ $? -eq 2 ] && grep -q "not launched" "$out" || { echo "FAIL: alone: $(cat "$out")"; failed=$((failed + 1)); }
cases=$((cases + 1))
env PMI_SIZE=3 PMI_RANK=1 "$job" all >"$out" 2>&1
[ $? -eq 5 ] && grep -q "mpirun started 3 processes, but .* sees 1: this is the mpirun of another MPI" "$out" ||
    { echo "FAIL: another mpirun: $(cat "$out")"; failed=$((failed + 1)); }
cases=$((cases + 1))
env SLURM_STEP_NUM_TASKS=4 "$job" all >"$out" 2>&1
[ $? -eq 5 ] && grep -q "are incompatible; use srun --mpi=pmix, or mpirun inside sbatch" "$out" ||
    { echo "FAIL: srun without PMIx: $(cat "$out")"; failed=$((failed + 1)); }

echo "$cases cases, $failed failed"
[ "$failed" -eq 0 ]
