#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is phase 2's PPO a PPO? Return after a fixed number of steps on control problems whose best return is known.

    bench/run phase2_classic [--only cartpole] [--seeds 1,2,3,4,5] [--work DIR] [--quick] [dtrain options...]

Every seed trains from scratch; its final policy (not the best one) then plays 100 episodes whose seeds are none of the
training's. The mean over all episodes of all seeds must reach the target.
"""
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common

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


def play(a, name, problem, seed):
    batch = next(int(s.split("=")[1]) for s in problem["set"] if s.startswith("phase2_ppo.train_batch="))
    sets = problem["set"] + ["phase2_ppo.iterations=%d" % -(-problem["steps"] // batch), "training.eval_interval=0"]
    run = "%s/%s-%d" % (a.work, name, seed)
    took = common.train(a, "phase2_ppo", run, sets + ["checkpoint.every_seconds=0"], "--seed", str(seed))
    r = common.evaluate(a, "phase2_ppo", run, sets, "--episodes", str(EPISODES), "--seeds", str(100_000 + seed))
    got = r["metrics"][problem["measure"]]["mean"] if "measure" in problem else r["return"]["mean"]
    print("%-20s seed %d  %s %8.2f  in %.1f s, %.0f steps/s" % (
        name, seed, problem.get("measure", "return"), got, took, problem["steps"] / took), flush=True)
    return got


def main():
    p = common.parser(__doc__)
    p.add_argument("--only", choices=sorted(PROBLEMS))
    p.add_argument("--seeds", default="1,2,3,4,5")
    a = common.parse(p)
    if a.quick:
        a.only, a.seeds = "cartpole", "1"
        a.more += common.options({"phase2_ppo.iterations": 2})
    seeds = [int(s) for s in a.seeds.split(",")]
    for name, problem in PROBLEMS.items():
        if a.only in (None, name):
            got = [play(a, name, problem, seed) for seed in seeds]
            at_most = problem.get("at_most", False)
            common.tell("phase2_classic." + name, statistics.fmean(got), problem.get("measure", "return"),
                        "%g at %s" % (problem["target"], "most" if at_most else "least"),
                        "worst seed %.4g, best possible %g" % ((max if at_most else min)(got), problem["best"]))


if __name__ == "__main__":
    main()
