#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# env_gym with Gymnasium, and PettingZoo where it is installed too, of python3 or of the virtual environment that
# DT_GYM_VENV names: ids, wrappers, NumPy, bit-identical results. Nothing is installed here.
set -u

. "${DT_SRCDIR:-.}/tests/check.inc"
. "${DT_SRCDIR:-.}/tests/plugins/gym.inc"
[ -z "${DT_GYM_VENV:-}" ] || python=$DT_GYM_VENV/bin/python
"$python" -c 'import gymnasium' 2>/dev/null || {
    echo "skipped: $python has no gymnasium (pip install gymnasium into a virtual environment, DT_GYM_VENV=ITS-FOLDER)"
    exit 77
}
gym="$gym --set env_gym.interpreter=$python"

train one --set env_gym.id=CartPole-v1 --threads 1 || fail "CartPole-v1 left with $?"
want=$(state_hash "$work/one")
[ -n "$want" ] || fail "a run without a state"
same "two workers" workers --set env_gym.id=CartPole-v1 --threads 2
same "two ranks" ranks --set env_gym.id=CartPole-v1 --threads 1 --set comm.backend=sim --set comm.ranks=2

expect 0 "" "$dtrain" $ppo $gym --set env_gym.id=Pendulum-v1 --set env_gym.kwargs=g=9.81 --run-dir "$work/pendulum" \
    --set 'env_gym.wrappers=FlattenObservation,TimeLimit{"max_episode_steps": 20}'
expect 0 "" "$dtrain" $ppo $gym --set env_gym.id=FrozenLake-v1 --run-dir "$work/lake"
expect 0 "" "$dtrain" $ppo $gym --set env_gym.id=worlds:Parts --run-dir "$work/parts"
expect 0 "" "$dtrain" $ppo $gym --set env_gym.id=worlds:Crowd --run-dir "$work/crowd"
cat >"$work/registers.py" <<'END'
import gymnasium
gymnasium.register("tests/Pole-v0", "gymnasium.envs.classic_control:CartPoleEnv", max_episode_steps=50)
END
expect 0 "" "$dtrain" $ppo $gym --set env_gym.id=registers:tests/Pole-v0 --set "env_gym.path=$work" --run-dir "$work/pole"
expect 2 "nowhere is not found by $python" "$dtrain" $ppo $gym --set env_gym.id=nowhere:tests/Pole-v0 --run-dir "$work/wrong"
expect 2 "CartPole" "$dtrain" $ppo $gym --set env_gym.id=CartPole-v999 --run-dir "$work/wrong"
expect 2 'takes no "foo"' "$dtrain" $ppo $gym --set env_gym.id=CartPole-v1 --set env_gym.kwargs=foo=1 --run-dir "$work/wrong"
expect 3 "its space declares uint8" "$dtrain" $ppo $gym --set env_gym.id=worlds:Kinds --run-dir "$work/wrong"
expect 3 "has shape" "$dtrain" $ppo $gym --set env_gym.id=worlds:Faulty --set env_gym.kwargs=fault=shape --run-dir "$work/wrong"

if "$python" -c 'import pettingzoo' 2>/dev/null; then
    expect 0 "" "$dtrain" $ppo $gym --run-dir "$work/rps" --set env_gym.id=pettingzoo.classic.rps_v2:env \
        --set env_gym.wrappers=pettingzoo.utils.conversions:aec_to_parallel
    expect 2 "AEC" "$dtrain" $ppo $gym --set env_gym.id=pettingzoo.classic.rps_v2:env --run-dir "$work/wrong"
fi

finish env_gym_real
