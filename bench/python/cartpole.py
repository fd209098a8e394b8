#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps per second of CartPole, 1,024 instances: the wheel, EnvPool and Gymnasium in one run, in turns.

    venv/bin/pip install dist/dtrain-*.whl envpool
    venv/bin/python bench/python/cartpole.py [SECONDS]

Each side gets the same random actions, returns NumPy arrays and resets by itself. The best of three turns counts.
"""
import os
import sys
import time

import gymnasium
import numpy as np

import dtrain

N, SECONDS = 1024, float(sys.argv[1]) if len(sys.argv) > 1 else 3.0
ACTIONS = np.random.default_rng(1).integers(0, 2, (64, N))


def measure(envs):
    envs.reset()
    for k in range(8):
        envs.step(ACTIONS[k])
    steps, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < SECONDS:
        envs.step(ACTIONS[steps % 64])
        steps += 1
    return steps * N / (time.perf_counter() - begin)


cores = len(os.sched_getaffinity(0))
sides = {
    "dtrain, 1 thread": lambda: dtrain.make_vec("env_cartpole", N, threads=1),
    f"dtrain, {cores} threads": lambda: dtrain.make_vec("env_cartpole", N, threads=cores),
    f"dtrain, {cores} threads, copy=False": lambda: dtrain.make_vec("env_cartpole", N, threads=cores, copy=False),
    "Gymnasium, CartPoleVectorEnv": lambda: gymnasium.make_vec("CartPole-v1", N, vectorization_mode="vector_entry_point"),
    "Gymnasium, SyncVectorEnv": lambda: gymnasium.make_vec("CartPole-v1", N, vectorization_mode="sync"),
}
try:
    import envpool

    for n in (1, cores):
        sides[f"EnvPool, {n} thread{'s' * (n > 1)}"] = lambda n=n: envpool.make(
            "CartPole-v1", env_type="gymnasium", num_envs=N, num_threads=n)
    print("envpool", envpool.__version__)
except ImportError:
    print("envpool is not installed: left out")
print("gymnasium", gymnasium.__version__, "numpy", np.__version__, "cores", cores)
best = dict.fromkeys(sides, 0.0)
for _ in range(3):
    for name, make in sides.items():
        envs = make()
        best[name] = max(best[name], measure(envs))
        envs.close()
for name, speed in best.items():
    print(f"{name:36} {speed / 1e6:8.3f} M steps/s")
