#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PPO of Stable-Baselines3 drives the automated vehicle of env_traffic.

    pip install dtrain-*.whl stable-baselines3
    python3 stable_baselines3_ppo.py [STEPS]
"""
import sys

import dtrain
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy


def make_env():
    return dtrain.make("env_traffic", ports=["ego"])  # the nine numbers of the vehicle, without the graph around it


steps = int(sys.argv[1]) if len(sys.argv) > 1 else 25000
envs = make_vec_env(make_env, n_envs=4, seed=1)
model = PPO("MlpPolicy", envs, n_steps=512, seed=1, verbose=1, device="cpu")
before, _ = evaluate_policy(model, envs, n_eval_episodes=8)
model.learn(steps)
after, _ = evaluate_policy(model, envs, n_eval_episodes=8)
print(f"return {before:.1f} before, {after:.1f} after {model.num_timesteps} steps")
