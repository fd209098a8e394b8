#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Stored rollouts: what rollouts.keep leaves changes nothing of what is learnt, and is the same bytes on any number of
# threads and ranks and behind a stop and a kill.
set -u

name=offline
base="--plugin phase2_ppo -q --set env.id=cartpole --set env.instances=5 --set models.perception=
      --set phase2_ppo.iterations=6 --set phase2_ppo.fragment=50 --set phase2_ppo.train_batch=250 --set data.batch=125
      --set data.shards=4 --set phase2_ppo.sgd_epochs=2 --set training.eval_interval=0 --set checkpoint.every_seconds=0
      --set evaluation.baselines= --set report.enabled=false"
# shellcheck source=tests/phases/rig.inc
. "${DT_SRCDIR:-.}/tests/phases/rig.inc"
keep="--set rollouts.keep=1100" # four whole rounds

# same_files DIR WHAT: the rollouts of the run called whole
same_files() {
    cases=$((cases + 1))
    [ -n "$(ls "$work/$1/rollouts"/*/ 2>/dev/null)" ] && diff -r "$work/whole/rollouts" "$work/$1/rollouts" >"$work/err" ||
        fail "$2: other rollouts"
}

resume() { # DIR [options]
    dir=$1
    shift
    cases=$((cases + 1))
    "$dtrain" --resume "$work/$dir" -q "$@" >/dev/null 2>"$work/err" || fail "resuming $dir left with $?"
}

# shellcheck disable=SC2086
{
    train whole --threads 1 $keep
    train without --threads 1
    same without "a run that keeps nothing"
    cases=$((cases + 1))
    files=$(cd "$work/whole/rollouts/phase2_ppo-1" && echo *)
    [ "$files" = "round-000000000003.safetensors round-000000000004.safetensors round-000000000005.safetensors round-000000000006.safetensors" ] ||
        fail "it keeps '$files'"
    train ranks --threads 2 $keep --set comm.backend=sim --set comm.ranks=3
    same ranks "3 virtual ranks instead of 1"
    same_files ranks "3 virtual ranks instead of 1"
    train stopped --threads 2 $keep --max-steps 8
    resume stopped --set comm.backend=sim --set comm.ranks=2
    same_files stopped "stopped and resumed on 2 ranks"
    # killed in round 6, and gone on with from round 4: what it had played since is played again
    cases=$((cases + 1))
    DTRAIN_FAULT=train.step:23! "$dtrain" $base $keep --set training.save_interval=4 --run-dir "$work/killed" >/dev/null \
        2>"$work/err"
    code=$?
    [ "$code" -eq 137 ] || fail "it was to be killed and left with $code"
    [ -f "$work/killed/rollouts/phase2_ppo-1/round-000000000006.safetensors" ] || fail "it was killed before round 6"
    resume killed
    same_files killed "killed and resumed"
    same killed "killed and resumed"
    refused 2 "rollouts.keep = 200 samples is less than one round" --set rollouts.keep=200
}

# what is ragged, several places, costs and a shield
street="--plugin phase3_constrained -q --set env.id=env_traffic --set env_traffic.penetration=0.5
        --set env_traffic.agents=11 --set env.instances=2 --set models.perception=risk_gnn --set models.world=
        --set models.controller=controller_influence --set models.shield=shield_barrier
        --set phase3_constrained.iterations=2 --set phase3_constrained.fragment=20
        --set phase3_constrained.train_batch=40 --set data.batch=20 --set data.shards=2
        --set phase3_constrained.limits=hard_braking:1 --set phase3_constrained.sgd_epochs=1
        --set training.eval_interval=0 --set evaluation.baselines= --set report.enabled=false"
rm -rf "$work/whole" "$work/without" "$work/ranks"
base=$street
train whole --threads 1 --set rollouts.keep=80
train without --threads 1
same without "traffic that keeps nothing"
train ranks --threads 1 --set rollouts.keep=80 --set comm.backend=sim --set comm.ranks=2
same_files ranks "traffic on 2 virtual ranks"

echo "offline: $cases cases, $failed failed"
[ "$failed" -eq 0 ]
