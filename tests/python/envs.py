# SPDX-License-Identifier: Apache-2.0
"""Environments through the Python package: Gymnasium's checker, autoreset, seeds, views, errors."""

import gc
import warnings

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import dtrain

SINGLE = ["env_cartpole", "env_pendulum", "env_tmaze", "env_constrained", "env_traffic"]
SHORT = {"env_tmaze": {"length": 3, "max_steps": 8}, "env_pendulum": {"max_steps": 20},
         "env_traffic": {"episode_s": 20, "vehicles": 6}}


def same(a, b):
    return all(np.array_equal(a[k], b[k]) for k in a) if isinstance(a, dict) else np.array_equal(a, b)


def row(o, k):
    return {x: y[k] for x, y in o.items()} if isinstance(o, dict) else o[k]


def raises(kind, call, *texts):
    try:
        call()
    except kind as e:
        assert all(t in str(e) for t in texts), e
    else:
        raise AssertionError(f"no {kind.__name__}")


def check_single():
    # not env_constrained, whose episodes are one step: the checker steps past their end
    for name in set(SINGLE) - {"env_constrained"}:
        env = gymnasium.make("dtrain.gym:dtrain/" + name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_env(env.unwrapped, skip_render_check=True)
        env.close()


def check_autoreset(name, mode):
    """The vector environment does what as many single ones do, each reset as the mode says."""
    options = SHORT.get(name)
    vector = dtrain.make_vec(name, 3, options=options, autoreset_mode=mode, threads=2)
    vector.action_space.seed(3)
    o, _ = vector.reset(seed=5)
    one = [dtrain.make(name, options=options) for _ in range(3)]
    so = [e.reset(seed=5 + k)[0] for k, e in enumerate(one)]
    done, n = np.zeros(3, bool), 0
    for _ in range(80):
        assert vector.observation_space.contains(o), name
        assert all(same(row(o, k), so[k]) for k in range(3)), (name, mode)
        if mode == AutoresetMode.DISABLED and done.any():
            raises(dtrain.Error, lambda: vector.step(vector.action_space.sample()), "reset_mask")
            o, _ = vector.reset(options={"reset_mask": done})
            for k in np.flatnonzero(done):
                so[k] = one[k].reset()[0]
            done[:] = False
            continue
        a = vector.action_space.sample()
        o, r, te, tr, infos = vector.step(a)
        for k in range(3):
            if mode == AutoresetMode.NEXT_STEP and done[k]:
                so[k] = one[k].reset()[0]
                assert r[k] == 0 and not te[k] and not tr[k]
                done[k] = False
                continue
            so[k], *earned, _ = one[k].step(a[k])
            assert earned == [r[k], te[k], tr[k]], (name, mode)
            if te[k] or tr[k]:
                n += 1
                if mode == AutoresetMode.SAME_STEP:
                    assert same(infos["final_obs"][k], so[k])
                    assert infos["final_info"]["_metrics"][k]
                    so[k] = one[k].reset()[0]
                else:
                    done[k] = True
    assert n > 0, name


def check_views():
    env = dtrain.make_vec("env_cartpole", 4, copy=False, seed=7)
    o, _ = env.reset()
    assert np.shares_memory(o, env.arrays.obs["obs"])
    assert env.arrays.obs["obs"].shape == (4, 1, 4)
    assert np.array_equal(np.from_dlpack(env.arrays.obs["obs"]), env.arrays.obs["obs"])
    before = o.copy()
    env.step(np.zeros(4, int))
    assert not np.array_equal(before, o)
    view = env.arrays.reward
    env.close()
    del env, o
    gc.collect()
    assert (view == 1).all()  # the memory lives as long as its views
    again = dtrain.make_vec("env_cartpole", 4, threads=3)
    assert np.array_equal(again.reset(seed=7)[0], before)
    assert np.array_equal(again.reset(seed=[10, None, 8, 7])[0][3], before[0])
    assert not np.array_equal(again.reset()[0], before)
    vec = gymnasium.make_vec("dtrain/env_cartpole", num_envs=2, vectorization_mode="vector_entry_point")
    assert vec.reset(seed=7)[0].shape == (2, 4)


def check_rows():
    env = dtrain.make_vec("env_matrix", 3, agents="rows", threads=2)
    o, infos = env.reset(seed=1)
    assert o.shape == (6, 2) and infos["alive"].all() and infos["action_mask"].shape == (6, 3)
    for t in range(25):
        o, r, te, tr, infos = env.step(np.full(6, t % 3))
    assert (te | tr).all() and infos["_metrics"].all() and "payoff" in infos["metrics"]
    cars = dtrain.make_vec("env_traffic", 2, ports=["ego"])
    o, infos = cars.reset(seed=1)
    assert o.shape == (2, 9) and infos["cost"].shape == (2, 5)


def check_errors():
    make = dtrain.make_vec
    raises(dtrain.NotFound, lambda: make("env_trafic"), "env_traffic")
    raises(dtrain.NotFound, lambda: make("phase2_ppo"), "phase")
    raises(dtrain.ConfigError, lambda: make("env_traffic", options={"rosw": 2}), "rosw", "rows")
    raises(ValueError, lambda: make("env_traffic", options={"rows": "two"}), "two")
    raises(dtrain.ConfigError, lambda: make("env_cartpole", 0), "num_envs")
    raises(dtrain.ConfigError, lambda: make("env_matrix"), "2 agents")
    raises(dtrain.ConfigError, lambda: make("env_snakes", agents="rows", ports=["nothing"]), "obs")
    raises(dtrain.ConfigError, lambda: make("env_cartpole", render_mode="human"), "render")
    raises(ValueError, lambda: make("env_cartpole", autoreset_mode="Sometimes"))
    raises(dtrain.Error, lambda: make("env_sumo", 2), "process")
    env = make("env_cartpole", 2)
    raises(dtrain.Error, lambda: env.step([0, 0]), "reset")
    env.reset(seed=1)
    raises(dtrain.ConfigError, lambda: env.step([0]), "shape")
    raises(dtrain.ConfigError, lambda: env.step([0.0, 1.0]), "float64")
    raises(dtrain.ConfigError, lambda: env.step([0, 2]), "outside")
    raises(dtrain.ConfigError, lambda: env.reset(seed=[1]), "2 instances")
    raises(dtrain.ConfigError, lambda: env.reset(options={"reset_mask": [1, 0]}), "reset_mask")
    env.close()
    raises(dtrain.Error, lambda: env.step([0, 0]), "closed")
    arm = make("env_pendulum", 2)
    arm.reset(seed=1)
    raises(dtrain.ConfigError, lambda: arm.step(np.full((2, 1), np.nan)), "finite")
    arm.step(np.full((2, 1), 1e9))


check_single()
for environment in SINGLE:
    for autoreset in AutoresetMode:
        check_autoreset(environment, autoreset)
check_views()
check_rows()
check_errors()
assert "env_traffic" in dtrain.environments()
