#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What PPO costs on top of SUMO, and how much memory environments take.

    cost.py --build DIR --scenario SCENARIO.sumocfg [--rounds 3] [--episodes 10] [--threads 2] [dtrain options]

Time: four instances of env_sumo are trained on for so many episodes each by phase2_ppo, and beside it four processes
play as many under a random policy with the same observations and no learner (bench_sumo random). Both sides take turns;
the best of each counts, as other work on the machine only ever adds. On a busy machine wall time says little: processor
time of all processes is given too. Memory: the most that a training run on 16 instances of env_traffic and one on 4 of
env_sumo hold, proportional set size, worker processes included.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from common import cpu_s, options

INSTANCES, NATIVE = 4, 16
PPO = ["phase2_ppo.normalise_reward=true", "phase2_ppo.normalise_obs=true", "training.eval_interval=0",
       "checkpoint.every_seconds=0", "training.save_interval=0"]
SUMO = ["env.id=env_sumo", "env.instances=%d" % INSTANCES, "data.batch=120"]
TRAFFIC = ["env.id=env_traffic", "env.instances=%d" % NATIVE, "env_traffic.scenario=grid",
           "env_traffic.control=signals", "env_traffic.episode_s=3600"]


def tree(pid):
    """pid and all that it started."""
    found = [pid]
    for p in found:
        try:
            for t in os.listdir("/proc/%d/task" % p):
                with open("/proc/%d/task/%s/children" % (p, t)) as f:
                    found += [int(c) for c in f.read().split()]
        except OSError:
            pass
    return found


def memory_mb(pid):
    kb = 0
    for p in tree(pid):
        try:
            with open("/proc/%d/smaps_rollup" % p) as f:
                kb += sum(int(line.split()[1]) for line in f if line.startswith("Pss:"))
        except OSError:
            pass
    return kb / 1000


def run(words, **more):
    """Seconds, and the most memory where watched."""
    watch = more.pop("watch", False)
    from_s, most = time.time(), 0.0
    p = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    said = []
    reader = threading.Thread(target=lambda: said.append(p.stdout.read()))
    reader.start()
    while p.poll() is None and watch:
        most = max(most, memory_mb(p.pid))
        time.sleep(0.1)
    reader.join()
    if p.wait() != 0:
        raise SystemExit("%s\nfailed with exit code %d:\n%s" % (" ".join(words), p.returncode, said[0][-2000:]))
    return time.time() - from_s, most


def train(a, sets, folder, watch=False):
    words = [os.path.join(a.build, "dtrain"), "--plugin", "phase2_ppo", "-q", "--threads", str(a.threads), "--run-dir",
             folder]
    return run(words + options(sets + PPO) + a.more, watch=watch)


def play_randomly(a):
    from_s = time.time()
    words = [os.path.join(a.build, "bench_sumo"), "random", str(a.episodes), a.scenario]
    env = dict(os.environ, DT_BUILDDIR=a.build)
    players = [subprocess.Popen(words, stdout=subprocess.DEVNULL, env=env, cwd=a.build) for _ in range(INSTANCES)]
    if any([p.wait() != 0 for p in players]):
        raise SystemExit("%s failed" % " ".join(words))
    return time.time() - from_s


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", required=True)
    p.add_argument("--scenario", required=True)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--episodes", type=int, default=10)
    p.add_argument("--decisions", type=int, default=360, help="of an episode")
    p.add_argument("--threads", type=int, default=2)
    a, a.more = p.parse_known_args()
    a.build, a.scenario = os.path.abspath(a.build), os.path.abspath(a.scenario)
    # the reset takes a row of the fragment too
    sumo = SUMO + ["env_sumo.sumocfg=%s" % a.scenario, "phase2_ppo.fragment=%d" % (a.decisions + 1),
                   "phase2_ppo.train_batch=%d" % ((a.decisions + 1) * INSTANCES),
                   "phase2_ppo.iterations=%d" % a.episodes]
    learnt, played, learnt_cpu, played_cpu = [], [], [], []
    with tempfile.TemporaryDirectory() as work:
        for i in range(a.rounds):
            at = [cpu_s()]
            learnt.append(train(a, sumo, "%s/train%d" % (work, i))[0])
            at.append(cpu_s())
            played.append(play_randomly(a))
            at.append(cpu_s())
            learnt_cpu.append(at[1] - at[0])
            played_cpu.append(at[2] - at[1])
            print("round %d: %d episodes trained on in %.2f s (processor %.2f s), played randomly in %.2f s (%.2f s)" %
                  (i + 1, a.episodes * INSTANCES, learnt[-1], learnt_cpu[-1], played[-1], played_cpu[-1]), flush=True)
        few = [s for s in sumo if not s.startswith("phase2_ppo.iterations")] + ["phase2_ppo.iterations=2"]
        of_sumo = train(a, few, "%s/sumo" % work, watch=True)[1]
        of_traffic = train(a, TRAFFIC + ["phase2_ppo.iterations=2"], "%s/traffic" % work, watch=True)[1]
    simulated = a.episodes * INSTANCES * a.decisions * 10
    print("value phase2_sumo_speed %.0f simulated_s/s" % (simulated / min(learnt)))
    print("value memory_of_%d_env_sumo %.0f MB" % (INSTANCES, of_sumo))
    print("value memory_of_%d_env_traffic %.0f MB" % (NATIVE, of_traffic))
    print("value memory_together %.0f MB target 500" % (of_sumo + of_traffic))
    print("ratio phase2_sumo_cost_processor %.2f" % (min(learnt_cpu) / min(played_cpu)))
    print("ratio phase2_sumo_cost %.2f target 1.15" % (min(learnt) / min(played)))


if __name__ == "__main__":
    main()
