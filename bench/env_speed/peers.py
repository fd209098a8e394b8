# SPDX-License-Identifier: Apache-2.0
"""Steps per second of an environment that computes nothing, next to EnvPool and PufferLib, in turns.

EnvPool builds its environments in: its cheapest is measured, NChain-v0, a draw and a comparison per step. PufferLib has
an environment of this file, whose step writes one array for all instances of a process in numpy, in one call, and is
compared with step_many, which computes every instance. Its package compiles games and a trainer; its vectorization is
Python alone and runs from the unpacked sources (--puffer).
"""
import argparse
import re
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy


def driver(path, instances, seconds, work):
    """{name: million steps per second in the median of windows}"""
    call = [path, str(instances), str(seconds)] + ([str(work)] if work > 0 else [])
    text = subprocess.run(call, check=True, stdout=subprocess.PIPE, text=True).stdout
    rows, group = {}, ""
    for line in text.splitlines():
        m = re.match(r"(.*?) +\d+ instances .* ([\d.]+) M in the median", line)
        if m:
            rows["dtrain, %s, %s" % (group, m.group(1))] = float(m.group(2))
        else:
            group = line.strip()
    return rows


def measure(step, instances, seconds):
    speeds, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        for _ in range(50):
            step()
        speeds.append(50 * instances / (time.perf_counter() - begin) / 1e6)
    return statistics.median(speeds)


def envpool_row(instances, seconds, threads):
    import envpool

    env = envpool.make_gym("NChain-v0", num_envs=instances, num_threads=threads)
    env.reset()
    action = numpy.zeros(instances, dtype=numpy.int32)
    speed = measure(lambda: env.step(action), instances, seconds)
    env.close()
    return speed


def puffer_row(instances, seconds, workers):
    import gymnasium
    import pufferlib
    import pufferlib.vector

    class Empty(pufferlib.PufferEnv):
        def __init__(self, buf=None, seed=0):
            self.single_observation_space = gymnasium.spaces.Box(-1, 1, (4,), dtype=numpy.float32)
            self.single_action_space = gymnasium.spaces.Discrete(2)
            self.num_agents = instances // workers
            super().__init__(buf)

        def reset(self, seed=0):
            return self.observations, []

        def step(self, actions):
            self.rewards[:] = actions
            return self.observations, self.rewards, self.terminals, self.truncations, []

        def close(self):
            pass

    how = {"backend": pufferlib.vector.Serial} if workers == 1 else {
        "backend": pufferlib.vector.Multiprocessing, "num_workers": workers}
    env = pufferlib.vector.make(Empty, num_envs=workers, **how)
    env.reset()
    action = numpy.zeros(instances, dtype=numpy.int32)
    speed = measure(lambda: env.step(action), instances, seconds)
    env.close()
    return speed


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--driver", required=True)
    p.add_argument("instances", nargs="?", type=int, default=64)
    p.add_argument("seconds", nargs="?", type=float, default=0.5)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--puffer", help="folder of PufferLib's sources")
    p.add_argument("--work", type=float, default=0, help="microseconds that a step of dtrain's environment computes")
    a = p.parse_args()
    a.driver = os.path.abspath(a.driver)
    sys.path += [os.path.abspath(a.puffer)] if a.puffer else []
    with tempfile.TemporaryDirectory() as folder:  # importing pufferlib leaves a link where it is
        os.chdir(folder)
        compare(a)
        os.chdir("/")


def compare(a):
    quiet = a.work > 0  # the peers' environments compute nothing
    peers = [] if quiet else [("EnvPool, %d thread%s" % (n, "s" * (n > 1)), envpool_row, n) for n in (1, 2)]
    peers += [] if quiet else [("PufferLib, 1 process", puffer_row, 1), ("PufferLib, 2 worker processes", puffer_row, 2)]
    rows = {}
    for turn in range(a.rounds):
        for name, speed in driver(a.driver, a.instances, a.seconds, a.work).items():
            rows.setdefault(name, []).append(speed)
        for name, call, n in list(peers):
            try:
                rows.setdefault(name, []).append(call(a.instances, a.seconds, n))
            except Exception as e:  # a peer that is not there or fails: the others are measured all the same
                print("%s: not measured: %s: %s" % (name, type(e).__name__, e))
                del rows[name]
                peers.remove((name, call, n))
    for name, speeds in rows.items():
        print("%-52s %6d instances  %9.4f M steps/s in the median of %d" % (
            name, a.instances, statistics.median(speeds), len(speeds)))
    like = {"envpool_threads": ("EnvPool, 2 threads", "dtrain, step, rounds, 2 threads"),
            "pufferlib_processes": ("PufferLib, 2 worker processes", "dtrain, step, 2 worker processes"),
            "pufferlib_one_thread": ("PufferLib, 1 process", "dtrain, step_many, rounds, 1 thread"),
            "two_threads": ("dtrain, step, rounds, 1 thread", "dtrain, step, rounds, 2 threads")}
    for name, (theirs, mine) in like.items():
        if theirs in rows:
            ratio = statistics.median(rows[mine]) / statistics.median(rows[theirs])
            print("ratio env_speed_%s %.3g target 1" % (name, ratio))
    processes = statistics.median(rows["dtrain, step, 2 worker processes"])
    print("value env_speed_processes %.3g M steps/s target 1.5" % processes)


if __name__ == "__main__":
    main()
