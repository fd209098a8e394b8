# SPDX-License-Identifier: Apache-2.0
"""Steps per second of CartPole-v1: a loop in Python, Gymnasium's SyncVectorEnv and AsyncVectorEnv, and env_gym with one
and with several Python processes, in rounds of all of them; each figure is the best of its rounds, because shared
machines change speed. Then steps per second of processor time of the loop and of env_gym, the plugin's own included.
Actions are drawn before, episodes are reset as they end.
usage: bench/run env_gym [--instances N] [--seconds S] [--rounds R]"""
import argparse
import os
import resource
import subprocess
import sys
import time

import gymnasium
import numpy as np


def loop(n, seconds):
    env = gymnasium.make("CartPole-v1", disable_env_checker=True)
    actions = [int(a) for a in np.random.default_rng(1).integers(0, 2, 10000)]
    env.reset(seed=0)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for a in actions[:500]:
            _, _, terminated, truncated, _ = env.step(a)
            steps += 1
            if terminated or truncated:
                env.reset(seed=steps)
    return steps / (time.perf_counter() - start)


def vector(kind, n, seconds):
    env = kind([lambda: gymnasium.make("CartPole-v1", disable_env_checker=True)] * n)
    actions = np.random.default_rng(1).integers(0, 2, (100, n))
    env.reset(seed=0)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for a in actions:
            env.step(a)
            steps += n
    rate = steps / (time.perf_counter() - start)
    env.close()
    return rate


def ours(driver, n, seconds, share):
    out = subprocess.run([driver, sys.executable, str(n), str(seconds), str(share)], check=True, capture_output=True, text=True)
    return float(out.stdout)


def children_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ours_of_cpu(driver, n, seconds):
    """Of two lengths, so that the start of Python does not count."""
    total = []
    for s in (0.5, 0.5 + seconds):
        before = children_s()
        steps = ours(driver, n, s, 1024) * s
        total.append((steps, children_s() - before))
    return (total[1][0] - total[0][0]) / (total[1][1] - total[0][1])


def loop_of_cpu(seconds):
    before, start = time.process_time(), time.perf_counter()
    rate = loop(1, seconds)
    return rate * (time.perf_counter() - start) / (time.process_time() - before)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--driver", required=True)
    p.add_argument("--instances", type=int, default=16)
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--rounds", type=int, default=3)
    a = p.parse_args()
    cores = len(os.sched_getaffinity(0))
    n, s, share = a.instances, a.seconds, max(1, a.instances // cores)
    rows = {
        "a loop in Python, one instance": lambda: loop(n, s),
        "SyncVectorEnv": lambda: vector(gymnasium.vector.SyncVectorEnv, n, s),
        "AsyncVectorEnv": lambda: vector(gymnasium.vector.AsyncVectorEnv, n, s),
        "env_gym, one Python process": lambda: ours(a.driver, n, s, 1024),
        "env_gym, a process per core": lambda: ours(a.driver, n, s, share),
    }
    best = {}
    for _ in range(a.rounds):
        for name, fn in rows.items():
            best[name] = max(best.get(name, 0), fn())
    print("%d instances, %d cores, Python %s, gymnasium %s" % (n, cores, sys.version.split()[0], gymnasium.__version__))
    for name, rate in best.items():
        print("%-34s %9.0f steps/s" % (name, rate))
    names = list(rows)
    cpu = sorted(ours_of_cpu(a.driver, n, s) / loop_of_cpu(s) for _ in range(a.rounds))
    print("ratio env_gym/loop_processor_time %.2f target 0.7" % cpu[len(cpu) // 2])
    print("ratio env_gym/async %.2f target 2" % (best[names[4]] / best[names[2]]))


main()
