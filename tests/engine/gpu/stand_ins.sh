#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# tests/engine/gpu/measure.sh where there is no GPU: stand-ins for dtrain, the test programs, bench_phase1_step,
# compute-sanitizer, ncu and nvidia-smi record how they are called and answer as the real ones do, well and badly. A
# stage that fails, hangs or finds no time left must not stop the others, and each must have its line in the summary.
set -u
src=$(cd "${DT_SRCDIR:-.}" && pwd)
built=$(cd "${DT_BUILDDIR:-.}" && pwd)
command -v python3 >/dev/null || { echo "skipped: no python3 here"; exit 77; }
work=$(mktemp -d ./test-measure-XXXXXX) || exit 1
work=$(cd "$work" && pwd)
trap 'rm -rf "$work"' EXIT INT TERM
n_checks=0 failed=0
out=$work/said summary=$work/results/summary.txt
mkdir -p "$work/build/tests/engine/cuda" "$work/build/tests/engine/gpu" "$work/bin" "$work/tmp"

program() { # PATH: reads the script
    { echo '#!/bin/sh' && cat; } >"$1"
    chmod 755 "$1"
}

bad() {
    echo "FAIL: $*"
    sed 's/^/    /' "$out" | head -n 40
    failed=$((failed + 1))
}

# measure CODE STAGE...: how it ends, with $answer for the stand-ins and $with in the environment
measure() {
    code=$1
    shift
    n_checks=$((n_checks + 1))
    : >"$work/calls"
    # shellcheck disable=SC2086
    env DT_BUILDDIR="$work/build" DT_SRCDIR="$src" PATH="$work/bin:$PATH" WORK="$work" TMPDIR="$work/tmp" OUT="$work/results" \
        ANSWER="${answer:-}" ${with:-} sh "$src/tests/engine/gpu/measure.sh" "$@" >"$out" 2>&1 </dev/null
    got=$?
    [ $got -eq "$code" ] || bad "measure.sh $* with the answer \"${answer:-}\" ended with $got, expected $code"
    [ -z "$(ls -A "$work/tmp")" ] || bad "measure.sh $* leaves temporary files"
}

says() { # PATTERN: in the summary, and printed
    n_checks=$((n_checks + 1))
    grep -qE -e "$1" "$summary" && grep -qE -e "$1" "$out" || bad "the summary has no \"$1\""
}

says_not() { # PATTERN
    n_checks=$((n_checks + 1))
    ! grep -qE -e "$1" "$summary" || bad "the summary has \"$1\""
}

deaf_runs() { # the program that ignores SIGTERM; a zombie does not run
    ps -o stat= -p "$(cat "$work/deaf")" | grep -qv '^Z'
}

called() { # PATTERN
    n_checks=$((n_checks + 1))
    grep -qE -e "$1" "$work/calls" || {
        cp "$work/calls" "$out"
        bad "no call matches \"$1\""
    }
}

# ---- stand-ins ----
program "$work/build/dtrain" <<'END'
echo "dtrain $*" >>"$WORK/calls"
case "$ANSWER $*" in
    "no gpu "*--device\ cuda*) echo "error no NVIDIA driver responds" >&2; exit 5 ;;
    "not loaded "*--device\ cuda*) echo "dtrain: libcublasLt.so.13: cannot open shared object file" >&2; exit 127 ;;
    "no bf16 "*amp.dtype=bf16*) echo "error amp.dtype = \"bf16\" needs compute capability 8.0" >&2; exit 3 ;;
    "no step "*--run-dir*--device\ cuda*) echo "error a kernel failed" >&2; exit 6 ;;
esac
run=
before=
for word; do
    [ "$before" != --run-dir ] || run=$word
    [ "$before" != --seed ] || seed=$word
    before=$word
done
case $* in
    *--dry-run*) exit 0 ;;
    doctor)
        echo "PASS  dtrain         0.1.0"
        echo "PASS  cuda:0         a GPU"
        [ "$ANSWER" != "doctor fails" ] || echo "FAIL  cuda:0 code    none"
        exit 0 ;;
    "doctor --json")
        gpus=1
        case $ANSWER in ranks*) gpus=3 ;; esac
        printf '{"checks":['
        seq 0 $((gpus - 1)) | sed 's/.*/{"check":"cuda:&","verdict":"PASS"},{"check":"cuda:& code","verdict":"PASS"},/'
        echo ']}' ; exit 0 ;;
    "data export "*) printf 'scene,x\na#1,1.5\na#1,2.5\n' >"$4" ; exit 0 ;;
    "data import "*) cp "$3" "$WORK/imported" ; mkdir "$5" ; echo '{}' >"$5/store.json" ; exit 0 ;;
    "bench gpu "*) echo "no step is faster than 0.726 ms" ; exit 0 ;;
    "ckpt inspect "*)
        state=5eed
        case "$ANSWER $*" in
            "ranks differ "*nccl*) state=bad ;;
            "graphs differ "*eager*) state=bad ;;
        esac
        echo "{\"state_hash\":\"$state\"}" ; exit 0 ;;
    *comm.backend=nccl*) [ "$ANSWER" != "ranks fail" ] || exit 1 ;;
esac
[ -n "$run" ] || exit 2
mkdir -p "$run"
base=2
case "$ANSWER $*" in
    "bf16 is far "*amp.enabled=true*) base=2.06 ;; # by 3 % with every seed
    "bf16 varies "*amp.enabled=true*) # by more, in both directions
        [ $((seed % 2)) -eq 0 ] && base=2.08 || base=1.94 ;;
    "losses differ "*--device\ cuda*) base=2.2 ;;
esac
awk -v base=$base 'BEGIN {
    for (i = 1; i <= 40; i++)
        printf "{\"step\":%d,\"loss\":%g,\"time/policy\":0.25,\"time/env\":0.5,\"charts/SPS\":1000}\n", i, base + 1 / i
}' >"$run/metrics.jsonl"
END
for t in test_finish test_kernels test_nccl test_train; do
    program "$work/build/tests/engine/cuda/$t" <<'END'
name=$(basename "$0")
echo "$name DT_CHECK_GPU=$DT_CHECK_GPU DT_TEST=${DT_TEST:-} DT_CASE=${DT_CASE:-}" >>"$WORK/calls"
case "$ANSWER:$name" in
    "no gpu:"*) echo "skipped: no NVIDIA driver responds"; exit 77 ;;
    fails:test_finish) echo "[  FAILED  ] 1 test(s)"; exit 1 ;;
    crashes:test_finish) kill -SEGV $$ ;;
    killed:test_finish) echo "before it is killed"; kill -KILL $$ ;;
    binary:test_finish) printf 'a\0b\n= figure 1\nthe end\n'; exit 1 ;;
    deaf:test_finish) trap '' TERM; echo $$ >"$WORK/deaf"; sleep 60; sleep 60 ;;
    hangs:test_finish) echo "before it hangs"; exec sleep 60 ;;
    slow:test_finish) sleep 4 ;;
    long:test_finish) head -c 20000000 /dev/zero | tr '\0' 'x'; echo; echo "the end" ;;
esac
echo "[  PASSED  ] 1 test(s)."
END
done
program "$work/build/bench_phase1_step" <<'END'
echo "bench_phase1_step $*" >>"$WORK/calls"
case "$ANSWER $*" in
    "no step "*) echo "bench_phase1_step: a kernel failed" >&2; exit 1 ;;
    "15m fails "*risk_gnn.preset=15m*) echo "bench_phase1_step: out of memory" >&2; exit 1 ;;
esac
echo ready
awk '{ printf "["; for (i = 0; i < $2; i++) printf "%s[0.002, 1.5, 0.5, 0.0005]", i ? ", " : "", 0; print "]" }'
[ -z "${DT_TRACE_CSV:-}" ] || cp "$WORK/trace.csv" "$DT_TRACE_CSV"
END
program "$work/bin/nvidia-smi" <<'END'
echo "NVIDIA H100 80GB HBM3, 580.82, 81559 MiB, 1980 MHz, 1980 MHz, 2619 MHz, 700.00 W, 31"
END
: >"$work/build/VERSION"
echo "dtrain 0 (stand-in)" >"$work/build/VERSION"
echo library >"$work/build/tests/engine/gpu/libcupti_trace.so"

# 20 steps of 100 us: a copy, a product of 50 us next to one of 20 us, a gap of 12 us, the end of the step
timeline() { # [few | other | "no time"]
    awk -v answer="${1:-}" 'BEGIN {
        print "kind,start,end,stream,graph,node,grid,block,registers,static,dynamic,local,name"
        n = answer == "few" ? 3 : 20
        for (s = 0; s < n; s++) {
            at = 1000000 + 100000 * s
            printf "c,%d,%d,7,0,0,4096,,,,,,memcpy kind 1\n", at, at + 2000
            printf "k,%d,%d,8,1,3,4x1x1,128x1x1,32,0,0,0,void product<(int)8>(float *; int)\n", at + 10000, at + 30000
            printf "k,%d,%d,7,1,2,4x1x1,128x1x1,32,16,32,0,void product<(int)4>(float *; int)\n", at + 3000, at + 53000
            name = answer == "other" ? "elsewhere" : "(anonymous namespace)::decide"
            begin = answer == "no time" && s == 10 ? "later" : at + 65000
            printf "k,%s,%d,7,1,4,1x1x1,256x1x1,32,0,0,0,%s(dt_device_finish; int)\n", begin, at + 70000, name
        }
    }'
}
timeline >"$work/trace.csv"

# ---- a machine without a GPU, wrong usage ----
answer="no gpu"
measure 77
says '^NVIDIA H100 80GB HBM3, 580.82'
says '^no GPU can be used: error no NVIDIA driver responds$'
for name in finish kernels products train losses steps trace stored; do
    says "^$name +no GPU +[0-9.]+ s  .*no NVIDIA driver responds"
done
says '^no training step was made on a GPU: part B is not run'
says_not '^(peer|memcheck)'
measure 2 memchek
measure 2 finish memchek
with=DEADLINE=soon
measure 2 finish
with=DEADLINE=.5
measure 77 finish
says '^finish +not run +the deadline of 1 s$'
with=
measure 2 A finish
: >"$work/a-file"
with="OUT=$work/a-file"
measure 2 finish
grep -q "^measure.sh: results cannot be written to $work/a-file" "$out" || bad "an OUT that is a file is not reported"
with=
answer=
mkdir "$work/full"
ln -s /dev/full "$work/full/summary.txt"
with="OUT=$work/full"
measure 1 finish
grep -q 'summary.txt is not complete' "$out" || bad "a summary that cannot be written is not reported"
with=
answer="not loaded"
measure 0 finish
says '^dtrain --device cuda --dry-run ended with code 127: dtrain: libcublasLt.so.13: cannot open'
answer="no gpu"
measure 0 --list
grep -q '^memcheck ' "$out" || bad "--list has no memcheck"

# ---- everything works: a line for each stage, figures below their stages, at most eight files ----
answer=
program "$work/bin/ncu" <<'END'
echo "ncu $*" >>"$WORK/calls"
echo '"ID","Kernel Name"'
END
program "$work/bin/compute-sanitizer" <<'END'
echo "compute-sanitizer $*" >>"$WORK/calls"
echo "========= COMPUTE-SANITIZER"
tool=$2
while [ "${1#-}" != "$1" ]; do
    case $1 in
        --tool | --target-processes | --error-exitcode | --kernel-name-exclude | --print-limit) shift 2 ;;
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
with=DEADLINE=0
measure 1 # of the stand-ins, the stage runs alone fails: it compares whole trainings
with=
head -n 1 "$summary" | grep -q '^dtrain 0 (stand-in), 20..-' || bad "the summary does not begin with what was measured"
for name in doctor finish kernels products train losses runs steps trace stored acting memcheck racecheck counters precision \
    nccl synccheck initcheck; do
    [ $name = runs ] || says "^$name +passed "
done
says '^    steps guide bf16 batch 64: 2.000 ms a step \(2.000 to 2.000\), data_wait 25.0 %, bound 0.726 ms, loss 1.5$'
says '^    steps 15m bf16, one reader batch 64: 2.000 ms'
says '^    trace 15m bf16 batch 64: 9 steps, 100.0 us a step; 3.0 kernels and 1.0 copies and memsets a step; at work 57.0 %'
says '^    losses: 40 steps, largest distance from the CPU: fp32 0.0e\+00, '
says '^    acting cartpole cpu: charts/SPS 1000 time/policy 0.25 time/env 0.5$'
says '^    precision: loss of fp32 2.0[0-9]+, mean of 5 seeds; '
says '^(peer|peer_15m) +(skipped|FAILED) '
grep -q '^steps ' "$summary" && [ "$(find "$work/results" -type f | wc -l)" -le 8 ] || bad "$(ls "$work/results") are more than 8 files"
gzip -cd "$work/results/trace_guide.csv.gz" | cmp -s - "$work/trace.csv" || bad "trace_guide.csv.gz is not the trace"
called '^bench_phase1_step .*data.batch=64 --set data.store=.*/store --set data.workers=8 '
called '^bench_phase1_step .*risk_gnn.preset=15m .*data.workers=1 '
[ "$(grep -c . "$work/imported")" -eq 33 ] && grep -qx 'a-1-15,16.5' "$work/imported" || bad "the store is not 16 moved copies"

# ---- one stage fails, crashes, hangs, or finds no time left ----
answer=fails
measure 1 finish train
says '^finish +FAILED +[0-9.]+ s  \[  FAILED  \] 1 test'
says '^train +passed '
says '^1 passed, 1 failed, 0 skipped$'
answer=crashes
measure 1 finish train
says '^finish +FAILED '
says '^train +passed '
answer=killed
measure 1 finish train
says '^finish +FAILED +[0-9.]+ s  (before it is killed|.*[Kk]illed)'
says '^train +passed '
answer=binary
measure 1 finish
says '^finish +FAILED +[0-9.]+ s  the end$'
says '^    figure 1$'
answer=hangs with=BOX=0.1
measure 1 finish train
says '^finish +TIME BOX +[0-9.]+ s  before it hangs$'
says '^train +passed '
answer=deaf
measure 1 finish train
says '^finish +TIME BOX '
says '^train +passed '
! deaf_runs || bad "a program that ignores SIGTERM outlives its time box"
rm "$work/deaf"
with=
# interrupted: what runs is stopped, also where it ignores that, and nothing is left
for answer in hangs deaf; do
    n_checks=$((n_checks + 2))
    : >"$work/calls"
    env DT_BUILDDIR="$work/build" DT_SRCDIR="$src" PATH="$work/bin:$PATH" WORK="$work" TMPDIR="$work/tmp" OUT="$work/results" \
        ANSWER=$answer sh "$src/tests/engine/gpu/measure.sh" finish train >"$out" 2>&1 </dev/null &
    pid=$!
    until grep -q test_finish "$work/calls" || ! kill -0 $pid 2>/dev/null; do
        sleep 0.1
    done
    kill $pid
    wait $pid
    [ $? -eq 1 ] && [ -z "$(ls -A "$work/tmp")" ] && ! grep -q test_train "$work/calls" || bad "measure.sh does not end on SIGTERM"
    [ ! -s "$work/deaf" ] || ! deaf_runs || bad "a program that ignores SIGTERM outlives measure.sh"
    says '^interrupted in finish$'
done
answer=slow with=DEADLINE=8
measure 1 finish train nccl
says '^finish +passed '
says '^train +not run +the deadline of 8 s$'
says '^nccl +not run '
says '^1 passed, 2 failed, 0 skipped$'
with=
answer=long
measure 0 finish
[ "$(stat -c %s "$work/results/tests.log")" -le 16777216 ] && grep -q 'bytes are left out' "$work/results/tests.log" &&
    tail -n 1 "$work/results/tests.log" | grep -q PASSED || bad "a long log is not shortened"
answer="no step"
with=DEADLINE=0
measure 1
with=
says '^losses +FAILED +[0-9.]+ s  error a kernel failed$'
says '^    FAILED steps guide bf16 batch 64: exit code 1: bench_phase1_step: a kernel failed$'
says '^stored +passed '
says '^no training step was made on a GPU: part B is not run'
says_not '^peer'
answer="15m fails"
measure 1 steps
says '^    steps guide tf32 batch 64: 2.000 ms'
says '^    FAILED steps 15m fp32 batch 64: exit code 1: bench_phase1_step: out of memory$'
answer="doctor fails"
measure 1 doctor
says '^    FAIL  cuda:0 code    none$'

# ---- losses and precision ----
answer="losses differ"
measure 1 losses
says 'fp32 9.9e-02'
answer="graphs differ"
measure 1 losses
says 'gpu and eager end in different states$'
answer="bf16 is far"
measure 1 precision
says 'bf16 \+2.* % \(standard error 0.00 %\).*: too far$'
answer="bf16 varies"
measure 0 precision
answer="no bf16"
measure 0 precision
says '^    precision: loss of fp32 2.0[0-9]+, mean of 5 seeds; fp16 '
answer=

# ---- tests of kernels: what is selected exists ----
measure 0 kernels products stored
called "^test_kernels DT_CHECK_GPU=1 DT_TEST=test_kernels_agree_\* "
sed -n "s/^ *do_.*kernel_tests \(.*\); }/\1/p" "$src/tests/engine/gpu/measure.sh" | tr -d "'" | tr ' ' '\n' | while read -r pattern; do
    grep -q "void ${pattern%\*}[a-z0-9_]*(void" "$src/tests/engine/cuda/test_kernels.c" || echo "no test $pattern"
done >"$work/unknown"
sed -n "s/^cases='\(.*\)'$/\1/p" "$src/tests/engine/gpu/measure.sh" | tr ',' '\n' | while read -r name; do
    grep -qF "{\"$name\", " "$src/tests/engine/ops/cases.c" || echo "no case $name"
done >>"$work/unknown"
[ ! -s "$work/unknown" ] || { cp "$work/unknown" "$out"; bad "measure.sh selects what does not exist"; }
n_checks=$((n_checks + 2))

# ---- several GPUs ----
measure 0 ranks
says '^ranks +skipped .* 1 GPU here, ranks need two$'
program "$work/bin/mpirun" </dev/null
answer=ranks
measure 0 nccl ranks
says '^ranks +passed .* 3 GPUs: NCCL, MPI and one GPU end in equal states$'
called '^test_nccl '
called '^dtrain --plugin phase1_world_model .* --nproc 3 --set comm.backend=nccl '
called '^dtrain --plugin phase1_world_model .* --nproc 3 --set comm.backend=mpi '
answer="ranks differ"
measure 1 ranks
says '^ranks +FAILED .* 3 ranks by nccl end in a different state than one GPU$'
answer="ranks fail"
measure 1 ranks
says '^ranks +FAILED .* training by nccl with 3 ranks failed$'
answer=

# ---- compute-sanitizer: cuBLASLt's kernels are left out but for memcheck ----
measure 0 memcheck racecheck synccheck initcheck
for tool in memcheck racecheck synccheck initcheck; do
    called "^compute-sanitizer --tool $tool --target-processes all .*--error-exitcode 9 .*/tests/engine/cuda/test_finish$"
    called "^compute-sanitizer --tool $tool .*/tests/engine/cuda/test_kernels$"
    [ $tool = memcheck ] || called "^compute-sanitizer --tool $tool .*--kernel-name-exclude regex=cublas\|cutlass\|nvjet\|gemm"
done
n_checks=$((n_checks + 1))
! grep -q 'tool memcheck.*exclude' "$work/calls" || bad "memcheck leaves kernels out"
called '^test_kernels DT_CHECK_GPU=1 DT_TEST=test_products_of_rounded_inputs DT_CASE=linear,'
for tool in memcheck synccheck initcheck; do
    answer="$tool finds"
    measure 1 memcheck racecheck synccheck initcheck
    says "^$tool +FAILED .* test_finish under $tool ended with 9: ERROR SUMMARY: 3 errors$"
    says '^3 passed, 1 failed, 0 skipped$'
done
answer="racecheck finds"
measure 1 racecheck
says 'ended with 9: RACECHECK SUMMARY: 3 hazards displayed \(3 errors, 0 warnings\)$'
answer=warnings
measure 1 racecheck
says 'test_finish: RACECHECK SUMMARY: 2 hazards displayed \(0 errors, 2 warnings\)$'
answer="child finds"
measure 1 memcheck
says 'test_finish: ERROR SUMMARY: 1 error$'
answer="not begun"
measure 1 memcheck
says 'test_finish under memcheck ended with 255: it reports nothing'
answer="test fails"
measure 1 initcheck
says 'test_finish under initcheck ended with 1: it reports nothing'
answer=silent
measure 1 synccheck
says 'test_finish: synccheck did not report what it found'
answer=

# ---- the timeline ----
report() { # CODE PATTERN TIMELINE
    n_checks=$((n_checks + 1))
    timeline "$3" >"$work/one.csv"
    test -z "${4:-}" || printf '%s' "$4" >>"$work/one.csv"
    python3 "$src/tests/engine/gpu/trace_report.py" "$work/one.csv" "0.726 ms" >"$out" 2>&1
    got=$?
    [ $got -eq "$1" ] && grep -qE -e "$2" "$out" || bad "the report of \"$3\" ended with $got, expected $1 and \"$2\""
}
report 0 '^= trace: 9 steps, 100.0 us a step, bound 0.726 ms; 3.0 kernels and 1.0 copies' ""
report 0 ' 2.0 over 3 us, 2.0 over 10 us, mean [0-9.]+ us, longest 30 us$' ""
report 0 '^ +50.00 +50.0% +1.0 +50.00  4x1x1 128x1x1 r32 s48 l0  product<\(int\)4>$' ""
report 0 '^= trace: 9 steps' "" "k,29999"
report 1 '3 steps in 12 records: too few to report' few
report 1 '0 steps in 80 records' other
report 1 'record 44 of 80 has no time' "no time"
rm "$work/build/tests/engine/gpu/libcupti_trace.so"
measure 0 trace
says '^trace +skipped .*built without CUPTI'

# the library itself: it loads, and says so where it cannot record
if [ -s "$built/tests/engine/gpu/libcupti_trace.so" ]; then
    n_checks=$((n_checks + 1))
    DT_TRACE_CSV=$work/library.csv python3 -c 'import ctypes, sys
ctypes.CDLL(sys.argv[1]).InitializeInjection()' "$built/tests/engine/gpu/libcupti_trace.so" >"$out" 2>&1
    grep -q '^cupti_trace: 0 records, 0 dropped$' "$out" && grep -q '^kind,start,end,' "$work/library.csv" ||
        bad "libcupti_trace.so does not load"
fi
echo "$n_checks checks, $failed failed"
[ $failed -eq 0 ]
