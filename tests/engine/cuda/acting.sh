#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Acting on the emulated GPU: PPO in four environments ends in the same bits however many batches of observations are in
# flight, whichever thread steps the environments, with graphs and without, whatever is late (DT_EMULATED_SEED), and stopped and
# resumed; evaluations give the same numbers. A round waits once for each batch, and leaves the GPU without work when it
# ends. A call that is refused in the middle of a round ends the run with the code for it, and what goes on from its
# last checkpoint ends in the same bits.
set -u

build=${DT_BUILDDIR:-.}
work=$(mktemp -d ./test-cuda-acting-XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT INT TERM
DTRAIN_PLUGIN_PATH=$build/tests/engine/cuda/emulated:$build/phases/.libs:$build/models/.libs:$build/plugins/.libs
export DTRAIN_PLUGIN_PATH
unset DT_EMULATED_SEED DT_EMULATED_COUNTS DT_EMULATED_REFUSE || true

fail() {
    echo "FAIL: $*"
    tail -n 5 "$work/said"
    exit 1
}

world_of() { # NAME
    case $1 in
        pole) echo "--set env.id=cartpole" ;;
        pendulum) echo "--set env.id=pendulum" ;;
        grid) echo "--set env.id=env_traffic --set env_traffic.scenario=grid --set env_traffic.control=signals
            --set env_traffic.episode_s=60 --set env_traffic.max_vehicles=32" ;;
        merge) echo "--set env.id=env_traffic --set env_traffic.scenario=merge --set env_traffic.episode_s=60
            --set env_traffic.max_vehicles=12 --set env_traffic.agents=3 --set env_traffic.penetration=0.5
            --set models.controller=controller_influence --set controller_influence.hidden=8
            --set controller_influence.layers=1 --set controller_influence.heads=1
            --set models.shield=shield_barrier" ;;
    esac
}

# train WORLD DIR arguments...: its exit code
train() {
    options=$(world_of "$1")
    dir=$2
    shift 2
    # shellcheck disable=SC2086 # options and their values
    "$build/dtrain" --plugin phase2_ppo --run-dir "$work/$dir" --threads 1 -q --device cuda $options \
        --set env.instances=5 --set data.batch=10 --set data.shards=2 --set phase2_ppo.fragment=4 \
        --set phase2_ppo.train_batch=20 --set phase2_ppo.iterations=2 --set phase2_ppo.sgd_epochs=2 \
        --set evaluation.baselines= --set evaluation.seeds=1 --set evaluation.episodes=1 "$@" 2>"$work/said"
}

state_hash() { # DIR
    "$build/dtrain" ckpt inspect "$work/$1" --json 2>/dev/null | sed -n 's/.*"state_hash":"\([0-9a-f]*\)".*/\1/p'
}

same() { # DIR DIR WHAT
    a=$(state_hash "$1")
    test -n "$a" && test "$a" = "$(state_hash "$2")" || fail "$3: other bits"
}

worlds="pole merge"
[ "${DT_LONG:-}" != 1 ] || worlds="pole pendulum grid merge"
for world in $worlds; do
    train $world $world --set engine.in_flight=1 --no-graphs || fail "$world: exit code $?"
    if [ "${DT_LONG:-}" = 1 ]; then
        DT_EMULATED_SEED=3 train $world $world-2 --set engine.in_flight=2 || fail "$world, 2 in flight: exit code $?"
        same $world $world-2 "$world, 2 in flight"
    fi
    DT_EMULATED_SEED=8 train $world $world-4 --set engine.in_flight=4 --set env.workers=2 ||
        fail "$world, 4 in flight: exit code $?"
    same $world $world-4 "$world, 4 in flight and workers"
    echo "$world: the same bits with 1 and 4 in flight"
done

# the next round in parallel with learning, by the parameters of before it
train pole beside --set phase2_ppo.overlap=1 --set phase2_ppo.iterations=4 --set engine.in_flight=1 --no-graphs ||
    fail "beside learning: exit code $?"
DT_EMULATED_SEED=5 train pole beside-4 --set phase2_ppo.overlap=1 --set phase2_ppo.iterations=4 \
    --set engine.in_flight=4 --max-steps 6 || fail "beside learning, to be stopped: exit code $?"
DT_EMULATED_SEED=6 "$build/dtrain" run --resume "$work/beside-4" --device cuda --max-steps 1000 -q 2>"$work/said" ||
    fail "beside learning, resumed: exit code $?"
same beside beside-4 "beside learning, stopped and resumed"
echo "the same bits beside learning, stopped and resumed"

train pole stopped --max-steps 3 || fail "to be stopped: exit code $?"
"$build/dtrain" run --resume "$work/stopped" --device cuda --max-steps 1000 --set engine.in_flight=4 -q 2>"$work/said" ||
    fail "resumed: exit code $?"
same pole stopped "stopped and resumed"
for n in 1 4; do
    DT_EMULATED_SEED=$n "$build/dtrain" eval --checkpoint "$work/pole" --device cuda --set engine.in_flight=$n \
        --seeds 1,2,3 --episodes 1 --json -q 2>"$work/said" >"$work/eval$n" || fail "evaluation: exit code $?"
done
cmp "$work/eval1" "$work/eval4" || fail "evaluations with 1 and 4 in flight"

# refused CALL:N CODE TEXT: in the middle of a run, which goes on from where it was saved last
refused() {
    rm -rf "$work/refused"
    DT_EMULATED_REFUSE=$1 train pole refused --set checkpoint.every_steps=1
    code=$?
    test $code -eq "$2" || fail "$1 refused: exit code $code instead of $2"
    grep -q "$3" "$work/said" || fail "$1 refused: \"$3\" is not said"
    "$build/dtrain" run --resume "$work/refused" --device cuda --max-steps 1000 -q 2>"$work/said" ||
        fail "$1 refused and resumed: exit code $?"
    same pole refused "$1 refused and resumed"
}

DT_EMULATED_COUNTS=$work/counts train pole counted || fail "counted: exit code $?"
count() { # CALL
    sed -n "s/^$1 //p" "$work/counts"
}
graphs=$(count cudaGraphLaunch)
refused "cudaGraphLaunch:$((graphs * 3 / 4))" 5 "cudaGraphLaunch failed: an illegal memory access"
refused "cudaEventSynchronize:$(($(count cudaEventSynchronize) * 3 / 4))" 5 "cudaEventSynchronize failed"
refused "kernel:$(($(count kernel) - 5))" 5 "an illegal memory access"
echo "refused calls end the run with code 5, and it goes on"
