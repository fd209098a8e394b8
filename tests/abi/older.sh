#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Plugins that were compiled with the headers of an older minor of the contract (tests/abi/older) load, keep their
# promises, and train to the bits of the same sources compiled with the headers of today.
set -u
dtrain=$DT_BUILDDIR/dtrain
older=$DT_SRCDIR/tests/abi/older
strangers=$DT_SRCDIR/tests/strangers
cc=${CC:-cc} cxx=${CXX:-g++} # "ccache gcc" is one, too
command -v "${cc%% *}" >/dev/null 2>&1 || { echo "skipped: no C compiler"; exit 77; }
work=$(mktemp -d ./test-older-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
cases=0
failed=0
fail() {
    echo "FAIL: $*"
    failed=$((failed + 1))
}

# build FOLDER HEADERS SOURCE NAME
build() {
    mkdir -p "$work/$1"
    case $3 in
        *.cpp) compiler="${CXX:-g++} -std=c++17" ;;
        *) compiler="${CC:-cc} -std=c11" ;;
    esac
    # shellcheck disable=SC2086
    $compiler -O1 -I"$2" -DDT_PLUGIN_NAME="$4" -fPIC -fvisibility=hidden -shared -Wl,-z,defs -o "$work/$1/$4.so" "$3" -lm \
        >"$work/said" 2>&1 || { fail "$3 does not build with $2"; head -n 5 "$work/said"; return 1; }
}

# run FOLDER NAME OPTION...: two halves, the second a resume
run() {
    folder=$1 name=$2
    shift 2
    DTRAIN_PLUGIN_PATH=$work/$folder "$dtrain" run "$@" --max-steps 3 --threads 1 -q --run-dir "$work/$folder-$name" \
        --set checkpoint.every_seconds=0 --set report.enabled=false >"$work/said" 2>&1 &&
        DTRAIN_PLUGIN_PATH=$work/$folder "$dtrain" run "$@" --resume "$work/$folder-$name" --max-steps 6 --threads 2 -q \
            >"$work/said" 2>&1 || { fail "$name of $folder does not train"; tail -n 3 "$work/said"; return 1; }
}
weights() { cat "$work/$1/checkpoints/$(cat "$work/$1/checkpoints/LATEST")/model.safetensors"; }

# holds MINOR NAME SOURCE OPTION...
holds() {
    minor=$1 name=$2 source=$3
    shift 3
    cases=$((cases + 1))
    build "$minor" "$older/$minor" "$source" "$name" && build now "$DT_SRCDIR/include" "$source" "$name" || return
    "$dtrain" check "$work/$minor/$name.so" >"$work/said" 2>&1 || { fail "check of $name, $minor"; tail -n 3 "$work/said"; }
    grep -q "ABI $minor, " "$work/said" || fail "$name was not compiled for $minor: $(head -n 1 "$work/said")"
    run "$minor" "$name" "$@" && run now "$name" "$@" || return
    weights "$minor-$name" >"$work/then"
    weights "now-$name" | cmp -s - "$work/then" || fail "$name, compiled for $minor, ends in other bits than today"
}

small="--set data.batch=16 --set training.eval_interval=0"
ppo="--plugin phase2_ppo --set phase2_ppo.train_batch=64 --set phase2_ppo.fragment=16 --set data.batch=32
     --set training.eval_interval=0"
# shellcheck disable=SC2086
{
    holds 1.0 fit "$older/1.0/fit.c" --plugin fit $small
    holds 1.0 drive "$older/1.0/drive.c" --plugin phase1_world_model --set models.world=drive --set risk_gnn.hidden=16 $small
    holds 1.1 conv_world "$strangers/conv_world.c" --plugin phase1_world_model --set models.world=conv_world \
        --set risk_gnn.hidden=16 $small
    holds 1.1 pursuit "$strangers/pursuit.c" $ppo --set env.id=pursuit --set models.controller=pursuit_controller
    holds 1.1 dqn "$strangers/dqn.c" --plugin dqn --set env.id=cartpole --set dqn.collect_steps=4 --set dqn.updates=2 \
        --set dqn.learning_starts=64 --set dqn.capacity=128 --set dqn.target_every=2 $small
    if command -v "${cxx%% *}" >/dev/null 2>&1; then
        holds 1.1 cliff "$strangers/cliff.cpp" $ppo --set env.id=cliff
    fi
}

echo "$cases cases, $failed failed"
[ "$failed" -eq 0 ]
