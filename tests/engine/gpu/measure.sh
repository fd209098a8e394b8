#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Tests and measures dtrain on a machine with a GPU, in stages of which each has a time box. A stage that fails or hangs
# does not stop the others. One line for each stage is written to $OUT/summary.txt the moment it ends.
#
#   sh measure.sh              part A, then part B if part A could make a training step
#   sh measure.sh A | B        that part
#   sh measure.sh check        what passes or fails, without measurements (make check-gpu)
#   sh measure.sh STAGE...     these stages; --list prints all
#
#   OUT        folder for results (gpu-results): at most 8 files of at most 16 MiB
#   DEADLINE   seconds for everything (560; 0: unlimited)
#   BOX        factor on time boxes (1)
#
# Exit codes: 0 every stage passed or was skipped, 1 one failed, exceeded its time box or was not run, 2 wrong usage,
# 77 no GPU can be used.
set -u
build=${DT_BUILDDIR:-.}
src=${DT_SRCDIR:-.}
PATH=$PATH:/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer:/usr/local/cuda/extras/compute-sanitizer
for d in /opt/nvidia/nsight-compute/*/; do
    PATH=$PATH:${d%/}
done
PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
export PATH PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE
unset DTRAIN__ENGINE__DEVICE DTRAIN_PLUGIN_PATH DT_EMULATED_MODULE || true

# NAME, time box in s, file, what it does; in the order of their value
stages_a='doctor            20 tests.log       driver, libraries, clocks, a round trip through the GPU
environment       20 tests.log       GPU, toolkit, PyTorch, libraries of every program
finish            40 tests.log       sums of shards, norm, update (tests/engine/cuda/test_finish.c)
kernels           50 tests.log       every operation and derivative in fp32 against double precision
products          40 tests.log       products and recurrent layers in TF32, bf16 and fp16
train             40 tests.log       steps of a small problem against the CPU
losses            60 tests.log       phase 1 at its usual size: CPU, fp32, bf16, fp16; with and without graphs
runs              60 tests.log       phase 1: graphs, groups, resume, kill, evaluation
steps            100 speed.log       time of a step: presets, precisions, batches, readers
trace             45 speed.log       timeline of every kernel, copy and gap (CUPTI)
stored            60 tests.log       what is stored in bf16 and fp16'
stages_b='peer             100 speed.log       against PyTorch, guide: eager, and a whole step as one CUDA graph
ceilings          25 speed.log       copies, products and launches that this GPU reaches by PyTorch
acting            60 rl.log          phase 2 on the CPU and on the GPU: time of a round by parts
peer_15m          90 speed.log       against PyTorch, 15m
memcheck          60 sanitizers.log  compute-sanitizer over chosen cases
peer_compile     120 speed.log       against torch.compile, a whole step as one CUDA graph
racecheck         60 sanitizers.log  the same for races within a block; kernels of cuBLASLt are left out
counters          60 ncu.csv         memory, occupancy and registers of each kernel (ncu)
precision         60 tests.log       bf16 and fp16 reach the loss of fp32, mean of several seeds
nccl              20 tests.log       NCCL with one rank (tests/engine/cuda/test_nccl.c)
synccheck         40 sanitizers.log  barriers; kernels of cuBLASLt are left out
initcheck         40 sanitizers.log  reads of memory that was not written; kernels of cuBLASLt are left out'
stages_more='ranks             90 tests.log       a rank for each of several GPUs: NCCL, MPI and one GPU give equal bits'
checks='doctor finish kernels products stored train nccl ranks runs precision memcheck racecheck synccheck initcheck trace'

table() { # of all stages
    printf '%s\n' "$stages_a" "$stages_b" "$stages_more"
}
names() { # of lines of a table
    printf '%s\n' "$1" | awk '{ print $1 }'
}

# ---- what runs within a stage ------------------------------------------------------------------------------------

dtrain=$build/dtrain
threads=$(($(nproc 2>/dev/null || echo 2) - 1))
test $threads -ge 2 || threads=2
presets=${DT_GPU_PRESETS:-guide 15m}
small=${DT_GPU_SET:-} # further options of every training
copies=16             # of the recording, so that an epoch has many steps: the host waits for the last step of each

skip() {
    echo "skipped: $*"
    exit 77
}

phase1() { # OPTIONS: of the usual size; ends the stage where it fails
    # shellcheck disable=SC2086
    "$dtrain" --plugin phase1_world_model --threads "$threads" --set training.epochs=100000 --set training.eval_interval=0 \
        --set report.enabled=false -q $small "$@" || exit $?
}

losses_of() { # RUN
    sed -n 's/.*"loss":\([-+0-9.e]*\).*/\1/p' "$1/metrics.jsonl"
}

state_of() { # RUN
    "$dtrain" ckpt inspect "$1" --json | sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p'
}

need_gpu() { # ends the stage with code 5 and the reason where no GPU can be used
    "$dtrain" --plugin phase1_world_model --device cuda --dry-run -q >/dev/null || exit $?
}

large_store() { # made by the first stage that needs it
    store=$work/store
    test ! -e "$store/store.json" || return 0
    rm -rf "$work/making" "$store"
    mkdir "$work/making"
    PYTHONPATH=$src/bench python3 -c 'import sys, common
common.copy_scenes(*sys.argv[1:3], int(sys.argv[3]), *sys.argv[4:])' \
        "$dtrain" "$build/share/demo.store" $copies "$work/making" "$store" && rm -rf "$work/making"
}

need_python() { # ends the stage where there is none
    command -v python3 >/dev/null || skip "no python3 on this machine"
}

with_gpu() { # PROGRAM...: a test program on the GPU; 5 without one
    DT_CHECK_GPU=1 "$@"
    code=$?
    if [ $code -eq 77 ]; then
        need_gpu
        echo "the test was skipped, but dtrain can use this GPU"
        exit 1
    fi
    return $code
}

# Tests of test_kernels. A pattern that matches no test fails there.
kernel_tests() { # PATTERN...
    for pattern; do
        DT_TEST=$pattern with_gpu "$build/tests/engine/cuda/test_kernels" || exit $?
    done
}

do_doctor() {
    "$dtrain" doctor >"$work/doctor" 2>&1
    cat "$work/doctor"
    grep -E '^(PASS|WARN|FAIL) +([^ ]* )?(GPU|CUDA|cuda|driver|NVIDIA|NCCL)' "$work/doctor" >"$work/doctor.gpu" ||
        { echo "doctor reports nothing of GPUs"; exit 1; }
    grep -v '^PASS' "$work/doctor.gpu" | sed 's/^/= /'
    head -n 1 "$work/doctor.gpu"
    ! grep -q '^FAIL' "$work/doctor.gpu"
}

do_environment() {
    timeout -k 1 10 nvidia-smi -q 2>/dev/null | grep -E 'Product Name|Driver Version|CUDA Version|SM  |Memory  |Graphics  |Persistence|Compute Mode|MIG|Power Limit' | head -n 40
    nvcc --version 2>/dev/null | tail -n 2
    for tool in ncu compute-sanitizer nvcc mpirun gcc python3; do
        printf '%s: %s\n' $tool "$(command -v $tool || echo none)"
    done
    python3 -c 'import torch, numpy; print("torch", torch.__version__, "CUDA", torch.version.cuda, "numpy", numpy.__version__)' 2>&1 | tail -n 1
    nproc
    free -g 2>/dev/null | head -n 2
    uname -r
    echo "CUDA's libraries: ${DT_CUDA_PATH:-the usual folders of this machine}"
    LD_LIBRARY_PATH=$build/lib${DT_CUDA_PATH:+:$DT_CUDA_PATH}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
    missing=0
    for f in "$build/.libs/dtrain" "$build"/core/engine/backend/cuda/.libs/*.so "$build/.libs/bench_phase1_step" "$build"/tests/engine/cuda/.libs/test_*; do
        test -e "$f" || continue
        ldd "$f" | grep -q 'not found' || continue
        ldd "$f" | grep 'not found' | sed "s|^|$f |"
        missing=1
    done
    ldd "$build"/core/engine/backend/cuda/.libs/backend_cuda.so | grep -E 'libcu'
    test $missing -eq 0 && echo 'every library is found'
    exit $missing
}

do_finish() { with_gpu "$build/tests/engine/cuda/test_finish"; }
do_kernels() { kernel_tests 'test_every_op_*' 'test_too_many_*' 'test_kernels_agree_*'; }
do_products() { kernel_tests 'test_products_*'; }
do_stored() { kernel_tests 'test_what_is_stored_*'; }
do_train() { with_gpu "$build/tests/engine/cuda/test_train"; }
do_nccl() { with_gpu "$build/tests/engine/cuda/test_nccl"; }
do_runs() { sh "$src/tests/engine/device/run.sh" gpu; }

do_losses() {
    one() { # NAME OPTIONS
        name=$1
        shift
        phase1 --max-steps 40 --seed 3 --set engine.synchronous=true --run-dir "$work/$name" "$@"
        losses_of "$work/$name" >"$work/$name.loss"
        echo "$name: state $(state_of "$work/$name")"
    }
    one gpu --device cuda
    one eager --device cuda --no-graphs
    one bf16 --device cuda --set amp.enabled=true
    one again --device cuda --set amp.enabled=true
    one fp16 --device cuda --set amp.enabled=true --set amp.dtype=fp16
    one cpu --device cpu
    for pair in gpu:eager bf16:again; do
        test "$(state_of "$work/${pair%:*}")" = "$(state_of "$work/${pair#*:}")" || {
            echo "${pair%:*} and ${pair#*:} end in different states"
            exit 1
        }
    done
    # later losses of different precisions grow apart, so that only the first steps decide
    paste "$work/cpu.loss" "$work/gpu.loss" "$work/bf16.loss" "$work/fp16.loss" | awk '
        { print
          for (i = 2; i <= 4; i++) {
              d = ($i - $1) / ($1 > 1 ? $1 : 1); d = d < 0 ? -d : d
              if (d > all[i]) all[i] = d
              if (NR <= 5 && d > first[i]) first[i] = d
          } }
        END {
            printf "= losses: %d steps, largest distance from the CPU: fp32 %.1e, bf16 %.1e, fp16 %.1e (first 5: %.1e, %.1e, %.1e)\n", \
                NR, all[2], all[3], all[4], first[2], first[3], first[4]
            exit NR < 5 || first[2] > 1e-3 || first[3] > 5e-2 || first[4] > 5e-2
        }'
}

do_steps() {
    need_python
    need_gpu
    case $(timeout -k 1 10 nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) in
        *H100*) gpu=H100 ;;
        *H200*) gpu=H200 ;;
        *A100*) gpu=A100 ;;
        *4090*) gpu=4090 ;;
        *) gpu= ;;
    esac
    large_store || exit 1
    set -- --driver "$build/bench_phase1_step" --dtrain "$dtrain" --store "$store" --threads "$threads"
    test -z "$gpu" || set -- "$@" --predict $gpu
    for preset in $presets; do
        set -- "$@" --preset "$preset"
    done
    # shellcheck disable=SC2086
    python3 "$src/bench/gpu/steps.py" "$@" --repeats 3 $small
}

do_trace() {
    test -s "$build/tests/engine/gpu/libcupti_trace.so" || skip "built without CUPTI (no cupti.h in the toolkit)"
    need_python
    need_gpu
    large_store || exit 1
    for preset in $presets; do
        csv=$work/trace_$preset.csv
        # shellcheck disable=SC2086
        printf 'step 40\nstep 40\n' | CUDA_INJECTION64_PATH=$build/tests/engine/gpu/libcupti_trace.so DT_TRACE_CSV=$csv \
            timeout --foreground 25 "$build/bench_phase1_step" "$work" 0 --plugin phase1_world_model --threads "$threads" \
            -q --device cuda --set data.workers=8 --set data.store="$store" --set training.epochs=100000 \
            --set data.batch=64 --set risk_gnn.preset="$preset" --set world_lstm.preset="$preset" \
            --set amp.enabled=true $small >"$work/out" 2>"$work/err"
        code=$?
        tail -n 2 "$work/err"
        if [ ! -s "$csv" ]; then
            echo "no trace: the program ended with code $code, and CUPTI was not loaded (libcupti.so: pip install nvidia-cuda-cupti)"
            exit 1
        fi
        gzip -c "$csv" >"$out/trace_$preset.csv.gz"
        test "$(stat -c %s "$out/trace_$preset.csv.gz")" -le "$max_bytes" ||
            head -c $((max_bytes * 4)) "$csv" | gzip -c | head -c "$max_bytes" >"$out/trace_$preset.csv.gz"
        python3 "$src/tests/engine/gpu/trace_report.py" "$csv" | sed "s/^= trace/= trace $preset bf16 batch 64/" >"$work/report"
        cat "$work/report"
        grep -q '^= ' "$work/report" || exit 1
    done
}

peer() { # OPTIONS
    need_python
    python3 -c 'import torch, numpy' 2>&1 || skip "no PyTorch or numpy here"
    need_gpu
    large_store || exit 1
    # shellcheck disable=SC2086
    python3 "$src/bench/gpu/peer.py" --driver "$build/bench_phase1_step" --store "$store" --threads "$threads" \
        --batch 64 --pairs 7 $small "$@"
}
do_peer() { peer --preset guide --only dense --only graph --box 40; }
do_peer_15m() { peer --preset 15m --only dense --only graph --box 40; }
do_peer_compile() { peer --preset guide --only compile --box 105; }
do_ceilings() {
    need_python
    python3 "$src/bench/gpu/ceilings.py"
}

do_acting() {
    need_gpu
    for env in env_traffic:16 cartpole:64; do
        for device in cuda cpu; do
            run=$work/${env%:*}-$device
            "$dtrain" --plugin phase2_ppo --set env.id="${env%:*}" --set env.instances="${env#*:}" --device $device \
                --threads "$threads" --set phase2_ppo.iterations=12 --set training.eval_interval=0 \
                --set evaluation.baselines= --set report.enabled=false --seed 5 --run-dir "$run" -q || exit $?
            # means of the later half of the rounds
            grep '"time/policy"' "$run/metrics.jsonl" | awk -v what="${env%:*} $device" '
                { line[NR] = $0 }
                END {
                    n = split("charts/SPS time/policy time/env time/env_wait time/learn", key, " ")
                    for (i = int(NR / 2) + 1; i <= NR; i++)
                        for (k = 1; k <= n; k++)
                            if (match(line[i], "\"" key[k] "\":[-+0-9.e]+")) {
                                value = substr(line[i], RSTART, RLENGTH); sub(/.*:/, "", value)
                                sum[k] += value; count[k]++
                            }
                    text = "= acting " what ":"
                    for (k = 1; k <= n; k++) if (count[k]) text = text sprintf(" %s %.4g", key[k], sum[k] / count[k])
                    print text
                    exit NR == 0
                }' || exit 1
        done
    done
}

# Means over seeds, because 200 steps of one seed may end 1 % apart without a mistake: a precision fails where its mean
# distance from fp32 exceeds 1 % and two standard errors.
do_precision() {
    need_gpu
    seeds=${DT_GPU_SEEDS:-3 4 5 6 7}
    : >"$work/precision"
    for seed in $seeds; do
        for p in fp32 bf16 fp16; do
            half=
            test $p = fp32 || half="--set amp.enabled=true --set amp.dtype=$p"
            # shellcheck disable=SC2086
            (phase1 --device cuda --max-steps 200 --seed "$seed" $half --run-dir "$work/$p-$seed") 2>"$work/err" || {
                code=$?
                cat "$work/err"
                case $(cat "$work/err") in
                    *sm_80* | *"compute capability"*) echo "$p is rejected on this GPU"; continue ;;
                esac
                exit $code
            }
            losses_of "$work/$p-$seed" | tail -n 20 |
                awk -v p=$p -v seed="$seed" '{ s += $1 } END { print p, seed, s / NR }' >>"$work/precision"
            rm -rf "$work/$p-$seed"
        done
    done
    cat "$work/precision"
    awk '{ loss[$1, $2] = $3; seeds[$2]; half[$1] }
        END {
            for (s in seeds) { mean += loss["fp32", s]; n++ }
            mean /= n; bad = 0
            printf "= precision: loss of fp32 %.4g, mean of %d seeds", mean, n
            scale = mean < 0 ? -mean : mean; scale = scale > 1 ? scale : 1
            for (p in half) if (p != "fp32") {
                sum = squares = 0
                for (s in seeds) { d = loss[p, s] - loss["fp32", s]; sum += d; squares += d * d }
                d = sum / n; error = n > 1 ? sqrt((squares - n * d * d > 0 ? squares - n * d * d : 0) / (n * (n - 1))) : 0
                printf "; %s %+.2f %% (standard error %.2f %%)", p, 100 * d / scale, 100 * error / scale
                d = d < 0 ? -d : d
                if (!(d <= 0.01 * scale || d <= 2 * error)) bad = 1
            }
            print bad ? ": too far" : ""
            exit bad
        }' "$work/precision"
}

# as many ranks as GPUs, at most 8
do_ranks() {
    n=$("$dtrain" doctor --json | tr '{' '\n' | grep -cE '"check":"cuda:[0-9]+"')
    test "$n" -ge 2 || skip "$n GPU here, ranks need two"
    command -v mpirun >/dev/null || skip "no mpirun here, which starts ranks"
    n=$((n > 8 ? 8 : n))
    for way in alone mpi nccl; do
        start="--nproc $n --set comm.backend=$way"
        test $way != alone || start=
        # shellcheck disable=SC2086 # options
        (phase1 --device cuda --max-steps 40 --seed 3 $start --set data.shards=8 --run-dir "$work/ranks-$way") ||
            { echo "training by $way with $n ranks failed"; exit 1; }
        state_of "$work/ranks-$way" >"$work/ranks-$way.hash"
        test -s "$work/ranks-$way.hash" && cmp -s "$work/ranks-alone.hash" "$work/ranks-$way.hash" ||
            { echo "$n ranks by $way end in a different state than one GPU"; exit 1; }
    done
    echo "$n GPUs: NCCL, MPI and one GPU end in equal states"
}

# Kernels of cuBLASLt are third-party: only memcheck looks at them. Cases: one of each of our kernels, and shapes
# that use several blocks, clusters and warps. Clean when the tool reports a number of errors or hazards, and it is 0.
foreign='regex=cublas|cutlass|nvjet|gemm|splitK'
cases='linear,linear relu deep,linear large,gelu,add,div row,max row,concat,slice,step,gather wide,segment mean,reduce columns,reduce max,transpose large,matmul large,pick,unfold round,layernorm 256,softmax wide,gat 8 x 32,graph qk 2 x 132,lstm 64,lstm 37 sequences,gru 64,cumsum wide,dropout,colsum,rowsum,gaussian nll,bce,mse of many,categorical masked,gaussian of steps,ppo clip,value loss'
sanitize() { # TOOL
    command -v compute-sanitizer >/dev/null || skip "no compute-sanitizer on this machine"
    exclude=
    test "$1" = memcheck || exclude="--kernel-name-exclude $foreign"
    for test in test_finish: test_kernels:test_products_of_rounded_inputs test_kernels:test_kernels_agree_with_ref64; do
        said=$work/$1.said
        # shellcheck disable=SC2086
        DT_TEST=${test#*:} DT_CASE=${DT_CASE:-$cases} with_gpu compute-sanitizer --tool "$1" --target-processes all \
            $exclude --print-limit 20 --error-exitcode 9 "$build/tests/engine/cuda/${test%%:*}" >"$said" 2>&1
        code=$?
        cat "$said"
        test $code -ne 77 || exit 77
        found=$(grep -E '^=+ (ERROR|RACECHECK) SUMMARY: ' "$said" | sed 's/^=* //')
        if [ $code -ne 0 ]; then
            echo "${test%:} under $1 ended with $code: ${found:-it reports nothing}"
            exit 1
        fi
        test -n "$found" || { echo "${test%:}: $1 did not report what it found"; exit 1; }
        found=$(echo "$found" | grep -vE 'SUMMARY: 0 (errors|hazards displayed \(0 errors, 0 warnings\))$' | head -n 1)
        test -z "$found" || { echo "${test%:}: $found"; exit 1; }
        echo "${test%:}: nothing found"
    done
    echo "nothing found in test_finish and test_kernels"
}
do_memcheck() { sanitize memcheck; }
do_racecheck() { sanitize racecheck; }
do_synccheck() { sanitize synccheck; }
do_initcheck() { sanitize initcheck; }

do_counters() {
    command -v ncu >/dev/null || skip "no ncu on this machine"
    need_gpu
    # shellcheck disable=SC2086
    echo 'step 12' | timeout --foreground 55 ncu --target-processes all --clock-control none --cache-control none --csv \
        --page raw --launch-skip 900 --launch-count 280 \
        --metrics gpu__time_duration.sum,dram__bytes.sum,lts__t_bytes.sum,sm__warps_active.avg.pct_of_peak_sustained_active,sm__throughput.avg.pct_of_peak_sustained_elapsed,launch__registers_per_thread,launch__occupancy_limit_registers,smsp__inst_executed_op_local_ld.sum \
        "$build/bench_phase1_step" "$work" 0 --plugin phase1_world_model --threads "$threads" -q --device cuda --no-graphs \
        --set data.batch=64 --set training.epochs=100000 --set amp.enabled=true $small || exit $?
}

# ---- stages ------------------------------------------------------------------------------------------------------

max_bytes=$((16 << 20))
out=${OUT:-gpu-results}

case ${1:-} in
    --list)
        table
        exit 0
        ;;
    --within) # one stage, called below
        work=${DT_GPU_WORK:?}
        cd "$work" || exit 1
        "do_$2"
        exit $?
        ;;
esac

has_parts=false
case "${*:-all}" in
    all) wanted="$(names "$stages_a") $(names "$stages_b")" has_parts=true ;;
    A) wanted=$(names "$stages_a") ;;
    B) wanted=$(names "$stages_b") ;;
    check) wanted=$checks ;;
    *)
        wanted=$*
        for name; do
            table | awk '{ print $1 }' | grep -qxF -e "$name" || {
                echo "measure.sh: no stage $name; there are $(table | awk '{ printf "%s ", $1 }')and, given alone, A, B, check" >&2
                exit 2
            }
        done
        ;;
esac
for number in "${DEADLINE:=560}" "${BOX:=1}"; do
    case $number in
        *[!0-9.]* | *.*.* | .) echo "measure.sh: DEADLINE and BOX are numbers, not \"$number\"" >&2; exit 2 ;;
    esac
done
DEADLINE=$(awk -v x="$DEADLINE" 'BEGIN { print int(x) + (x > int(x)) }')

began=$(date +%s)
mkdir -p "$out" && out=$(cd "$out" && pwd) && : >"$out/summary.txt" || {
    echo "measure.sh: results cannot be written to ${out:-$OUT} (OUT=FOLDER selects another)" >&2
    exit 2
}
build=$(cd "$build" && pwd) src=$(cd "$src" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/dtrain-gpu-XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT
running='' name=''
interrupted() { # what runs ends, within 5 s, before its folder is removed
    say "interrupted${name:+ in $name}"
    test -z "$running" || { kill "$running" && wait "$running"; kill_group; } 2>/dev/null
    exit 1
}
kill_group() { # what ignores SIGTERM outlives `timeout`, whose process group it is in
    kill -s KILL -- "-$running" 2>/dev/null
    running=
}
trap interrupted HUP INT TERM
DT_GPU_WORK=$work OUT=$out DT_BUILDDIR=$build DT_SRCDIR=$src
export DT_GPU_WORK OUT DT_BUILDDIR DT_SRCDIR
rm -f "$out/tests.log" "$out/speed.log" "$out/rl.log" "$out/sanitizers.log" "$out/ncu.csv" \
    "$out"/trace_*.csv.gz

is_written=true # does the summary have every line?
say() {
    printf '%s\n' "$*"
    printf '%s\n' "$*" >>"$out/summary.txt" || is_written=false
}

keep() { # FILE: the log of a stage is appended; where too long, its middle is left out
    room=$((max_bytes - $(stat -c %s "$out/$1" 2>/dev/null || echo 0)))
    most=$((room < max_bytes / 4 ? room : max_bytes / 4))
    size=$(stat -c %s "$work/log")
    if [ "$size" -le $most ]; then
        cat "$work/log" >>"$out/$1"
    elif [ $most -gt 4096 ]; then
        {
            head -c $((most / 2 - 200)) "$work/log"
            printf '\n(%d bytes are left out)\n' $((size - most + 400))
            tail -c $((most / 2 - 200)) "$work/log"
        } >>"$out/$1"
    fi
}

figures='^(= |ratio |FAILED )' # lines of a log that belong into the summary
passed=0 failed=0 skipped=0 has_stepped=false
stage() { # NAME
    # shellcheck disable=SC2046 # three words
    set -- $(table | awk -v name="$1" '$1 == name { print $1, $2, $3 }')
    box=$(awk -v box="$2" -v factor="$BOX" 'BEGIN { box = int(box * factor); print (box > 1 ? box : 1) }')
    if [ "$DEADLINE" -gt 0 ]; then
        left=$((DEADLINE - $(date +%s) + began))
        if [ $left -lt 5 ]; then
            failed=$((failed + 1))
            say "$(printf '%-12s not run   the deadline of %d s' "$1" "$DEADLINE")"
            return
        fi
        box=$((box < left ? box : left))
    fi
    from=$(date +%s%N)
    timeout -k 5 "$box" sh "$src/tests/engine/gpu/measure.sh" --within "$1" >"$work/log" 2>&1 </dev/null &
    running=$!
    wait $running
    code=$?
    kill_group
    took=$((($(date +%s%N) - from) / 100000000))
    case $code:$has_gpu in
        0:*) passed=$((passed + 1)) word=passed ;;
        5:false | 77:false) skipped=$((skipped + 1)) word='no GPU' ;;
        77:*) skipped=$((skipped + 1)) word=skipped ;;
        137:*) failed=$((failed + 1)) word=FAILED && test $took -ge $((box * 10)) && word='TIME BOX' ;;
        124:*) failed=$((failed + 1)) word='TIME BOX' ;;
        *) failed=$((failed + 1)) word=FAILED ;;
    esac
    printf '==== %s: %s, exit code %d after %d.%d s\n' "$1" "$word" $code $((took / 10)) $((took % 10)) >>"$out/$3" &&
        keep "$3" || say "$3 cannot be written"
    say "$(printf '%-12s %-8s %4d.%d s  %s' "$1" "$word" $((took / 10)) $((took % 10)) \
        "$(grep -avE "$figures" "$work/log" | grep -a . | tail -n 1 | tr '\t' ' ' | tr -cd '[:print:]' | cut -c 1-160)")"
    # figures, also of a stage that failed or was stopped later
    grep -aE "$figures" "$work/log" | sed 's/^= //; s/^/    /' | cut -c 1-300 >"$work/figures"
    cat "$work/figures"
    cat "$work/figures" >>"$out/summary.txt" || is_written=false
    if grep -aqE '^(= steps |gpu: state )' "$work/log"; then
        has_stepped=true
    fi
    case $word in
        FAILED | TIME*) grep -avE "$figures" "$work/log" | tail -n 12 | cut -c 1-200 | sed 's/^/    | /' ;;
    esac
}

# what was measured where
say "$(cat "$build/VERSION" 2>/dev/null || echo "build folder $build"), $(date -u '+%Y-%m-%d %H:%M') UTC"
if command -v nvidia-smi >/dev/null; then
    say 'GPU, driver, memory, SM clock, its maximum, memory clock, power limit, temperature:'
    gpus=$(timeout -k 5 20 nvidia-smi --format=csv,noheader \
        --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm,clocks.mem,power.limit,temperature.gpu 2>&1 </dev/null | head -n 8)
    say "${gpus:-nvidia-smi reports nothing}"
else
    say 'no nvidia-smi on this machine'
fi
say "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1), $(nproc) CPUs, $(sed -n 's/^PRETTY_NAME=//p' /etc/os-release 2>/dev/null | tr -d '"'), $(ldd --version 2>/dev/null | head -n 1)"
has_gpu=true
timeout -k 5 60 "$dtrain" --plugin phase1_world_model --device cuda --dry-run -q >/dev/null 2>"$work/why" </dev/null
code=$?
case $code in
    0) ;;
    5)
        has_gpu=false
        say "no GPU can be used: $(tail -n 1 "$work/why")"
        ;;
    124 | 137) say "the GPU does not answer within 60 s (dtrain --device cuda --dry-run)" ;;
    *) say "dtrain --device cuda --dry-run ended with code $code: $(tail -n 1 "$work/why")" ;;
esac

for name in $wanted; do
    if $has_parts && [ "$name" = peer ] && ! $has_stepped; then
        say "no training step was made on a GPU: part B is not run (sh measure.sh B runs it all the same)"
        break
    fi
    stage "$name"
done
say "$passed passed, $failed failed, $skipped skipped"
$is_written || {
    echo "measure.sh: $out/summary.txt is not complete, because it cannot be written" >&2
    exit 1
}
$has_gpu || exit 77
test $failed -eq 0
