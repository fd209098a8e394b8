#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What phase2_ppo.overlap = 1, which collects the next round beside learning, is worth: time of a round, and the return
that equally many rounds reach, with it and in turns.

    bench/run ppo_overlap [--sumocfg FILE] [--rounds 20] [--turns 3] [--threads 1] [--quick] [dtrain options...]

Trained are signals of the grid of env_traffic and, where --sumocfg names a scenario and SUMO is installed, of that one
in worker processes. Both sides take turns, each with a seed of its own a turn, the same for both sides. Time is the
median over the rounds of all turns but the first two of each, wall clock; the return is that of the last policy on ten
seeds, actions drawn, mean over the turns.
"""
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common

SIDES = {"in turns": 0, "overlap": 1}
SEEDS = "1,2,3,4,5,6,7,8,9,10"
COMMON = {"models.controller": "controller_influence", "phase2_ppo.normalise_obs": "true",
          "phase2_ppo.normalise_reward": "true", "training.eval_interval": 0, "checkpoint.every_seconds": 0,
          "training.save_interval": 0, "evaluation.baselines": "", "report.enabled": "false", "data.batch": 120}
GRID = {"env.id": "env_traffic", "env_traffic.scenario": "grid", "env_traffic.control": "signals", "env.instances": 8,
        "env_traffic.episode_s": 1200, "phase2_ppo.fragment": 60, "phase2_ppo.train_batch": 960}
SUMO = {"env.id": "env_sumo", "env.instances": 4, "phase2_ppo.fragment": 360, "phase2_ppo.train_batch": 1440,
        "env_sumo.reward_scale": 0.001, "phase2_ppo.gamma": 0.95, "phase2_ppo.lambda": 0.9, "data.batch": 240,
        "training.learning_rate": 7e-4, "controller_influence.row": "true"}  # as phase2_sumo, episode for episode


def one(a, job, sets, side, turn):
    """Seconds of the rounds, and the return of the last policy."""
    run = os.path.join(a.work, "%s-%d-%d" % (job, side, turn))
    common.train(a, "phase2_ppo", run, {**sets, "phase2_ppo.overlap": side, "phase2_ppo.iterations": a.rounds},
                 "--seed", str(turn), "--threads", str(a.threads))
    at = common.curve(run, "wall_s")
    judged = common.evaluate(a, "phase2_ppo", run, sets, "--seeds", a.seeds, "--episodes", "1")
    return [y - x for x, y in zip(at[1:], at[2:])], judged["return"]["mean"], judged["return"]["std"]


def compare(a, job, sets):
    took = {name: [] for name in SIDES}
    reached = {name: [] for name in SIDES}
    for turn in range(1, a.turns + 1):
        for name, side in sorted(SIDES.items(), reverse=turn % 2 == 0):  # work of others comes and goes
            seconds, mean, std = one(a, job, sets, side, turn)
            took[name] += seconds
            reached[name].append(mean)
            print("%s, turn %d, %s: %.3f s a round, return %.4g +- %.2g over seeds" %
                  (job, turn, name, statistics.median(seconds), mean, std), flush=True)
    for name in SIDES:
        returns = reached[name]
        print("%s, %s: %.3f s a round (middle half %.3f to %.3f), return %.4g (%s)" % (
            job, name, statistics.median(took[name]), *statistics.quantiles(took[name], n=4)[::2],
            statistics.fmean(returns), ", ".join("%.4g" % r for r in returns)), flush=True)
    turns, overlap = (statistics.median(took[name]) for name in SIDES)
    common.tell("ppo_overlap_return_%s" % job, statistics.fmean(reached["overlap"]), "reward",
                "%.4g in turns" % statistics.fmean(reached["in turns"]))
    print("ratio ppo_overlap_%s %.2f target 1" % (job, turns / overlap), flush=True)


def main():
    p = common.parser(__doc__)
    p.add_argument("--sumocfg", metavar="FILE")
    p.add_argument("--rounds", type=int, default=20)
    p.add_argument("--turns", type=int, default=3)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--only", choices=["grid", "sumo"])
    a = common.parse(p)
    a.seeds = SEEDS
    if a.quick:
        a.rounds, a.turns, a.seeds = 4, 1, "1,2"
    if a.only != "sumo":
        compare(a, "grid", {**COMMON, **GRID})
    if a.sumocfg is not None and a.only != "grid":
        compare(a, "sumo", {**COMMON, **SUMO, "env_sumo.sumocfg": os.path.abspath(a.sumocfg)})


if __name__ == "__main__":
    main()
