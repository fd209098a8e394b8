#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Signals of SUMO's scenarios by phase 2: delay of the final policy on ten seeds that are fixed in advance.

    bench/run phase2_sumo --maps DIR [--only cologne1] [--seed 42] [--work DIR] [--quick] [dtrain options...]

DIR holds NAME/NAME.sumocfg of RESCO's scenarios. "joint" trains one set of weights on four of them, an episode of each
in turns, and is evaluated on these and on arterial4x4, which it has not seen. Delay is strict: every vehicle that was
due counts, as it does while nobody may be teleported. Training may teleport (option teleport_s), so that what follows
a gridlock is worth learning from; an evaluation never does, unless evaluation.env says so.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common

SEEDS = "1,2,3,4,5,6,7,8,9,10"
MAPS = ["cologne1", "cologne3", "ingolstadt1", "grid4x4"]
UNSEEN = "arterial4x4"
TARGETS = {"cologne1": 26.0, "cologne3": 23.2, "ingolstadt1": 20.9, "grid4x4": 33.0}

# An episode is 3600 s, a decision every 10 s; a round is train_batch decisions, whole episodes.
COMMON = {"models.controller": "controller_influence", "env.id": "env_sumo", "env.instances": 4,
          "env_sumo.reward_scale": 0.001, "phase2_ppo.fragment": 360, "phase2_ppo.train_batch": 1440,
          "phase2_ppo.gamma": 0.95, "phase2_ppo.lambda": 0.9, "phase2_ppo.target_kl": 0.015,
          "phase2_ppo.entropy_coef": 0.003, "phase2_ppo.entropy_coef_end": 0, "data.batch": 240,
          "training.learning_rate": 7e-4, "training.scheduler": "linear", "training.eta_min": 0,
          "training.eval_interval": 0}

# lanes of one net of roads as well: weights of such a controller serve that net alone
LANES = {"controller_influence.row": "true", "phase2_ppo.normalise_obs": "true"}

JOBS = {
    "cologne1": {"phase2_ppo.iterations": 100, "phase2_ppo.entropy_coef": 0.001, **LANES},
    "cologne3": {"phase2_ppo.iterations": 60, "data.batch": 120, "env_sumo.teleport_s": 120, **LANES},
    "ingolstadt1": {"phase2_ppo.iterations": 140, "phase2_ppo.gamma": 0.9, "phase2_ppo.entropy_coef": 0.001,
                    "phase2_ppo.target_kl": 0.02, "training.learning_rate": 8e-4, **LANES},
    "grid4x4": {"phase2_ppo.iterations": 36, "phase2_ppo.train_batch": 720, "phase2_ppo.sgd_epochs": 6,
                "data.batch": 60, "env.instances": 2, "controller_influence.rule": 4},
    "joint": {"phase2_ppo.iterations": 60, "phase2_ppo.sgd_epochs": 8, "data.batch": 90, "env_sumo.teleport_s": 120,
              "controller_influence.rule": 2},
}


def train(a, name):
    files = [a.file % (m, m) for m in (MAPS if name == "joint" else [name])]
    sets = {**COMMON, **JOBS[name], "env_sumo.sumocfg": files[0], "env_sumo.also": ",".join(files[1:])}
    run = os.path.join(a.work, name)
    took = common.train(a, "phase2_ppo", run, sets, "--seed", a.seed)
    decisions = sets["phase2_ppo.iterations"] * sets["phase2_ppo.train_batch"]
    print("%s: %d decisions, %d s simulated, in %.0f s" % (name, decisions, 10 * decisions, took), flush=True)
    return run


def evaluate(a, name, run, where):
    for greedy in ("true", "false"):
        sets = {**COMMON, **JOBS[name], "env.instances": 2, "env_sumo.also": "", "env_sumo.sumocfg": a.file % (where, where),
                "evaluation.greedy": greedy}
        r = common.evaluate(a, "phase2_ppo", run, sets, "--seeds", a.seeds, "--episodes", "1")
        m = r["metrics"]
        delay = m["strict_delay_s"]
        print("  on %-12s %-11s strict %.2f +- %.2f  RESCO %.2f  trip %.2f  waiting %.2f  queue %.2f  finished %.0f / "
              "%.0f  never inserted %.1f  collisions %.0f  conflicting greens %.0f s  longest red %.0f s" % (
                  where, "most likely" if greedy == "true" else "drawn", delay["mean"], delay["std"],
                  m["resco_delay_s"]["mean"], m["trip_time_s"]["mean"], m["waiting_s"]["mean"], m["queue"]["mean"],
                  m["finished"]["mean"], m["demand"]["mean"], m["never_inserted"]["mean"], m["collisions"]["mean"],
                  m["conflicting_greens"]["mean"], m["longest_red_s"]["mean"]), flush=True)
        if greedy == "true":
            common.tell("phase2_sumo.%s.%s" % (name, where), delay["mean"], "s",
                        "%g at most" % TARGETS.get(where, float("inf")))


def main():
    p = common.parser(__doc__)
    p.add_argument("--maps", required=True)
    p.add_argument("--only", choices=sorted(JOBS))
    p.add_argument("--seed", default="42")
    p.add_argument("--seeds", default=SEEDS, help="of evaluation")
    a = common.parse(p)
    if a.quick:
        a.only, a.seeds = a.only or "cologne1", "1"
        JOBS[a.only].update({"env.instances": 1, "phase2_ppo.iterations": 1, "phase2_ppo.train_batch": 360})
    a.file = os.path.join(os.path.abspath(a.maps), "%s", "%s.sumocfg")
    for name in JOBS:
        if a.only in (None, name):
            run = train(a, name)
            for where in MAPS + [UNSEEN] if name == "joint" else [name]:
                evaluate(a, name, run, where)


if __name__ == "__main__":
    main()
