#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# phase_coma through the program: in matrix games it ends where the gradient leads, a stopped and resumed run has the
# bits of one that nobody stopped, threads, virtual ranks and processes change none, products in bf16 train actor and
# critic both, rounds are counted by episodes, and what does not fit is refused.
set -u

name=coma
base="--plugin phase_coma -q --set env.id=matrix --set env.instances=4 --set phase_coma.batch=64 --set data.batch=32
      --set controller_mlp.layers=0 --set controller_mlp.policy_gain=0 --set critic_others.layers=0
      --set phase_coma.gamma=0 --set training.eval_interval=0 --set checkpoint.every_seconds=0
      --set metrics.tensorboard=false --set report.enabled=false --set evaluation.baselines="
# shellcheck source=tests/phases/rig.inc
. "${DT_SRCDIR:-.}/tests/phases/rig.inc"
. "${DT_SRCDIR:-.}/tests/run/half.inc"

# From equal choices the gradient of the climbing game leads past 5 and 6 to 7 a game, that of the penalty game with
# k = 100 to 2: payoffs of 25 games, of both agents together. Where it is flat, only steps of one size get on.
learns() { # DIR, what it has to return, more options
    dir=$1
    want=$2
    shift 2
    train "$dir" --set phase_coma.updates=200 --set training.learning_rate=0.02 --set training.beta2=0.9 \
        --set training.eps=1e-10 --set phase_coma.critic_learning_rate=0.3 --set phase_coma.critic_first=true \
        --set phase_coma.target_interval=1 --set phase_coma.epsilon_updates=30 "$@"
    cases=$((cases + 1))
    got=$("$dtrain" eval --checkpoint "$work/$dir" --seeds 1 --episodes 1 --json 2>"$work/err" |
        sed -n 's/.*"return":{"mean":\([-0-9.]*\).*/\1/p')
    [ "$got" = "$want" ] || fail "$dir: returns '$got', expected $want"
}
learns climbing 350
[ "${DT_LONG:-}" != 1 ] || learns penalty 100 --set env_matrix.game=penalty

short="--set phase_coma.updates=4 --set phase_coma.target_interval=2 --set phase_coma.gamma=0.9
       --set critic_others.layers=1 --set critic_others.hidden=16 --set controller_mlp.layers=1 --set env_matrix.repeats=7
       --set phase_coma.data_passes=2"
train whole $short --threads 1
train stopped $short --threads 1 --max-steps 20
"$dtrain" --resume "$work/stopped" -q >/dev/null 2>"$work/err" || fail "resuming left with $?"
same stopped "stopped and resumed"
train threads $short --threads 3
same threads "3 threads instead of 1"
train ranks $short --set comm.backend=sim --set comm.ranks=2
same ranks "2 virtual ranks instead of 1"
train processes $short --set env.isolation=process
same processes "environments in processes"

# critics that are not counterfactual: of values, of each agent alone; what the others choose changes no bit of the last
for critic in "value --set phase_coma.baseline=value" "none --set phase_coma.baseline=none" \
    "alone --set phase_coma.others=false --set critic_others.state=false"; do
    train $critic $short --threads 1
    train ${critic%% *}_ranks ${critic#* } $short --threads 3 --set comm.backend=sim --set comm.ranks=2
    cases=$((cases + 1))
    [ "$(state_hash "$work/${critic%% *}")" = "$(state_hash "$work/${critic%% *}_ranks")" ] ||
        fail "${critic%% *}: threads and ranks give other bits"
    [ "$(state_hash "$work/${critic%% *}")" != "$(state_hash "$work/whole")" ] ||
        fail "${critic%% *} changes nothing"
done

# a critic that sees the whole: rows of another symbol than agents
field="--set env.id=ipp --set env_ipp.cells=100 --set env_ipp.stride=2 --set env_ipp.budget=5 --set env_ipp.state=true
       --set env_ipp.view=own --set models.controller=controller_field --set data.batch=16 --set phase_coma.updates=2
       --set phase_coma.data_passes=1 --set phase_coma.clip=0.2 --set evaluation.episodes=1"
train field $field --threads 1
train field_ranks $field --threads 2 --set comm.backend=sim --set comm.ranks=2
cases=$((cases + 1))
[ -n "$(state_hash "$work/field")" ] && [ "$(state_hash "$work/field")" = "$(state_hash "$work/field_ranks")" ] ||
    fail "env_ipp: threads and ranks give other bits"

if has_bf16; then
    train half $short --set amp.enabled=true
    cases=$((cases + 1))
    [ "$(state_hash "$work/half")" != "$(state_hash "$work/whole")" ] || grep -q "bf16" "$work/half/train.log" ||
        fail "amp.enabled: neither other bits nor a word about it"
fi

# 100 episodes of 7 steps and 2 agents are 1400 transitions: 5 rounds of 320
train counted $short --set phase_coma.episodes=100
cases=$((cases + 1))
"$dtrain" ckpt list "$work/counted" | grep -q "round 5 " || fail "100 episodes are not 5 updates"
names "$work/counted/train.log" "phase_coma.updates 4 episodes 100"

# what is exported is the policy, which needs to know nothing of the others
"$dtrain" export --checkpoint "$work/whole" --out "$work/policy" >/dev/null 2>"$work/err" || fail "export left with $?"
cases=$((cases + 1))
! grep -aq "name[^a-z]*others" "$work/policy" || fail "the exported policy reads the others' choices"

train other $short --set data.batch=16
cases=$((cases + 1))
names "$work/other/train.log" "phase_coma.batch_number 10 5 data.batch 32"

# opponents do not count: 3 snakes learn, 60 transitions are 20 samples, 2 games of 16 steps one round and more
train selfish --set env.id=snakes --set env_snakes.max_steps=16 --set env_snakes.self_play=1 --set env.instances=2 \
    --set phase_coma.batch=60 --set phase_coma.batch_number=1 --set data.batch=20 --set phase_coma.episodes=5 --threads 1
cases=$((cases + 2))
grep -q "4 updates of 60" "$work/selfish/train.log" ||
    fail "agents of opponents are counted: $(grep "updates of" "$work/selfish/train.log")"
! grep -q "phase_coma.batch_number" "$work/selfish/train.log" || fail "a minibatch of 3 snakes is not 60"

# a role that no agent can have is rejected before the first round
team="--dry-run --set env.id=snakes --set env_snakes.max_steps=16 --set env_snakes.self_play=1 --set env.instances=2"
refused 2 "opponents.target" $team --set opponents.target=nosuch
refused 2 "opponents.target" $team --set opponents.target=target
refused 2 "opponents.learner 5 env_snakes" $team --set opponents.learner=5

refused 2 "phase_coma" --set env.id=cartpole
refused 2 "epsilon" --set phase_coma.epsilon=1.5
# a checkpoint names the plugins that it was made of, and no other
[ "$("$dtrain" ckpt inspect "$work/whole" | awk '$1 == "plugin" { print $2 }' | sort | paste -s -d ' ')" = \
    "controller_mlp critic_others env_matrix phase_coma" ] || fail "plugins: $("$dtrain" ckpt inspect "$work/whole")"
# a role is any that a phase wires: it is handed on, remembered across a stop, kept or made again as the host's own are
onward="$short --set phase_coma.updates=3 --threads 1"
train onward $onward --init-from "$work/whole"
train paused $onward --init-from "$work/whole" --max-steps 10
"$dtrain" --resume "$work/paused" -q >/dev/null 2>"$work/err" || fail "resuming left with $?"
cases=$((cases + 2))
[ "$(state_hash "$work/onward")" = "$(state_hash "$work/paused")" ] || fail "weights of another run, stopped: other bits"
for run in onward paused; do
    grep -q '"loaded_roles":\["controller","critic"\]' "$work/$run"/checkpoints/step-*/state.json || fail "$run: no critic loaded"
done
train anew $onward --init-from "$work/whole" --set phases.0.fresh=critic --set training.freeze_loaded=critic
grep -q "critic     starts from its initial weights: the phase requests fresh weights" "$work/anew/train.log" || fail "critic is not fresh"
refused 2 "critic" $onward --init-from "$work/whole" --set training.freeze_loaded=critic
refused 2 "training.freeze_loaded \"critc\"" \
    --set training.freeze_loaded=critc
refused 2 '"critc" "critic"' --set phases.0.fresh=critc
refused 2 "models.critic" --set models.critic=
refused 2 'models.critic "nosuch"' --set models.critic=nosuch
refused 2 '"critic"' --set models.critc=nosuch
"$dtrain" config template phase_coma >"$work/template" 2>"$work/err" || fail "no template"
grep -q "^critic_others = {" "$work/template" || fail "the template lacks the critic"
refused 2 "controller_field env_ipp" --set models.controller=controller_field
refused 2 "models.shield" --set models.shield=shield_barrier --set env.id=traffic --set env_traffic.scenario=grid \
    --set env_traffic.control=signals

echo "$cases cases, $failed failed"
[ "$failed" -eq 0 ]
