#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What phase 3 makes of the policy that phase 2 leaves behind: costs under limits, and what that costs traffic.

    traffic.py --dtrain build/dtrain [--only grid] [--seed 1] [--maps DIR] [--work DIR] [dtrain options...]

Every scenario trains phase 2, plays its policy, and trains phase 3 from it. A limit is a share of what phase 2's policy
costs in an episode. Both policies play the same episodes, whose seeds are none of the training's, with actions drawn as
in training. cologne1 and ingolstadt1 want DIR with NAME/NAME.sumocfg of RESCO's scenarios, and ten minutes each.
"""
import argparse
import json
import subprocess
import tempfile
import time


VEHICLES = {
    "all": {"env.id": "env_traffic", "env.instances": 8, "env_traffic.low_mps2": -9, "models.shield": "shield_barrier",
            "controller_mlp.log_std_init": -1, "training.scheduler": "linear", "training.eta_min": 0},
    "round": {"normalise_obs": "true", "normalise_reward": "true", "entropy_coef": 0, "entropy_coef_end": 0,
              "gamma": 0.98},
    "rate": (1e-3, 5e-4), "measure": "mean_speed_mps", "up": True, "seeds": "1000,1001,1002,1003,1004", "episodes": 8,
}
SUMO = {
    "all": {"models.controller": "controller_influence", "env.id": "env_sumo", "env.instances": 4,
            "env_sumo.reward_scale": 0.001, "env_sumo.starve_s": 30, "data.batch": 240, "training.scheduler": "linear",
            "training.eta_min": 0, "controller_influence.row": "true"},
    "round": {"fragment": 360, "train_batch": 1440, "gamma": 0.95, "lambda": 0.9, "target_kl": 0.015,
              "entropy_coef": 0.001, "entropy_coef_end": 0, "normalise_obs": "true"},
    "rate": (7e-4, 4e-4), "measure": "strict_delay_s", "up": False, "limits": {"starvation": 0.6},
    "seeds": "1,2,3,4,5,6,7,8,9,10", "episodes": 1, "rounds": (40, 25), "margin": 0.3,
}

# limits: shares of what phase 2's policy costs
SCENARIOS = {
    "grid": {
        "all": {"models.controller": "controller_influence", "models.shield": "shield_barrier", "env.id": "env_traffic",
                "env.instances": 8, "env_traffic.scenario": "grid", "env_traffic.control": "signals",
                "env_traffic.episode_s": 900, "env_traffic.starvation_s": 40, "controller_influence.rule": 0,
                "data.batch": 120, "training.scheduler": "linear"},
        "round": {"train_batch": 720, "fragment": 90, "normalise_reward": "true"},
        "rate": (1e-3, 5e-4), "rounds": (40, 40), "limits": {"starvation": 0.7, "hard_braking": 1.1}, "margin": 0.2,
        "measure": "strict_delay_s", "up": False, "seeds": "1000,1001,1002,1003,1004,1005,1006,1007", "episodes": 4,
    },
    "ring": {**VEHICLES, "all": {**VEHICLES["all"], "env_traffic.scenario": "ring", "env_traffic.penetration": 0.2,
                                 "env_traffic.agents": 4},
             "round": {**VEHICLES["round"], "train_batch": 4000},
             "rounds": (100, 100), "limits": {"hard_braking": 0.5, "time_to_collision": 1, "collisions": 0},
             "margin": 0.2},
    "merge": {**VEHICLES, "all": {**VEHICLES["all"], "env_traffic.scenario": "merge", "env_traffic.penetration": 0.25,
                                  "env_traffic.agents": 32, "data.batch": 32},
              "round": {**VEHICLES["round"], "train_batch": 1600},
              "rounds": (60, 60), "limits": {"hard_braking": 0.5, "time_to_collision": 1, "collisions": 0},
              "margin": 0.2},
    "cologne1": SUMO,
    "ingolstadt1": {**SUMO, "round": {**SUMO["round"], "gamma": 0.9, "target_kl": 0.02}},
}


def call(words):
    p = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if p.returncode != 0:
        raise SystemExit("%s\nfailed with exit code %d:\n%s" % (" ".join(words), p.returncode, p.stderr[-2000:]))
    return p.stdout


def options(sets):
    return [word for key, value in sets.items() for word in ("--set", "%s=%s" % (key, value))]


def settings(s, phase, i):
    sets = {**s["all"], "training.learning_rate": s["rate"][i], "training.warmup_epochs": 0,
            "training.eval_interval": 0, phase + ".iterations": s["rounds"][i]}
    sets.update({phase + "." + key: value for key, value in s["round"].items()})
    if i == 1:
        for key in ("gamma", "lambda"):
            if key in s["round"]:
                sets[phase + ".cost_" + key] = s["round"][key]
        sets[phase + ".margin"] = s["margin"]
    return sets


def train(a, extra, run, phase, sets, more=()):
    begin = time.time()
    call([a.dtrain, "run", "--plugin", phase, "-q", "--seed", a.seed, "--run-dir", run, *more] + options(sets) + extra)
    return time.time() - begin


def play(a, extra, run, phase, s, sets):
    words = ["eval", "--plugin", phase, "--checkpoint", run, "--json", "--seeds", s["seeds"], "--episodes",
             str(s["episodes"])]
    return json.loads(call([a.dtrain] + words + options({**sets, "evaluation.greedy": "false"}) + extra))


def tell(name, phase, s, r, took, limits):
    costs = "  ".join("%s %.4g%s" % (k, r["costs"][k]["mean"],
                                     " of %.4g" % limits[k] if k in limits else "") for k in s["limits"])
    print("%-12s %-18s %s %.4g +- %.3g  return %.5g  collisions %.3g  %s  (trained in %.0f s)" % (
        name, phase, s["measure"], r["metrics"][s["measure"]]["mean"], r["metrics"][s["measure"]]["std"],
        r["return"]["mean"], r["metrics"]["collisions"]["mean"], costs, took), flush=True)


def measure(a, extra, name):
    s = SCENARIOS[name]
    if s["all"]["env.id"] == "env_sumo":
        s = {**s, "all": {**s["all"], "env_sumo.sumocfg": "%s/%s/%s.sumocfg" % (a.maps, name, name)}}
    run = {p: "%s/%s-%s" % (a.work, name, p) for p in ("phase2_ppo", "phase3_constrained")}
    sets = settings(s, "phase2_ppo", 0)
    took = train(a, extra, run["phase2_ppo"], "phase2_ppo", sets)
    before = play(a, extra, run["phase2_ppo"], "phase2_ppo", s, sets)
    limits = {k: round(share * before["costs"][k]["mean"], 4) for k, share in s["limits"].items()}
    tell(name, "phase2_ppo", s, before, took, limits)
    with open(run["phase2_ppo"] + "/checkpoints/LATEST") as f:
        start = run["phase2_ppo"] + "/checkpoints/" + f.read().strip()
    sets = settings(s, "phase3_constrained", 1)
    sets["phase3_constrained.limits"] = ",".join("%s:%g" % item for item in limits.items())
    took = train(a, extra, run["phase3_constrained"], "phase3_constrained", sets, ("--init-from", start))
    after = play(a, extra, run["phase3_constrained"], "phase3_constrained", s, sets)
    tell(name, "phase3_constrained", s, after, took, limits)
    for k, limit in limits.items():
        print("value phase3_traffic.%s.%s %.4g per episode target at most %g" % (
            name, k, after["costs"][k]["mean"], limit), flush=True)
    print("value phase3_traffic.%s.%s %.4g target at %s %.4g (phase 2 alone)" % (
        name, s["measure"], after["metrics"][s["measure"]]["mean"], "least" if s["up"] else "most",
        before["metrics"][s["measure"]]["mean"]), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--dtrain", default="build/dtrain")
    p.add_argument("--only", default="grid,ring,merge")
    p.add_argument("--seed", default="1")
    p.add_argument("--maps", default=".")
    p.add_argument("--work", default=None)
    a, extra = p.parse_known_args()
    a.work = a.work or tempfile.mkdtemp(prefix="traffic-")
    for name in a.only.split(","):
        measure(a, extra, name)


if __name__ == "__main__":
    main()
