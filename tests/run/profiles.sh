#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every shipped profile is found by its name from any folder and is accepted, its values are the ones in force, with
# their origin shown, and with each of them every phase takes its first steps and reports what memory it planned.
set -eu
work=$(mktemp -d "$PWD/test-profiles-XXXXXX") # whole: the test goes there, and the trap runs there
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    echo "FAIL: $*"
    cat out
    exit 1
}

n=0
for file in "$DT_SRCDIR"/profiles/*.cfg; do
    name=$(basename "$file" .cfg)
    "$DT_BUILDDIR/dtrain" run --plugin phase1_world_model --profile "$name" --dry-run >out 2>&1 || fail "$name"
    grep -q parameters out || fail "$name plans nothing"
    n=$((n + 1))
done
test "$n" -eq 9 || fail "$n profiles, expected 9"

show() { # profile, piece of what is shown
    "$DT_BUILDDIR/dtrain" show risk_gnn --profile "$1" >out 2>&1 || fail "show --profile $1"
    grep -q "$2" out || fail "--profile $1 shows no $2"
}
show max 'preset = "15m".*/profiles/max\.cfg:'
# a name that ships comes before a file of the current folder, and ./ says which is meant
echo 'risk_gnn = { heads = 2; };' >max
show ./max 'heads = 2 .*\./max:1'
show max 'preset = "15m".*/profiles/max\.cfg:'
mv max own.cfg
show own.cfg 'heads = 2 .*own\.cfg:1'

# what holds in a phase is found below its plugin: profile, phase, pieces of what is shown
holds() {
    profile=$1 phase=$2
    shift 2
    "$DT_BUILDDIR/dtrain" show "$phase" --profile "$profile" >out 2>&1 || fail "show $phase --profile $profile"
    for piece; do
        grep -q "^  $piece .*/profiles/$profile\.cfg:" out || fail "$profile: $phase has no $piece"
    done
}
holds test phase1_world_model 'data.batch = 16' 'training.epochs = 2' 'data.prefetch = 1'
holds normal phase1_world_model 'data.batch = 64' 'training.epochs = 50' 'data.prefetch = 2'
holds max phase1_world_model 'data.batch = 96' 'data.prefetch = 4' 'amp.initial_scale = 65536.0'
holds memory phase1_world_model 'data.batch = 32' 'engine.recompute = true' 'amp.growth_interval = 1000'
holds vram phase1_world_model 'data.batch = 24' 'engine.recompute = true' 'amp.initial_scale = 16384.0'
holds test phase2_ppo 'iterations = 5' 'train_batch = 500' 'data.batch = 64' 'sgd_epochs = 2' 'env.instances = 2'
holds normal phase2_ppo 'iterations = 200' 'train_batch = 4000' 'data.batch = 128' 'env.instances = 12'
holds max phase2_ppo 'train_batch = 8000' 'data.batch = 256' 'sgd_epochs = 15' 'env.instances = 16'
holds memory phase2_ppo 'train_batch = 2000' 'data.batch = 64' 'sgd_epochs = 5' 'env.instances = 3'
holds vram phase2_ppo 'train_batch = 1000' 'data.batch = 32' 'sgd_epochs = 3' 'amp.growth_interval = 300'
holds ipp phase2_ppo 'iterations = 150' 'train_batch = 1920' 'normalise_reward = true' 'env.instances = 32'
holds snakes phase2_ppo 'iterations = 120' 'train_batch = 9600' 'fragment = 200' 'env.instances = 16'
holds pendulum phase_sac 'iterations = 625' 'intensity = 100' 'data.batch = 100' 'env.instances = 4'
holds pendulum phase_ddpg 'iterations = 1250' 'policy_delay = 2' 'critics = 2' 'env.instances = 4'
holds test phase3_constrained 'data.batch = 16' 'training.accumulation = 2' 'iterations = 2'
holds normal phase3_constrained 'data.batch = 48' 'training.accumulation = 2' 'iterations = 100'
holds max phase3_constrained 'data.batch = 64' 'training.accumulation = 2' 'engine.recompute = true'
holds memory phase3_constrained 'data.batch = 24' 'training.accumulation = 4' 'engine.recompute = true'
holds vram phase3_constrained 'data.batch = 16' 'training.accumulation = 4' 'env.instances = 2'

# The first steps; the large models of max take a quarter of a minute for two, so phase 1 takes them with those of
# guide.
for profile in test normal max memory vram; do
    for phase in phase1_world_model phase2_ppo phase3_constrained; do
        smaller=
        test "$profile-$phase" != max-phase1_world_model || smaller=risk_gnn.preset=guide
        "$DT_BUILDDIR/dtrain" run --plugin "$phase" --profile "$profile" ${smaller:+--set "$smaller"} \
            ${smaller:+--set world_lstm.preset=guide} --set evaluation.episodes=1 --set evaluation.seeds=1 \
            --set report.enabled=false --max-steps 2 --run-dir "run-$profile-$phase" --threads 1 >out 2>&1 ||
            fail "two steps of $phase with $profile"
        grep -q 'planned.* MB' out || fail "$phase with $profile plans no memory"
    done
done

for phase in phase_sac phase_ddpg; do
    "$DT_BUILDDIR/dtrain" run --plugin "$phase" --profile pendulum --max-steps 2 --run-dir "run-$phase" --threads 1 \
        --set evaluation.episodes=1 --set evaluation.seeds=1 --set report.enabled=false >out 2>&1 ||
        fail "two steps of $phase with pendulum"
    grep -q 'planned.* MB' out || fail "$phase with pendulum plans no memory"
done

# one file for all phases, by name, included, and below what a configuration says itself
cp "$DT_SRCDIR/profiles/vram.cfg" .
echo '@include "vram.cfg"
phases = ( { plugin = "phase1_world_model"; }, { plugin = "phase2_ppo"; data = { batch = 40; }; } );' >two.cfg
"$DT_BUILDDIR/dtrain" run --config two.cfg --dry-run >out 2>&1 || fail "an included profile"
grep -q '^phase phase1_world_model: 1000 steps (20 ' out || fail "an included profile does not hold in phase 1"
grep -q '^phase phase2_ppo: 15000 steps (25 ' out || fail "an included profile ranks above a phase's own values"

code=0
"$DT_BUILDDIR/dtrain" run --plugin phase1_world_model --profile nromal >out 2>&1 || code=$?
test $code -eq 2 || fail "exit code $code of an unknown profile, expected 2"
grep -q 'no such profile; expected ipp, max, memory, normal, pendulum, recordings, snakes, test, vram, or a file' out || fail "says not which"
