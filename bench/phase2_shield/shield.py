#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the shield is worth to vehicles as agents: collisions with and without it, how often it steps in, and whether
traffic with trained agents is faster than that of car-following drivers alone.

    bench/run phase2_shield [--only ring4] [--steps 1000000] [--work DIR] [--quick] [dtrain options...]

Every scenario trains one policy behind the shield. Then three policies play episodes of 500 s whose seeds are none of
the training's: car following alone (IDM, no agents), one that was not trained (accelerations drawn with deviation
1 m/s^2), and the trained one with actions drawn as in training; the last two with and without the shield. Without it
an episode ends at the first collision. Steps are those of agents: behind the shield at least --steps are played.
"""
import math
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common

STEP_S = 0.5

COMMON = ["env.id=env_traffic", "env.instances=8", "env_traffic.low_mps2=-9", "training.eval_interval=0",
          "evaluation.greedy=false"]
TRAIN = ["phase2_ppo.normalise_obs=true", "phase2_ppo.normalise_reward=true", "controller_mlp.log_std_init=-1",
         "phase2_ppo.entropy_coef=0", "phase2_ppo.entropy_coef_end=0", "phase2_ppo.gamma=0.98",
         "training.learning_rate=1e-3", "training.scheduler=linear", "training.eta_min=0"]
UNTRAINED = ["phase2_ppo.iterations=1", "training.learning_rate=1e-9", "training.eta_min=0",
             "training.scheduler=constant", "phase2_ppo.normalise_obs=false", "controller_mlp.log_std_init=0"]
SHIELD = ["models.shield=shield_barrier"]  # evaluation keeps the role of the run, unless set otherwise

MERGE = ["env_traffic.scenario=merge", "phase2_ppo.train_batch=1600", "data.batch=32", "env_traffic.penetration=0.25",
         "env_traffic.agents=32"]
SCENARIOS = {
    "ring1": {"set": ["env_traffic.scenario=ring", "env_traffic.penetration=0.05", "env_traffic.agents=1",
                      "phase2_ppo.gamma=0.999", "phase2_ppo.lambda=0.98", "phase2_ppo.train_batch=8000",
                      "training.learning_rate=3e-4"], "iterations": 150},
    "ring4": {"set": ["env_traffic.scenario=ring", "env_traffic.penetration=0.2", "env_traffic.agents=4"],
              "iterations": 100},
    "merge": {"set": MERGE, "iterations": 60},
    "merge_lanes": {"set": MERGE + ["env_traffic.lane_actions=true"], "iterations": 60},
}


def agent_steps(r, sets, episodes):
    """On the ring exactly; elsewhere at least: those of the agents' share of the vehicles that got through."""
    share = next(float(s.split("=")[1]) for s in sets if s.startswith("env_traffic.penetration="))
    if "env_traffic.scenario=ring" in sets:
        return math.floor(22 * share + 1e-9) * r["length"]["mean"] * episodes
    m = r["metrics"]
    through = m["finished"]["mean"] * (m["trip_time_s"]["mean"] or 0) if m["finished"]["mean"] > 0 else 0
    return share * through / STEP_S * episodes


def play(a, run, sets, episodes):
    return common.evaluate(a, "phase2_ppo", run, sets, "--episodes", str(episodes), "--seeds", "1000000")


def line(name, policy, shield, r, steps, episodes):
    m, s = r["metrics"], r["shield"]
    print("%-12s %-10s %-7s %5d episodes %9.0f agent steps  collisions %6.0f  speed %6.3f m/s  delay %6.1f s  "
          "interventions %8.0f  infeasible %.2g" % (
              name, policy, shield, episodes, steps, m["collisions"]["mean"] * episodes, m["mean_speed_mps"]["mean"],
              m["strict_delay_s"]["mean"], s["interventions"], s["infeasible_rate"]), flush=True)


def measure(a, name, scenario):
    sets = COMMON + TRAIN + scenario["set"]
    trained, untrained = "%s/%s" % (a.work, name), "%s/%s-untrained" % (a.work, name)
    took = common.train(a, "phase2_ppo", trained,
                        sets + SHIELD + ["phase2_ppo.iterations=%d" % scenario["iterations"]], "--seed", "1")
    common.train(a, "phase2_ppo", untrained, sets + SHIELD + UNTRAINED, "--seed", "1")
    print("%-12s trained in %.0f s, %d iterations" % (name, took, scenario["iterations"]), flush=True)
    few, many = (1, 1) if a.quick else (20, 100)
    idm = play(a, untrained, sets + UNTRAINED + ["env_traffic.baseline=true", "models.shield="], few)
    line(name, "IDM", "-", idm, 0, few)
    for policy, run, more in (("untrained", untrained, UNTRAINED), ("trained", trained, [])):
        bare = play(a, run, sets + more + ["models.shield="], many)
        line(name, policy, "without", bare, agent_steps(bare, sets, many), many)
        probe = agent_steps(play(a, run, sets + more + SHIELD, 8), sets, 8) / 8
        episodes = math.ceil(a.steps / max(probe, 1) / 8) * 8
        r = play(a, run, sets + more + SHIELD, episodes)
        line(name, policy, "with", r, agent_steps(r, sets, episodes), episodes)
        common.tell("phase2_shield.%s.%s.collisions" % (name, policy),
                    round(r["metrics"]["collisions"]["mean"] * episodes), "collisions", "0 at most")
    common.tell("phase2_shield.%s.speed" % name, r["metrics"]["mean_speed_mps"]["mean"], "m/s",
                "%.4g at least" % idm["metrics"]["mean_speed_mps"]["mean"], "IDM")


def main():
    p = common.parser(__doc__)
    p.add_argument("--only", choices=sorted(SCENARIOS))
    p.add_argument("--steps", type=int, default=1_000_000)
    a = common.parse(p)
    if a.quick:
        a.only, a.steps = "ring4", 1
        SCENARIOS["ring4"]["iterations"] = 2
    for name, scenario in SCENARIOS.items():
        if a.only in (None, name):
            measure(a, name, scenario)


if __name__ == "__main__":
    main()
