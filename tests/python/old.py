# SPDX-License-Identifier: Apache-2.0
"""Environments in Gymnasium 0.29."""

import gymnasium
import numpy as np

import dtrain

assert gymnasium.__version__.startswith("0.29"), gymnasium.__version__


def make():
    return gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.make("dtrain.gym:dtrain/env_cartpole"))


envs, ended = gymnasium.vector.SyncVectorEnv([make, make]), 0
envs.action_space.seed(1)
envs.reset(seed=3)
for _ in range(100):
    *_, infos = envs.step(envs.action_space.sample())
    ended += sum("episode" in info for info in infos.get("final_info", []) if info)
assert ended > 2, ended
envs.close()

worlds = dtrain.make_vec("env_cartpole", 3, autoreset_mode="SameStep")
observations, _ = worlds.reset(seed=4)
assert np.array_equal(dtrain.make("env_cartpole").reset(seed=5)[0], observations[1])
worlds.step(worlds.action_space.sample())
worlds.close()
