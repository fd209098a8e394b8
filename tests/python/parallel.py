# SPDX-License-Identifier: Apache-2.0
"""Environments through PettingZoo's parallel API: its test, the same numbers as make_vec, agents that come and go."""

import warnings

import numpy as np
from pettingzoo.test import parallel_api_test

import dtrain

SIGNALS = {"scenario": "grid", "control": "signals", "episode_s": 60}


def raises(kind, call, *texts):
    try:
        call()
    except kind as e:
        assert all(t in str(e) for t in texts), e
    else:
        raise AssertionError(f"no {kind.__name__}")


for name, options in [("env_matrix", None), ("env_snakes", None), ("env_traffic", SIGNALS),
                      ("env_traffic", {"agents": 3, "episode_s": 30})]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parallel_api_test(dtrain.parallel_env(name, options=options), num_cycles=60)

# what the rows of make_vec do
env, rows = dtrain.parallel_env("env_snakes"), dtrain.make_vec("env_snakes", 1, agents="rows")
o, infos = env.reset(seed=5)
ro, rinfos = rows.reset(seed=5)
for _ in range(20):
    assert list(env.agents) == env.possible_agents
    assert all(np.array_equal(o[n], ro[k]) for k, n in enumerate(env.agents))
    action = {n: k % 4 for k, n in enumerate(env.agents)}
    o, r, te, tr, infos = env.step(action)
    ro, rr, rte, rtr, rinfos = rows.step(np.array(list(action.values())))
    assert list(r.values()) == rr.tolist() and list(te.values()) == rte.tolist()
    assert all(env.observation_space(n).contains(o[n]) for n in o)
    if set(env.agents) != set(env.possible_agents):
        break

raises(dtrain.ConfigError, lambda: env.step({"nobody": 0}), "nobody")
raises(dtrain.ConfigError, lambda: env.step({n: 9 for n in env.agents}), "9")
raises(dtrain.ConfigError, lambda: env.reset(seed=-1), "negative")
env.close()
raises(dtrain.Error, lambda: env.reset(), "closed")
game = dtrain.parallel_env("env_matrix", options={"repeats": 1})
raises(dtrain.Error, lambda: game.step({}), "reset")
game.reset(seed=1)
*_, truncated, infos = game.step({n: 0 for n in game.agents})
assert not game.agents and "payoff" in infos["agent_0"]["metrics"]
