#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs harnesses of this folder that were built with libFuzzer: `make fuzz` calls it in the build folder.
# usage: run.sh PROGRAM...
#   FUZZ_TIME=60    seconds for each (0: no limit, then FUZZ_RUNS must be given)
#   FUZZ_RUNS=N     inputs for each, whatever comes first
#   FUZZ_JOBS=1     harnesses at a time
#   FUZZ_ONLY=NAMES of harnesses, separated by blanks
#   FUZZ_ARGS=       more options of libFuzzer
#   FUZZ_CORPUS=DIR where inputs are kept that reach something new, DIR/<name>/ each; the next run begins with them
# Prints a table; a harness that found something fails, and its input stays as fuzz.found/<name>-*.
set -u
here=$(cd "$(dirname "$0")" && pwd)
seconds=${FUZZ_TIME:-60} runs=${FUZZ_RUNS:--1} jobs=${FUZZ_JOBS:-1} corpus=${FUZZ_CORPUS:-fuzz.corpus}
found=fuzz.found logs=fuzz.logs
mkdir -p "$found" "$logs" "$corpus"
export ASAN_OPTIONS="detect_leaks=1:detect_stack_use_after_return=0:quarantine_size_mb=1:thread_local_quarantine_size_kb=64:malloc_context_size=6"
export UBSAN_OPTIONS=print_stacktrace=1

# what a harness needs beyond the common: longest input, dictionary
options_of() {
    case $1 in
        chunks) echo "-max_len=1500 -dict=$here/dict/json.dict" ;;
        commonroad) echo "-max_len=2400 -dict=$here/dict/xml.dict" ;;
        config) echo "-max_len=512 -dict=$here/dict/cfg.dict" ;;
        csv) echo "-max_len=400 -dict=$here/dict/csv.dict" ;;
        descriptor) echo "-max_len=256" ;;
        elf) echo "-max_len=1600" ;;
        fcd) echo "-max_len=800 -dict=$here/dict/xml.dict" ;;
        manifest) echo "-max_len=1200 -dict=$here/dict/json.dict" ;;
        map) echo "-max_len=1600 -dict=$here/dict/xml.dict" ;;
        metrics) echo "-max_len=800 -dict=$here/dict/json.dict" ;;
        net) echo "-max_len=2400 -dict=$here/dict/xml.dict" ;;
        blocks) echo "-max_len=1024" ;;
        npy) echo "-max_len=256 -dict=$here/dict/npy.dict" ;;
        policy) echo "-max_len=2600 -dict=$here/dict/policy.dict" ;;
        rollouts) echo "-max_len=4400 -dict=$here/dict/json.dict" ;;
        routes) echo "-max_len=800 -dict=$here/dict/xml.dict" ;;
        safetensors) echo "-max_len=400 -dict=$here/dict/json.dict" ;;
        store) echo "-max_len=160" ;;
        yaml) echo "-max_len=600 -dict=$here/dict/yaml.dict" ;;
        *) echo "-max_len=512" ;;
    esac
}

# MB that an input may take at once: a policy says how much room it needs, up to 1 GB
limit_of() {
    case $1 in
        policy) echo 1100 ;;
        *) echo 64 ;;
    esac
}

# limits: an input of a few hundred bytes takes no 64 MB at once, no 512 MB in all, and no 10 s
fuzz() { # program name
    mkdir -p "$corpus/$2"
    # shellcheck disable=SC2046
    "./$1" $(options_of "$2") -max_total_time="$seconds" -runs="$runs" -malloc_limit_mb="$(limit_of "$2")" -rss_limit_mb=512 \
        -timeout=10 -use_value_profile=0 -print_final_stats=1 -artifact_prefix="$found/$2-" ${FUZZ_ARGS:-} \
        "$corpus/$2" "$here/corpus/$2" >"$logs/$2.log" 2>&1 </dev/null
    echo $? >"$logs/$2.code"
}

stat_of() { # log name
    sed -n "s/^stat::$2: *//p" "$1" | tail -n 1
}

list=
for program; do
    name=${program##*/fuzz_}
    case " ${FUZZ_ONLY:-$name} " in
        *" $name "*) list="$list $name" ;;
    esac
    rm -f "$logs/$name.code"
done
running=0
for program; do
    name=${program##*/fuzz_}
    case " $list " in
        *" $name "*) ;;
        *) continue ;;
    esac
    fuzz "$program" "$name" &
    running=$((running + 1))
    if [ "$running" -ge "$jobs" ]; then
        wait
        running=0
    fi
done
wait

failed=0
printf '%-12s %12s %9s %9s %8s %7s\n' harness inputs per_s covered new result
for name in $list; do
    log=$logs/$name.log
    code=$(cat "$logs/$name.code" 2>/dev/null || echo 1)
    covered=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    printf '%-12s %12s %9s %9s %8s %7s\n' "$name" "$(stat_of "$log" number_of_executed_units)" \
        "$(stat_of "$log" average_exec_per_sec)" "${covered:-0}" "$(stat_of "$log" new_units_added)" \
        "$(test "$code" -eq 0 && echo good || echo FOUND)"
    if [ "$code" -ne 0 ]; then
        failed=$((failed + 1))
        grep -a -m 3 -E 'ERROR: |SUMMARY: |runtime error: |this must hold' "$log" | sed 's/^/    /'
        sed -n 's/.*Test unit written to /    input: /p' "$log"
        echo "    the whole log: $logs/$name.log"
    fi
done
test "$failed" -eq 0 || { echo "$failed harnesses found something"; exit 1; }
echo "nothing found"
