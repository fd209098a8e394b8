#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# All tests that want a GPU (make check-gpu, or ./check-gpu of a bundle), or the stages that are named. Each passes, fails
# or is skipped with its reason; the last line counts them. Nothing runs without a GPU: then every stage is skipped.
#   doctor      driver, libraries, a round trip through every GPU
#   kernels     every op and derivative against double precision, leaves, padding, bits (tests/cuda/test_kernels.c)
#   finish      sum of leaves, norm, update (tests/cuda/test_finish.c)
#   train       steps of a small problem against the CPU's (tests/cuda/test_train.c)
#   nccl        NCCL by one rank alone (tests/cuda/test_nccl.c)
#   ranks       training of phase 1 by a rank for each GPU: NCCL, the hosts and one GPU alone end in the same bits
#   runs        training of phase 1: the CPU's losses, graphs against kernel by kernel, groups, resume, kill, evaluation
#   precision   bf16 and fp16 reach the loss of fp32 within 1 %
#   memcheck, racecheck, synccheck, initcheck   compute-sanitizer over the kernels and the end of a step
#   launches    kernels of a step and the gaps between them, as nsys sees them
set -u
build=${DT_BUILDDIR:-.}
dtrain=$build/dtrain
DT_CHECK_GPU=1
export DT_CHECK_GPU
logs=$(mktemp -d "${TMPDIR:-/tmp}/check-gpu-XXXXXX") || exit 1
passed=0 failed=0 skipped=0
unset DTRAIN__ENGINE__DEVICE DTRAIN_PLUGIN_PATH || true

stages="doctor kernels finish train nccl ranks runs precision memcheck racecheck synccheck initcheck launches"
wanted=" ${*:-$stages} "
for name in $wanted; do
    case " $stages " in
        *" $name "*) ;;
        *) echo "check_gpu.sh: no stage $name; there are $stages" >&2; exit 2 ;;
    esac
done

stage() { # NAME COMMAND...
    name=$1
    shift
    case $wanted in
        *" $name "*) ;;
        *) return 0 ;;
    esac
    from=$(date +%s)
    ("$@") >"$logs/$name.log" 2>&1 </dev/null
    code=$?
    case $code in
        0) passed=$((passed + 1)) word=passed ;;
        77) skipped=$((skipped + 1)) word=skipped ;;
        *) failed=$((failed + 1)) word=FAILED ;;
    esac
    printf '%-10s %-8s %4d s  %s\n' "$name" "$word" $(($(date +%s) - from)) \
        "$(tail -n 1 "$logs/$name.log" | cut -c 1-160)"
    if [ $word = FAILED ]; then
        tail -n 40 "$logs/$name.log" | sed 's/^/    /'
    fi
}

doctor() {
    "$dtrain" doctor | grep -iE 'gpu|cuda|driver' || { echo "doctor says nothing of GPUs"; return 1; }
}

# the loss after some steps in half precision, within 1 % of full precision's
precision() {
    work=$(mktemp -d "$logs/precision-XXXXXX") || return 1
    for p in fp32 bf16 fp16; do
        half=
        test $p = fp32 || half="--set amp.enabled=true --set amp.dtype=$p"
        # shellcheck disable=SC2086
        "$dtrain" --plugin phase1_world_model --device cuda --set training.epochs=1000 --max-steps 200 --seed 3 $half \
            --set engine.synchronous=true --run-dir "$work/$p" -q || {
            case $(cat "$work/$p/error.log" 2>/dev/null) in
                *sm_80* | *"compute capability"*) echo "$p is refused here"; continue ;;
            esac
            return 1
        }
        sed -n 's/.*"loss":\([-+0-9.e]*\).*/\1/p' "$work/$p/metrics.jsonl" | tail -n 20 |
            awk '{ s += $1 } END { print s / NR }' >"$work/$p.loss"
        echo "$p: mean loss of the last 20 of 200 steps $(cat "$work/$p.loss")"
    done
    for p in bf16 fp16; do
        test -e "$work/$p.loss" || continue
        paste "$work/fp32.loss" "$work/$p.loss" |
            awk '{ d = $1 - $2; d = d < 0 ? -d : d; m = $1 < 0 ? -$1 : $1; exit !(d <= 0.01 * (m > 1 ? m : 1)) }' ||
            { echo "$p is more than 1 % away"; return 1; }
    done
}

# as many ranks as GPUs, at most 8
ranks() {
    n=$("$dtrain" doctor --json | tr '{' '\n' | grep -cE '"check":"cuda:[0-9]+"')
    test "$n" -ge 2 || { echo "$n GPU here, and ranks want two"; return 77; }
    command -v mpirun >/dev/null || { echo "no mpirun here, which starts ranks"; return 77; }
    n=$((n > 8 ? 8 : n))
    for way in alone mpi nccl; do
        start="--nproc $n --set comm.backend=$way"
        test $way != alone || start=
        # shellcheck disable=SC2086 # options
        "$dtrain" --plugin phase1_world_model --device cuda --set training.epochs=1000 --max-steps 40 --seed 3 $start \
            --set data.shards=8 --set training.eval_interval=0 --run-dir "$logs/ranks-$way" -q || {
            echo "training by $way with $n ranks failed"
            return 1
        }
        "$dtrain" ckpt inspect "$logs/ranks-$way" --json | sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p' \
            >"$logs/ranks-$way.hash"
        test -s "$logs/ranks-$way.hash" && cmp -s "$logs/ranks-alone.hash" "$logs/ranks-$way.hash" || {
            echo "$n ranks by $way end in other bits than one GPU alone"
            return 1
        }
    done
    echo "$n GPUs, by NCCL and through the hosts, end in the bits of one"
}

find_tool() { # NAME: where toolkits put it
    PATH=$PATH:/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer:/opt/nvidia/nsight-systems/bin command -v "$1" || {
        echo "no $1 on this machine"
        return 77
    }
}

# Clean when the tool says so: a number of errors or hazards, and that it is 0. The test may be a script that starts the
# program, so children are followed.
sanitize() { # TOOL
    tool=$(find_tool compute-sanitizer) || { echo "$tool"; return 77; }
    for t in test_finish test_kernels; do
        "$tool" --tool "$1" --target-processes all --error-exitcode 9 "$build/tests/cuda/$t" >"$logs/$1.$t" 2>&1
        code=$?
        cat "$logs/$1.$t"
        said=$(grep -E '^=+ (ERROR|RACECHECK) SUMMARY: ' "$logs/$1.$t" | sed 's/^=* //')
        if [ $code -ne 0 ]; then
            echo "$t under $1 ended with $code: ${said:-it reports nothing}"
            return 1
        fi
        test -n "$said" || { echo "$t: $1 did not say what it found"; return 1; }
        if echo "$said" | grep -qvE 'SUMMARY: 0 (errors|hazards displayed \(0 errors, 0 warnings\))$'; then
            echo "$t: $said"
            return 1
        fi
    done
    echo "nothing found in test_finish and test_kernels"
}

# 60 steps under nsys, of which the second half counts; tests/gpu_trace.awk says what is looked at
launches() {
    tool=$(find_tool nsys) || { echo "$tool"; return 77; }
    "$tool" profile --trace=cuda --sample=none --cpuctxsw=none --cuda-graph-trace=node --force-overwrite=true \
        -o "$logs/trace" "$dtrain" --plugin phase1_world_model --device cuda --max-steps 60 --set training.epochs=1000 \
        --set training.eval_interval=0 --run-dir "$logs/traced" -q || { echo "nsys profile failed"; return 1; }
    # the report was called gputrace before 2023
    for report in cuda_gpu_trace gputrace; do
        "$tool" stats --report "$report" --format csv --output - "$logs"/trace.nsys-rep >"$logs/trace.csv" 2>"$logs/trace.err" &&
            grep -q '^Start (ns),' "$logs/trace.csv" && break
    done
    awk -f "${DT_SRCDIR:-.}/tests/gpu_trace.awk" "$logs/trace.csv" || { cat "$logs/trace.err"; return 1; }
}

"$dtrain" --plugin phase1_world_model --device cuda --dry-run -q >/dev/null 2>"$logs/why"
if [ $? -eq 5 ]; then
    echo "no GPU can be used: $(tail -n 1 "$logs/why")"
    skipped=$(echo "$wanted" | wc -w)
else
    stage doctor doctor
    stage kernels "$build/tests/cuda/test_kernels"
    stage finish "$build/tests/cuda/test_finish"
    stage train "$build/tests/cuda/test_train"
    stage nccl "$build/tests/cuda/test_nccl"
    stage ranks ranks
    stage runs sh "${DT_SRCDIR:-.}/tests/device/run.sh" gpu
    stage precision precision
    stage memcheck sanitize memcheck
    stage racecheck sanitize racecheck
    stage synccheck sanitize synccheck
    stage initcheck sanitize initcheck
    stage launches launches
fi
printf '%d passed, %d failed, %d skipped\n' $passed $failed $skipped
if [ $failed -eq 0 ]; then
    rm -rf "$logs"
fi
test $failed -eq 0
