#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# tests/check_gpu.sh where there is no GPU: stand-ins for dtrain, the test programs, compute-sanitizer and nsys record how
# they are called and answer as the real ones do, well and badly. What is clean passes, what is not fails and says so,
# what is not installed is skipped.
set -u
src=$(cd "${DT_SRCDIR:-.}" && pwd)
work=$(mktemp -d ./test-check-gpu-XXXXXX) || exit 1
work=$(cd "$work" && pwd)
trap 'rm -rf "$work"' EXIT INT TERM
cases=0 failed=0
out=$work/out
mkdir -p "$work/build/tests/cuda" "$work/bin" "$work/tmp"

program() { # PATH: reads the script
    { echo '#!/bin/sh' && cat; } >"$1"
    chmod 755 "$1"
}

bad() {
    echo "FAIL: $*"
    sed 's/^/    /' "$out" | head -n 20
    failed=$((failed + 1))
}

# check CODE TEXT STAGE...: how it ends, and what it says
check() {
    code=$1 text=$2
    shift 2
    cases=$((cases + 1))
    : >"$work/calls"
    env DT_BUILDDIR="$work/build" DT_SRCDIR="$src" PATH="$work/bin:$PATH" WORK="$work" TMPDIR="$work/tmp" ANSWER="${answer:-}" \
        sh "$src/tests/check_gpu.sh" "$@" >"$out" 2>&1 </dev/null
    got=$?
    [ $got -eq "$code" ] && grep -qE -e "$text" "$out" ||
        bad "$* with the answer \"${answer:-}\": ended with $got, expected $code and \"$text\""
}

called() { # TEXT
    cases=$((cases + 1))
    grep -qE -e "$1" "$work/calls" || {
        cp "$work/calls" "$out"
        bad "nobody called \"$1\""
    }
}

# ---- a machine without a GPU, and one without the tools ----
program "$work/build/dtrain" <<'END'
echo "dtrain $*" >>"$WORK/calls"
case $ANSWER in
    "no gpu") echo "error no NVIDIA driver answers" >&2; exit 5 ;;
esac
case $* in
    "doctor --json")
        gpus=1
        case $ANSWER in ranks*) gpus=3 ;; esac
        printf '{"checks":['
        seq 0 $((gpus - 1)) | sed 's/.*/{"check":"cuda:&","verdict":"PASS"},{"check":"cuda:& code","verdict":"PASS"},/'
        echo ']}' ;;
    *comm.backend=nccl*) [ "$ANSWER" != "ranks fail" ] ;;
    "ckpt inspect "*nccl" --json")
        [ "$ANSWER" = "ranks differ" ] && echo '{"state_hash":"bad"}' || echo '{"state_hash":"5eed"}' ;;
    "ckpt inspect "*) echo '{"state_hash":"5eed"}' ;;
esac
END
for t in test_finish test_kernels test_nccl test_train; do
    program "$work/build/tests/cuda/$t" <<'END'
echo "$(basename "$0")" >>"$WORK/calls"
END
done
answer="no gpu"
check 0 '^no GPU can be used: error no NVIDIA driver answers$'
check 0 '^0 passed, 0 failed, 13 skipped$'
check 0 '^0 passed, 0 failed, 2 skipped$' memcheck launches
check 2 'no stage memchek; there are doctor kernels' memchek
answer=
if command -v compute-sanitizer >/dev/null || command -v nsys >/dev/null; then
    echo "the real tools are installed here: their absence is not tried"
else
    check 0 '^memcheck +skipped .* no compute-sanitizer on this machine$' memcheck
    check 0 '^launches +skipped .* no nsys on this machine$' launches
    check 0 '^0 passed, 0 failed, 5 skipped$' memcheck racecheck synccheck initcheck launches
fi

# ---- several GPUs ----
check 0 '^ranks +skipped .* 1 GPU here, and ranks want two$' ranks
program "$work/bin/mpirun" </dev/null
answer=ranks
check 0 '^ranks +passed .* 3 GPUs, by NCCL and through the hosts, end in the bits of one$' nccl ranks
called '^test_nccl$'
called '^dtrain --plugin phase1_world_model --device cuda .* --nproc 3 --set comm.backend=nccl '
called '^dtrain --plugin phase1_world_model --device cuda .* --nproc 3 --set comm.backend=mpi '
answer="ranks differ"
check 1 '^ranks +FAILED .* 3 ranks by nccl end in other bits than one GPU alone$' ranks
answer="ranks fail"
check 1 '^ranks +FAILED .* training by nccl with 3 ranks failed$' ranks
answer=

# ---- compute-sanitizer ----
program "$work/bin/compute-sanitizer" <<'END'
echo "compute-sanitizer $*" >>"$WORK/calls"
echo "========= COMPUTE-SANITIZER"
tool=$2
while [ "${1#-}" != "$1" ]; do
    case $1 in
        --tool | --target-processes | --error-exitcode) shift 2 ;;
        *) echo "unrecognised option $1"; exit 1 ;;
    esac
done
case $ANSWER in
    "not begun")
        echo "========= Error: Target application terminated before first instrumented API call"
        exit 255 ;;
esac
"$@"
count=0
case $ANSWER in
    "$tool finds") count=3 ;;
    "test fails") echo "========= Error: process didn't terminate successfully"; exit 1 ;;
    silent) exit 0 ;;
    "warnings")
        echo "========= RACECHECK SUMMARY: 2 hazards displayed (0 errors, 2 warnings)"
        exit 0 ;;
    "child finds") echo "========= ERROR SUMMARY: 1 error" ;;
esac
if [ "$tool" = racecheck ]; then
    echo "========= RACECHECK SUMMARY: $count hazards displayed ($count errors, 0 warnings)"
else
    echo "========= ERROR SUMMARY: $count errors"
fi
[ $count -eq 0 ] || exit 9
END
check 0 '^4 passed, 0 failed, 0 skipped$' memcheck racecheck synccheck initcheck
for tool in memcheck racecheck synccheck initcheck; do
    called "^compute-sanitizer --tool $tool --target-processes all --error-exitcode 9 .*/tests/cuda/test_finish$"
    called "^compute-sanitizer --tool $tool .*/tests/cuda/test_kernels$"
done
called '^test_kernels$'
for tool in memcheck synccheck initcheck; do
    answer="$tool finds"
    check 1 "^$tool +FAILED .* test_finish under $tool ended with 9: ERROR SUMMARY: 3 errors$" $tool
    check 1 '^3 passed, 1 failed, 0 skipped$' memcheck racecheck synccheck initcheck
done
answer="racecheck finds"
check 1 'ended with 9: RACECHECK SUMMARY: 3 hazards displayed \(3 errors, 0 warnings\)$' racecheck
answer=warnings
check 1 'test_finish: RACECHECK SUMMARY: 2 hazards displayed \(0 errors, 2 warnings\)$' racecheck
answer="child finds"
check 1 'test_finish: ERROR SUMMARY: 1 error$' memcheck
answer="not begun"
check 1 'test_finish under memcheck ended with 255: it reports nothing' memcheck
answer="test fails"
check 1 'test_finish under initcheck ended with 1: it reports nothing' initcheck
answer=silent
check 1 'test_finish: synccheck did not say what it found' synccheck

# ---- nsys ----
program "$work/bin/nsys" <<'END'
echo "nsys $*" >>"$WORK/calls"
verb=$1
shift
if [ "$verb" = profile ]; then
    while [ "${1#-}" != "$1" ]; do
        case $1 in
            -o) file=$2; shift 2 ;;
            --*=*) shift ;;
            *) echo "unrecognised option $1"; exit 1 ;;
        esac
    done
    [ "$ANSWER" != "no profile" ] || exit 1
    "$@" && : >"$file.nsys-rep"
    exit
fi
for report; do :; done
[ -e "$report" ] || exit 1
case "$ANSWER $*" in
    "old --report cuda_gpu_trace "*) echo "ERROR: Report 'cuda_gpu_trace' could not be found." >&2; exit 1 ;;
    "no table "*) echo "SKIPPED: $report does not contain GPU trace data." >&2; exit 0 ;;
esac
# 20 steps of 100 us: a copy, a product of 50 us beside one of 20 us, a gap of 12 us, the end of the step
echo "Generating SQLite file"
echo "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name"
awk -v answer="$ANSWER" 'BEGIN {
    n = answer == "few" ? 3 : 20
    for (s = 0; s < n; s++) {
        at = 1000000 + 100000 * s
        printf "%d,2000,1,,,,,,,,,,1.0,500,Pinned,Device,GPU (0),1,7,[CUDA memcpy Host-to-Device]\n", at
        printf "%d,50000,1,4,1,1,128,1,1,32,0,0,,,,,GPU (0),1,7,\"product<(int)4>(float *, int)\"\n", at + 3000
        printf "%d,20000,1,4,1,1,128,1,1,32,0,0,,,,,GPU (0),1,8,\"product<(int)8>(float *, int)\"\n", at + 10000
        name = answer == "other" ? "somebody" : "(anonymous namespace)::decide"
        if (answer == "no times" && s == 10) {
            at = "later"
        }
        printf "%s,%s,1,1,1,1,256,1,1,32,0,0,,,,,GPU (0),1,7,\"%s(dt_device_finish, int)\"\n",
            answer == "no times" && s == 10 ? at : at + 65000, 5000, name
    }
    if (answer == "unordered") {
        print "5,5,1,1,1,1,256,1,1,32,0,0,,,,,GPU (0),1,7,x"
    }
}'
END
answer=
check 0 '3.0 kernels and 1.0 copies a step, 100 us from step to step, of which 57 % at work; 2.0 gaps over 10 us a step' \
    launches
grep -q 'the longest 30 us$' "$out" || bad "the longest gap"
called '^nsys profile --trace=cuda .*--cuda-graph-trace=node .*/dtrain --plugin phase1_world_model --device cuda --max-steps 60'
called '^nsys stats --report cuda_gpu_trace --format csv '
answer=old
check 0 '^launches +passed .*3.0 kernels and 1.0 copies a step' launches
called '^nsys stats --report gputrace '
answer="no profile"
check 1 '^launches +FAILED .* nsys profile failed' launches
answer="no table"
check 1 'nsys wrote no table' launches
answer=few
check 1 'the GPU began 3 steps, of 12 pieces of work: too few to look at' launches
answer=other
check 1 'the GPU began 0 steps, of 80 pieces of work' launches
answer="no times"
check 1 'the table of nsys has no time in: later,5000' launches
answer=unordered
check 1 'the table of nsys is not in the order of time: 5,5' launches
echo "$cases cases, $failed failed"
[ $failed -eq 0 ]
