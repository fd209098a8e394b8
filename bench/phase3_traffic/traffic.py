#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What phase 3 makes of the policy that phase 2 leaves behind: costs under limits, and what that costs traffic.

    bench/run phase3_traffic [--only grid] [--seeds 1,2,3] [--maps DIR] [--work DIR] [--quick] [dtrain options...]

Every scenario and seed of training trains phase 2, and from its weights phase 3 under limits and, as the control, phase
2 for as many rounds more at the learning rate of phase 3. A limit is a share of what the rounds of phase 2's last
quarter cost in an episode (their median, which a gridlock does not move), or a number. All three policies then play
the same episodes, whose seeds are none of training's, with the most likely actions and with drawn ones. The scenarios
of SUMO want DIR with NAME/NAME.sumocfg of RESCO's scenarios, and a quarter of an hour each. A training whose run lies
in --work is not made again.
"""
import math
import os
import shutil
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common

VEHICLES = {
    "all": {"env.id": "env_traffic", "env.instances": 8, "env_traffic.low_mps2": -9, "env_traffic.episode_s": 200,
            "models.shield": "shield_barrier", "controller_mlp.log_std_init": -1, "training.scheduler": "linear",
            "training.eta_min": 0},
    "round": {"normalise_obs": "true", "normalise_reward": "true", "entropy_coef": 0, "entropy_coef_end": 0,
              "gamma": 0.98, "train_batch": 3200},
    "rate": (1e-3, 5e-4), "seeds": "1000,1001,1002,1003,1004,1005,1006,1007,1008,1009", "episodes": 4,
    "rounds": (40, 30), "margin": 0.2,
}
SUMO = {
    "all": {"models.controller": "controller_influence", "env.id": "env_sumo", "env.instances": 4,
            "env_sumo.reward_scale": 0.001, "env_sumo.starve_s": 30, "data.batch": 240, "training.scheduler": "linear",
            "training.eta_min": 0, "controller_influence.row": "true"},
    "round": {"fragment": 360, "train_batch": 1440, "gamma": 0.95, "lambda": 0.9, "target_kl": 0.015,
              "entropy_coef": 0.001, "entropy_coef_end": 0, "normalise_obs": "true"},
    "rate": (7e-4, 4e-4), "limits": {"starvation": 0.6}, "numbers": {"emergency_braking": 1},
    "seeds": "1,2,3,4,5,6,7,8,9,10", "episodes": 1, "rounds": (40, 25), "margin": 0.3,
}

# limits: shares of what phase 2 costs; numbers: limits as they are; later: for phase 3 and the control
SCENARIOS = {
    "grid": {
        "all": {"models.controller": "controller_influence", "models.shield": "shield_barrier", "env.id": "env_traffic",
                "env.instances": 8, "env_traffic.scenario": "grid", "env_traffic.control": "signals",
                "env_traffic.episode_s": 900, "env_traffic.starvation_s": 40, "controller_influence.rule": 0,
                "data.batch": 120, "training.scheduler": "linear"},
        "round": {"train_batch": 720, "fragment": 90, "normalise_reward": "true"},
        "rate": (1e-3, 5e-4), "rounds": (40, 25), "limits": {"starvation": 0.7}, "numbers": {"hard_braking": 6},
        "margin": 0.2, "seeds": "1000,1001,1002,1003,1004,1005,1006,1007,1008,1009", "episodes": 4,
    },
    "ring": {**VEHICLES, "all": {**VEHICLES["all"], "env_traffic.scenario": "ring", "env_traffic.penetration": 0.5,
                                 "env_traffic.agents": 11, "env_traffic.ttc_s": 6, "data.batch": 200},
             "limits": {"time_to_collision": 0.5}, "numbers": {"hard_braking": 1}},
    "merge": {**VEHICLES, "all": {**VEHICLES["all"], "env_traffic.scenario": "merge", "env_traffic.penetration": 0.25,
                                  "env_traffic.agents": 32, "env_traffic.ttc_s": 3, "data.batch": 64},
              # a step in a thousand costs, and costs of a round scatter by as much as they are: rounds of 16 episodes,
              # minibatches that hold some of it and whose gradients are not cut for it, multipliers that stay small
              "later": {"data.batch": 400, "training.gradient_clip": 5}, "rate": (1e-3, 1e-3),
              "later_round": {"train_batch": 6400, "entropy_coef": 0.02}, "rounds": (40, 15),
              "phase3": {"shield_barrier.learned": "true", "phase3_constrained.multiplier_max": 1},
              "limits": {"time_to_collision": 0.5, "hard_braking": 1}},
    "cologne1": SUMO,
    "ingolstadt1": {**SUMO, "round": {**SUMO["round"], "gamma": 0.9, "target_kl": 0.02}},
    "grid4x4": {**SUMO, "rounds": (24, 12)},
}
ACTIONS = (("most_likely", "true"), ("drawn", "false"))
DELAY = "strict_delay_s"


def settings(s, phase, i):
    sets = {**s["all"], "training.learning_rate": s["rate"][i], "training.warmup_epochs": 0,
            "training.eval_interval": 0, phase + ".iterations": s["rounds"][i]}
    rounds = dict(s["round"])
    if i == 1:
        sets.update(s.get("later", {}))
        rounds.update(s.get("later_round", {}))
    sets.update({phase + "." + key: value for key, value in rounds.items()})
    if phase == "phase3_constrained":
        sets.update(s.get("phase3", {}))
        for key in ("gamma", "lambda"):
            if key in s["round"]:
                sets[phase + ".cost_" + key] = s["round"][key]
        sets[phase + ".margin"] = s["margin"]
    return sets


def train(a, run, seed, phase, sets, start=None):
    if not os.path.exists(run):
        shutil.rmtree(run + "-begun", ignore_errors=True)
        common.train(a, phase, run + "-begun", sets, "--seed", seed, *(["--init-from", start] if start else []))
        os.rename(run + "-begun", run)
    with open(run + "/checkpoints/LATEST") as f:
        return run + "/checkpoints/" + f.read().strip()


def limits_of(s, run):
    def usual(cost):
        values = common.curve(run, "costs/" + cost)
        return statistics.median(values[-(len(values) // 4):])

    return {**{k: float("%.3g" % (share * usual(k))) for k, share in s["limits"].items()}, **s.get("numbers", {})}


def play(a, run, phase, s, sets, greedy):
    return common.evaluate(a, phase, run, {**sets, "evaluation.greedy": greedy}, "--seeds", s["seeds"], "--episodes",
                           str(s["episodes"]))


def tell(name, seed, policy, actions, r, limits, multipliers):
    costs = "  ".join("%s %.4g +- %.3g of %.4g%s" % (
        k, r["costs"][k]["mean"], r["costs"][k]["std"], limits[k],
        ", multiplier %.3g" % multipliers[k] if k in multipliers else "") for k in limits)
    red = r["metrics"].get("longest_red_s")
    print("%-11s seed %s  %-16s %-11s %s %.2f +- %.2f  speed %.3f  collisions %.3g  %s%s" % (
        name, seed, policy, actions, DELAY, r["metrics"][DELAY]["mean"], r["metrics"][DELAY]["std"],
        r["metrics"].get("mean_speed_mps", {"mean": float("nan")})["mean"], r["metrics"]["collisions"]["mean"], costs,
        "  longest red %.0f s" % red["mean"] if red else ""), flush=True)


def share(part, whole):
    """Of a limit of nothing, nothing is all of it, and anything beyond measure."""
    return part / whole if whole > 0 else 1 if part == 0 else float("inf")


def measure(a, name, seed):
    """By (policy, actions): costs as shares of their limits, "delay" as that of phase 2's, and its error."""
    s = SCENARIOS[name]
    if s["all"]["env.id"] == "env_sumo":
        s = {**s, "all": {**s["all"], "env_sumo.sumocfg": "%s/%s/%s.sumocfg" % (a.maps, name, name)}}
    run = {p: "%s/%s-%s-%s" % (a.work, name, seed, p.replace(" ", "-")) for p in ("phase 2", "phase 2 more", "phase 3")}
    ways = {"phase 2": ("phase2_ppo", settings(s, "phase2_ppo", 0)),
            "phase 3": ("phase3_constrained", settings(s, "phase3_constrained", 1)),
            "phase 2 more": ("phase2_ppo", settings(s, "phase2_ppo", 1))}
    start, limits, shares = None, None, {}
    for policy, (phase, sets) in ways.items():
        multipliers = {}
        if phase == "phase3_constrained":
            sets[phase + ".limits"] = ",".join("%s:%g" % item for item in limits.items())
        end = train(a, run[policy], seed, phase, sets, start)
        if start is None:
            start, limits = end, limits_of(s, run[policy])
        if phase == "phase3_constrained":
            multipliers = {k: common.last_tenth(common.curve(run[policy], "multipliers/" + k)) for k in limits}
        for actions, greedy in ACTIONS:
            r = play(a, run[policy], phase, s, sets, greedy)
            tell(name, seed, policy, actions, r, limits, multipliers)
            delay = r["metrics"][DELAY]
            one = {"seconds": delay["mean"], "error": delay["std"] / len(s["seeds"].split(",")) ** 0.5}
            before = shares.get(("phase 2", actions), one)
            shares[policy, actions] = {**one, "delay": one["seconds"] / before["seconds"],
                                       "ratio_error": math.hypot(one["error"], before["error"]) / before["seconds"],
                                       **{k: share(r["costs"][k]["mean"], limit) for k, limit in limits.items()}}
    return shares


def close(name, seeds):
    """The mean over seeds of training, and the worst of them; a delay is equal within the error of the mean."""
    costs = [*SCENARIOS[name]["limits"], *SCENARIOS[name].get("numbers", {})]
    for policy in ("phase 2", "phase 2 more", "phase 3"):
        for actions, _ in ACTIONS:
            rows = [s[policy, actions] for s in seeds]
            print("%-11s %-12s %-11s of phase 2's delay %.3f (%.3f to %.3f)  of limits: %s" % (
                name, policy, actions, statistics.mean(r["delay"] for r in rows), min(r["delay"] for r in rows),
                max(r["delay"] for r in rows),
                "  ".join("%s %.3f (at most %.3f)" % (k, statistics.mean(r[k] for r in rows), max(r[k] for r in rows))
                          for k in costs)), flush=True)
    for actions, _ in ACTIONS:
        rows = [s["phase 3", actions] for s in seeds]
        at = "phase3_traffic.%s.%s." % (name, actions)
        common.tell(at + "delay_ratio", statistics.mean(r["delay"] for r in rows), "1",
                    "%.3f at most" % (1 + math.hypot(*(r["ratio_error"] for r in rows)) / len(rows)))
        for k in costs:
            common.tell(at + "cost_of_limit." + k, statistics.mean(r[k] for r in rows), "1", "1 at most")


def main():
    p = common.parser(__doc__)
    p.add_argument("--only", default="grid,ring,merge")
    p.add_argument("--seeds", default="1,2,3", help="of training")
    p.add_argument("--maps", default=".")
    a = common.parse(p)
    if a.quick:
        a.only, a.seeds = "ring", "1"
        few = {"iterations": 12, "train_batch": 880}
        a.more += common.options({"env_traffic.episode_s": 5, **{
            "%s.%s" % (phase, k): v for phase in ("phase2_ppo", "phase3_constrained") for k, v in few.items()}})
    for name in a.only.split(","):
        close(name, [measure(a, name, seed) for seed in a.seeds.split(",")])


if __name__ == "__main__":
    main()
