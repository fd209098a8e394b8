#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# phase_sac through the program: with DT_LONG=1 it learns to swing a pendulum up, and its temperature holds the entropy;
# threads, ranks and stops change no bit, whatever its options; what it learns can be exported; wrong values are
# refused.
set -u

name=sac
base="--plugin phase_sac -q --set env.instances=4 --set phase_sac.collect_steps=4 --set data.batch=64
      --set phase_sac.intensity=64 --set phase_sac.learning_starts=256 --set phase_sac.buffer_size=1000
      --set controller_mlp.hidden=16 --set critic_mlp.hidden=16 --set phase_sac.iterations=20
      --set training.eval_interval=0 --set checkpoint.every_seconds=0 --set report.enabled=false
      --set training.save_interval=0"
# shellcheck source=tests/phases/rig.inc
. "${DT_SRCDIR:-.}/tests/phases/rig.inc"
# shellcheck source=tests/phases/offpolicy.inc
. "${DT_SRCDIR:-.}/tests/phases/offpolicy.inc"

if [ "${DT_LONG:-}" = 1 ]; then
    # the optimum is -138, a policy at random has -1230
    train swing --set controller_mlp.hidden=64 --set critic_mlp.hidden=64 --set phase_sac.iterations=500 \
        --set phase_sac.buffer_size=10000 --set data.batch=100 --set phase_sac.intensity=100 \
        --set phase_sac.actor_learning_rate=1e-3 --set phase_sac.critic_learning_rate=1e-3 \
        --set phase_sac.temperature_learning_rate=1e-3 --set controller_mlp.activation=relu --set data.shards=1
    near "the return" "$(value return swing --seeds 7 --episodes 100)" -147 12
    # the temperature holds the entropy of the last 100 rounds where it should be: at minus the number of actions
    near "the entropy" "$(sed -n 's/.*"losses\/entropy":\([-0-9.e]*\),.*/\1/p' "$work/swing/metrics.jsonl" | tail -n 100 |
        awk '{ sum += $1 } END { print sum / NR }')" -1 0.15
fi

exact usual
exact learned --set phase_sac.temperature_learning_rate=1e-2 --set phase_sac.policy_delay=2 --set phase_sac.n_step=3 \
    --set phase_sac.reward_scale=0.1
exact fixed --set phase_sac.temperature=0.2 --set phase_sac.critics=1 --set phase_sac.priority=0.6 \
    --set phase_sac.actor_clip=1 --set phase_sac.critic_clip=-1
cases=$((cases + 1))
[ "$(state_hash "$work/whole")" != "$(state_hash "$work/usual-threads")" ] || fail "options change nothing"

cases=$((cases + 1))
"$dtrain" export --checkpoint "$work/whole" --out "$work/policy" >/dev/null 2>"$work/err" || fail "export left with $?"

# graphs of vehicles, in perception and controller, and a shield; perception learns with the controller
# shellcheck disable=SC2086
{
    exact graphs $vehicles --set phase_sac.intensity=4 --set phase_sac.iterations=24
    train still $vehicles --set phase_sac.intensity=4 --set phase_sac.iterations=24 --set training.freeze=perception
    refused 2 "phase_sac.n_step 2 1" \
        $vehicles --set phase_sac.n_step=2
}
for what in perception.layer.0.w controller.policy.bias.0; do
    cases=$((cases + 1))
    [ -n "$(tensor whole $what)" ] || fail "there is no $what"
    [ "$(tensor whole $what)" != "$(tensor still $what)" ] || fail "$what is the same whether perception learns or not"
done
cases=$((cases + 1))
"$dtrain" export --checkpoint "$work/whole" --out "$work/driver" >/dev/null 2>"$work/err" || fail "export left with $?"

refused 2 "shield_barrier" --set models.shield=shield_barrier
refused 2 "phase_sac.learning_starts 2000" \
    --set phase_sac.learning_starts=2000
refused 2 "env.instances phase_sac.collect_steps 16" \
    --set phase_sac.buffer_size=10 --set phase_sac.learning_starts=1
refused 2 "phase_sac 0" --set env.id=cartpole
refused 2 "bounds" --set env.id=lqr
refused 2 "1000000000000" \
    --set phase_sac.buffer_size=1000000000000
refused 2 "critics" --set phase_sac.critics=9
refused 2 "tau" --set phase_sac.tau=0
refused 2 "gamma" --set phase_sac.gamma=1.1
refused 2 "n_step" --set phase_sac.n_step=0
refused 2 "priority" --set phase_sac.priority=-1
refused 2 "intensity" --set phase_sac.intensity=0
refused 2 "temperature" --set models.temperature=
refused 2 "critic" --set models.critic=

echo "$cases cases, $failed failed"
[ "$failed" -eq 0 ]
