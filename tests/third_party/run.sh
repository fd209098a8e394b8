#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plugins as a third party would write them, with nothing but an installed dtrain: each is built by pkg-config,
# passes `dtrain check`, trains and resumes to the same bits; and each is built again so that it exits, crashes, hangs
# or writes where it should not, and `dtrain check` says so.
# usage: tests/third_party/run.sh PREFIX   (where dtrain is installed)
set -u
prefix=$(cd "$1" && pwd) || exit 2
here=$(cd "$(dirname "$0")" && pwd)
PATH=$prefix/bin:$PATH
PKG_CONFIG_PATH=$prefix/lib/pkgconfig:$prefix/share/pkgconfig
export PATH PKG_CONFIG_PATH
unset DTRAIN_PLUGIN_PATH DTRAIN_CONFIG DTRAIN_FAULT || true
export LC_ALL=C NO_COLOR=1 DTRAIN__ENGINE__DEVICE=cpu
cxx=${CXX:-g++} # "ccache g++" is one, too
if ! { command -v pkg-config && command -v "${cxx%% *}"; } >/dev/null; then
    echo "skipped: no pkg-config or C++"
    exit 77
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/third_party-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
passed=0 failed=0

pass() { passed=$((passed + 1)); }
# expect CODE TEXT COMMAND...: the exit code, and a piece of what was said ("": anything, or nothing)
expect() {
    code=$1 text=$2
    shift 2
    "$@" >said 2>&1
    got=$?
    test "$1" != dtrain || cp said verdict
    if [ "$got" -eq "$code" ] && { test -z "$text" || grep -qF -- "$text" said; }; then
        pass
    else
        echo "FAIL: exit code $got (expected $code), expected \"$text\": $*"
        sed 's/^/    /' said | tail -n 20
        failed=$((failed + 1))
    fi
}
# build NAME SOURCE FOLDER FLAG...
build() {
    name=$1 source=$2 folder=$3
    shift 3
    mkdir -p "$folder"
    case $source in
        *.cpp) compiler="${CXX:-g++} -std=c++17" ;;
        *) compiler="${CC:-cc} -std=c11" ;;
    esac
    # shellcheck disable=SC2046,SC2086
    if ! $compiler -O2 -Wall -Wextra -Werror $(pkg-config --cflags dtrain) -DDT_PLUGIN_NAME="$name" -fPIC \
        -fvisibility=hidden -shared -Wl,-z,defs "$@" -o "$folder/$name.so" "$here/$source" -lm; then
        echo "FAIL: $source does not build"
        exit 1
    fi
}
# check_plugin NAME SOURCE STEP...: built, checked, and misbehaving in the steps named
check_plugin() {
    name=$1 source=$2
    shift 2
    build "$name" "$source" good
    expect 0 " 0 failed, " dtrain check "good/$name.so"
    n=0
    for words in "it ended the process with code 0" "it was killed by signal 6" "it did not return within 2 s" \
        "it wrote past the end of a block of"; do
        n=$((n + 1))
        build "$name" "$source" "bad$n" "-DMISBEHAVE=$n"
        # only what never ends is not waited for: others may be slow, on a busy machine
        expect 3 " failed, " dtrain check "bad$n/$name.so" --set "env.timeout_s=$((n == 3 ? 2 : 60))"
        for step in "$@"; do # each of them, whatever the component before did
            expect 0 "$step: $words" cat verdict
        done
    done
}
# the same run whole, on other threads, and stopped and gone on with: model.safetensors must be equal
same_bits() { # NAME STEPS OPTION...
    name=$1 steps=$2
    shift 2
    expect 0 "" dtrain run "$@" --max-steps "$steps" --threads 1 -q --run-dir "$name-whole"
    expect 0 "" dtrain run "$@" --max-steps $((steps / 2)) --threads 2 -q --run-dir "$name-parts"
    expect 0 "" dtrain run "$@" --resume "$name-parts" --max-steps "$steps" --threads 2 -q
    if cmp -s "$name-whole/checkpoints/$(cat "$name-whole/checkpoints/LATEST")/model.safetensors" \
        "$name-parts/checkpoints/$(cat "$name-parts/checkpoints/LATEST")/model.safetensors"; then
        pass
    else
        echo "FAIL: $name: threads or a resume changed bits"
        failed=$((failed + 1))
    fi
}

check_plugin conv_world conv_world.c forward
check_plugin cliff cliff.cpp playing
check_plugin pursuit pursuit.c "environment pursuit: playing" "model pursuit_controller: forward"
check_plugin dqn dqn.c iterate
DTRAIN_PLUGIN_PATH=$work/good
export DTRAIN_PLUGIN_PATH
same_bits conv_world 4 --plugin phase1_world_model --set models.world=conv_world --set data.batch=16 \
    --set risk_gnn.hidden=16 --set checkpoint.every_seconds=0
same_bits cliff 8 --plugin phase2_ppo --set env.id=cliff --set phase2_ppo.train_batch=64 --set phase2_ppo.fragment=16 \
    --set data.batch=32 --set checkpoint.every_seconds=0
same_bits pursuit 8 --plugin phase2_ppo --set env.id=pursuit --set models.controller=pursuit_controller \
    --set phase2_ppo.train_batch=64 --set phase2_ppo.fragment=16 --set data.batch=32 --set checkpoint.every_seconds=0
# the memory is turned over once before the stop, and Q' moves on both sides of it
same_bits dqn 40 --plugin dqn --set env.id=cartpole --set dqn.collect_steps=4 --set dqn.updates=4 \
    --set dqn.learning_starts=64 --set dqn.capacity=128 --set dqn.target_every=6 --set data.batch=16 \
    --set checkpoint.every_seconds=0
# what it takes to look at a rollout's rows in addition to the memory's was planned as well
expect 0 "within the plan" awk -F '"mem/arenas":|"mem/arenas_planned":' 'NF == 3 && $2 + 0 > $3 + 0 { over = 1 }
    NF == 3 { n++ } END { print n && !over ? "within the plan" : "beyond the plan" }' dqn-whole/metrics.jsonl
expect 0 '"metrics"' dtrain eval --checkpoint cliff-whole --seeds 1,2 --episodes 1 --json

echo "third_party: $passed passed, $failed failed"
test "$failed" -eq 0
