#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is phase 2's PPO a PPO? Return after a fixed number of steps on control problems whose best return is known.

    classic.py --dtrain build/dtrain [--only cartpole] [--seeds 1,2,3,4,5] [--work DIR] [dtrain options...]

Every seed trains from scratch; its final policy (not the best one) then plays 100 episodes whose seeds are none of the
training's. The mean over all episodes of all seeds must reach the target.
"""
import argparse
import json
import statistics
import subprocess
import tempfile
import time

EPISODES = 100

TMAZE = ["env.id=env_tmaze", "env.instances=16", "phase2_ppo.fragment=250", "phase2_ppo.train_batch=4000",
         "training.scheduler=linear", "training.eta_min=0"]

# steps of the environment, settings, target and what it is: TARGETS of the project, optima where they are known
PROBLEMS = {
    "cartpole": {
        "steps": 100_000, "target": 475.0, "best": 500.0,
        "set": ["env.id=env_cartpole", "env.instances=8", "phase2_ppo.fragment=32", "phase2_ppo.train_batch=256",
                "data.batch=256", "phase2_ppo.sgd_epochs=20", "phase2_ppo.gamma=0.98", "phase2_ppo.lambda=0.8",
                "phase2_ppo.entropy_coef=0", "phase2_ppo.entropy_coef_end=0", "training.learning_rate=1e-3",
                "training.scheduler=linear", "training.eta_min=0"],
    },
    "pendulum": {
        "steps": 100_000, "target": -172.0, "best": -138.1,
        "set": ["env.id=env_pendulum", "env.instances=4", "phase2_ppo.fragment=1024", "phase2_ppo.train_batch=4096",
                "data.batch=64", "phase2_ppo.sgd_epochs=10", "phase2_ppo.gamma=0.95", "phase2_ppo.lambda=0.95",
                "phase2_ppo.entropy_coef=0", "phase2_ppo.entropy_coef_end=0", "training.learning_rate=1e-3",
                "training.scheduler=linear", "training.eta_min=0", "phase2_ppo.normalise_reward=true"],
    },
    "tmaze": {
        "steps": 160_000, "target": 0.95, "best": 1.0, "measure": "solved", "set": TMAZE + [
            "phase2_ppo.window=24", "models.controller=controller_lstm"],
    },
    "tmaze_without_memory": {
        "steps": 160_000, "target": 0.60, "best": 0.5, "measure": "solved", "set": TMAZE, "at_most": True,
    },
}


def call(words):
    p = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if p.returncode != 0:
        raise SystemExit("%s\nfailed with exit code %d:\n%s" % (" ".join(words), p.returncode, p.stderr[-2000:]))
    return p.stdout


def play(a, extra, name, problem, seed):
    batch = next(int(s.split("=")[1]) for s in problem["set"] if s.startswith("phase2_ppo.train_batch="))
    sets = problem["set"] + ["phase2_ppo.iterations=%d" % -(-problem["steps"] // batch), "training.eval_interval=0"]
    common = ["--plugin", "phase2_ppo", "-q"]
    for s in sets:
        common += ["--set", s]
    run = "%s/%s-%d" % (a.work, name, seed)
    begin = time.time()
    call([a.dtrain, "run"] + common + ["--seed", str(seed), "--run-dir", run, "--set", "checkpoint.every_seconds=0"]
         + extra)
    took = time.time() - begin
    r = json.loads(call([a.dtrain, "eval"] + common + ["--checkpoint", run, "--json", "--episodes", str(EPISODES),
                                                       "--seeds", str(100_000 + seed)] + extra))
    got = r["metrics"][problem["measure"]]["mean"] if "measure" in problem else r["return"]["mean"]
    print("%-20s seed %d  %s %8.2f  in %.1f s, %.0f steps/s" % (
        name, seed, problem.get("measure", "return"), got, took, problem["steps"] / took), flush=True)
    return got


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--dtrain", default="build/dtrain")
    p.add_argument("--only", choices=sorted(PROBLEMS))
    p.add_argument("--seeds", default="1,2,3,4,5")
    p.add_argument("--work", default=None)
    a, extra = p.parse_known_args()
    a.work = a.work or tempfile.mkdtemp(prefix="classic-")
    seeds = [int(s) for s in a.seeds.split(",")]
    for name, problem in PROBLEMS.items():
        if a.only in (None, name):
            got = [play(a, extra, name, problem, seed) for seed in seeds]
            at_most = problem.get("at_most", False)
            print("value phase2_classic.%s %.4g %s target %s%g  (worst seed %.4g, best possible %g)" % (
                name, statistics.fmean(got), problem.get("measure", "return"), "at most " if at_most else "",
                problem["target"], (max if at_most else min)(got), problem["best"]), flush=True)


if __name__ == "__main__":
    main()
