#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# phase2_ppo through the program: it learns CartPole, a stopped and resumed run has the bits of one that nobody stopped,
# threads and virtual ranks change none, evaluation answers in the JSON that scripts read, and bad input is refused.
set -u

name=ppo
base="--plugin phase2_ppo -q --set env.id=cartpole --set env.instances=8 --set phase2_ppo.fragment=32
      --set phase2_ppo.train_batch=256 --set data.batch=64 --set training.learning_rate=1e-3
      --set phase2_ppo.iterations=30 --set training.eval_interval=0 --set checkpoint.every_seconds=0"
# shellcheck source=tests/phases/rig.inc
. "${DT_SRCDIR:-.}/tests/phases/rig.inc"

train whole --threads 1
cases=$((cases + 1))
value=$("$dtrain" eval --checkpoint "$work/whole" --seeds 7,8 --episodes 5 --json 2>"$work/err" |
    sed -n 's/^{"env":"env_cartpole","seeds":\[7,8\],"return":{"mean":\([0-9]*\)[.,].*"shield":{.*/\1/p')
[ "${value:-0}" -ge 100 ] || fail "after 30 iterations the return is '$value', a random policy has 22"

"$dtrain" ckpt list "$work/whole" | grep -q "round 30 " || fail "the last checkpoint is not of iteration 30"
train stopped --threads 1 --max-steps 500
"$dtrain" --resume "$work/stopped" -q >/dev/null 2>"$work/err" || fail "resuming left with $?"
same stopped "stopped and resumed"
train threads --threads 3
same threads "3 threads instead of 1"
train ranks --set comm.backend=sim --set comm.ranks=2
same ranks "2 virtual ranks instead of 1"

# A policy that does not follow its advantages is reported; one that learns is not.
short="--set phase2_ppo.iterations=22 --set phase2_ppo.train_batch=64 --set env.instances=2 --set data.batch=32
       --set phase2_ppo.sgd_epochs=2 --set phase2_ppo.normalise_reward=false"
train still $short --set training.gradient_clip=1e-9
grep -q "phase2_ppo.normalise_reward" "$work/still/train.log" || fail "a policy that stands still is not reported"
train moving $short
grep -q "phase2_ppo.normalise_reward" "$work/moving/train.log" && fail "a policy that learns is reported"

# What perception learnt elsewhere stays as it is: frozen when it is loaded, also after a resume; trained when not.
grown="--set env.id=env_traffic --set models.perception=risk_gnn --set risk_gnn.hidden=16 --set risk_gnn.heads=2
       --set risk_gnn.layers=1 --set phase2_ppo.iterations=2 --set env.instances=4"
frozen() { # DIR: roles that its log calls frozen
    grep -c "frozen: perception" "$work/$1/train.log"
}
train seeing $grown
[ "$(frozen seeing)" -eq 0 ] || fail "perception is frozen from scratch"
train whole_seeing $grown --init-from "$work/seeing"
[ "$(frozen whole_seeing)" -eq 1 ] || fail "perception from a checkpoint is not frozen"
train part_seeing $grown --init-from "$work/seeing" --max-steps 40
"$dtrain" --resume "$work/part_seeing" -q >/dev/null 2>"$work/err" || fail "resuming a frozen one left with $?"
[ "$(frozen part_seeing)" -eq 2 ] || fail "perception thaws when a run is resumed"
[ "$(state_hash "$work/part_seeing")" = "$(state_hash "$work/whole_seeing")" ] || fail "frozen and resumed: other bits"
cases=$((cases + 4))

# After a phase that shares no model a policy begins at random where nothing is said, and is refused where it is.
pair() { # DIR INIT
    printf 'phases=({plugin="phase1_world_model";stop={steps=2;};},{plugin="phase2_ppo";%s stop={iterations=1;};});
        risk_gnn={hidden=16;heads=2;}; world_lstm={hidden=16;}; data={batch=16;}; training={eval_interval=0;};
        phase2_ppo={train_batch=256;fragment=32;};\n' "$2" >"$work/$1.cfg"
    "$dtrain" --config "$work/$1.cfg" -q --run-dir "$work/$1" >/dev/null 2>"$work/err"
    pair_code=$?
    cases=$((cases + 1))
}
pair silent ''
[ "$pair_code" -eq 0 ] || fail "a policy after a world model left with $pair_code"
pair asked 'init="previous";'
[ "$pair_code" -eq 2 ] || fail "the previous phase as a beginning that it is not left with $pair_code"
grep -q "contains none of this phase's" "$work/err" || fail "why the previous phase is no beginning was not said"

refused 2 "risk_gnn" --set models.perception=risk_gnn
refused 2 "freeze_loaded \"eyes\"" --set training.freeze_loaded=eyes --set training.freeze=
refused 2 "\"nowhere\"" --set env.id=nowhere
refused 2 "env.id" --set env.id=
refused 2 "300 phase2_ppo.train_batch 256" --set phase2_ppo.fragment=300
refused 2 'clip_obs normalise_obs' --set phase2_ppo.clip_obs=3
refused 2 'clip_reward normalise_reward' --set phase2_ppo.clip_reward=3
refused 2 "evaluation.seeds" --set evaluation.seeds=1,two

echo "$cases cases, $failed failed"
[ "$failed" -eq 0 ]
