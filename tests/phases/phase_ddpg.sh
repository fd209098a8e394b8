#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# phase_ddpg through the program: on the regulator whose solution is known it finds gain and values; threads, ranks and
# stops change no bit, whatever its options; with DT_LONG=1 it also learns with discrete actions; wrong values are
# refused.
set -u

name=ddpg
base="--plugin phase_ddpg -q --set env.id=lqr --set env.instances=4 --set phase_ddpg.collect_steps=4
      --set data.batch=64 --set phase_ddpg.intensity=64 --set phase_ddpg.learning_starts=256
      --set phase_ddpg.buffer_size=1000 --set controller_mlp.hidden=16 --set critic_mlp.hidden=16
      --set phase_ddpg.iterations=20 --set training.eval_interval=0 --set checkpoint.every_seconds=0
      --set evaluation.baselines= --set report.enabled=false --set training.save_interval=0"
# shellcheck source=tests/phases/rig.inc
. "${DT_SRCDIR:-.}/tests/phases/rig.inc"
# shellcheck source=tests/phases/offpolicy.inc
. "${DT_SRCDIR:-.}/tests/phases/offpolicy.inc"

# x' = .95 x + .5 u + w, var w = .04, cost x^2 + .1 u^2, gamma = .9; a linear actor, a quadratic critic
train lqr --set models.critic=critic_quadratic --set controller_mlp.layers=0 --set phase_ddpg.gamma=0.9 \
    --set phase_ddpg.noise=0.5 --set phase_ddpg.noise_end=0.5 --set phase_ddpg.tau=0.3 \
    --set phase_ddpg.actor_learning_rate=1e-2 --set phase_ddpg.critic_learning_rate=1e-1 \
    --set training.scheduler=linear --set training.eta_min=1e-5 --set phase_ddpg.buffer_size=100000 \
    --set data.batch=256 --set phase_ddpg.intensity=16 --set phase_ddpg.iterations=300 \
    --set env.instances=16 --set phase_ddpg.collect_steps=16
near "the gain" "$(value gain lqr --seeds 1,2 --episodes 20)" 1.40666648 0.01
square=$(tensor lqr critic.q0.square)
near "what x^2 is worth" "$(echo "$square" | awk '{ print $1 }')" -2.02933732 0.015
near "what x u is worth" "$(echo "$square" | awk '{ print $2 + $3 }')" -1.08351297 0.015
near "what u^2 is worth" "$(echo "$square" | awk '{ print $4 }')" -0.38513499 0.015
near "what the rest is worth" "$(tensor lqr critic.q0.line.b)" -0.45621599 0.015

exact usual
exact td3 --set phase_ddpg.critics=2 --set phase_ddpg.policy_delay=2 --set phase_ddpg.target_noise=0.2 \
    --set env.id=pendulum --set phase_ddpg.noise=1 --set phase_ddpg.noise_speed=0.9
cases=$((cases + 1))
[ "$(state_hash "$work/whole")" != "$(state_hash "$work/usual-threads")" ] || fail "options change nothing"
exact surprised --set phase_ddpg.n_step=3 --set phase_ddpg.priority=0.6 --set phase_ddpg.actor_clip=1 \
    --set phase_ddpg.critic_clip=-1
# asked to stop at whichever moment: what learning goes by, priorities, too, is whole or not begun
surprised="--set phase_ddpg.priority=0.6 --set phase_ddpg.iterations=4"
rm -rf "$work/whole"
train whole $surprised
apart=35
[ "${DT_LONG:-}" != 1 ] || apart=7
at=1
while [ $at -lt 400 ]; do
    rm -rf "$work/stopped"
    cases=$((cases + 1))
    DTRAIN_FAULT=run.stop:$at "$dtrain" $base $surprised --run-dir "$work/stopped" >/dev/null 2>"$work/err"
    code=$?
    [ $code -eq 75 ] || break
    "$dtrain" run --resume "$work/stopped" -q >/dev/null 2>"$work/err" || fail "stopped at $at: resuming left with $?"
    same stopped "told to stop at moment $at"
    at=$((at + apart))
done
[ $at -gt 30 ] || fail "stopped $at times: too few to see anything"
exact relaxed --set env.id=snakes --set env_snakes.max_steps=16 --set env_snakes.mask_back=true \
    --set phase_ddpg.epsilon_speed=0.9

# discrete actions: a policy at random holds the pole for 22 steps; the short test does not learn it
rounds=10
[ "${DT_LONG:-}" != 1 ] || rounds=250
train pole --set env.id=cartpole --set env.instances=8 --set controller_mlp.hidden=64 --set critic_mlp.hidden=64 \
    --set phase_ddpg.collect_steps=8 --set phase_ddpg.iterations=$rounds --set phase_ddpg.buffer_size=20000 \
    --set data.batch=128 --set phase_ddpg.intensity=128 --set phase_ddpg.epsilon_speed=0.98 \
    --set phase_ddpg.actor_learning_rate=1e-3 --set phase_ddpg.critic_learning_rate=1e-3
if [ "${DT_LONG:-}" = 1 ]; then
    cases=$((cases + 1))
    held=$(value return pole --seeds 7 --episodes 20)
    awk "BEGIN { exit !(${held:-0} > 100) }" || fail "the pole is held for '$held' steps"
fi

# what is exported explores nothing: it depends on no step input of a round
cases=$((cases + 1))
"$dtrain" export --checkpoint "$work/pole" --out "$work/policy" >/dev/null 2>"$work/err" || fail "export left with $?"

# signals that see graphs, behind a shield that forbids choices
# shellcheck disable=SC2086
exact signals $traffic --set env_traffic.scenario=grid --set env_traffic.control=signals --set phase_ddpg.intensity=4

refused 2 "shield_barrier" --set models.shield=shield_barrier
refused 2 "phase_ddpg.learning_starts 2000" \
    --set phase_ddpg.learning_starts=2000
refused 2 "epsilon" --set phase_ddpg.epsilon=1.5
refused 2 "noise_speed" --set phase_ddpg.noise_speed=1.5
refused 2 "target_noise" --set phase_ddpg.target_noise=-1
refused 2 "policy_delay" --set phase_ddpg.policy_delay=0
refused 2 "logit_penalty" --set phase_ddpg.logit_penalty=nan
# evaluated as another phase: that is said first
cases=$((cases + 1))
"$dtrain" eval --plugin phase_sac --checkpoint "$work/whole" >/dev/null 2>"$work/err" && fail "a DDPG run is judged as SAC"
grep -q "error --plugin phase_sac, but .*/whole belongs to phase phase_ddpg: " "$work/err" || fail "eval does not say of which phase the run is"

echo "$cases cases, $failed failed"
[ "$failed" -eq 0 ]
