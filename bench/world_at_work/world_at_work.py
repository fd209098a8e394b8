#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the world model is worth in phase 2: the same policy learnt with and without it, on the embedded merge or, with
--sumocfg, by vehicles of a SUMO scenario (its first 5 minutes, agents without SUMO's safe speed).

Phase 1 is trained on the demo recording (SUMO's drivers, not the merge's), then every variant of phase 2 for every
seed; each is evaluated on the same episodes. Tables: return and costs of an episode against real steps of the
simulation, mean and deviation over seeds, and processor seconds. What was trained before in --work is not trained
again. Closing lines compare with the policy that learnt without it, behind the shield with the shield as it is.

    bench/run world_at_work [--sumocfg FILE] [--seeds 5] [--only 'a|b'] [--work DIR] [--quick] [dtrain options...]
"""
import json
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common

MERGE = """
env = { id = "env_traffic"; instances = 8; };
env_traffic = { scenario = "merge"; episode_s = 120.0; agents = 8; penetration = 0.2; action_s = 1.0; ramp_m = 150.0;
    length_m = 250.0; low_mps2 = -4.5; };
data = { batch = 96; };
phase2_ppo = { iterations = 60; fragment = 120; train_batch = 960;"""
SUMO = """
env = { id = "env_sumo"; instances = 2; };
env_sumo = { sumocfg = "SUMOCFG"; control = "vehicles"; agents = 32; penetration = 0.3; speed_mode = 30;
    low_mps2 = -4.5; end_s = END; reward_shared = 0.0; };
data = { batch = 60; };
phase2_ppo = { iterations = 40; fragment = 300; train_batch = 600;"""
BOTH = """ sgd_epochs = 5; gamma = 0.95; entropy_coef = 0.0;
    entropy_coef_end = 0.0; normalise_reward = true; };
training = { learning_rate = 1e-3; eval_interval = 0; };
checkpoint = { every_seconds = 0; };
controller_mlp = { hidden = 64; log_std_init = -0.5; };
risk_gnn = { hidden = 32; heads = 4; layers = 1; };
world_lstm = { hidden = 32; layers = 1; head = 64; };
"""
ONE = "--set phase2_ppo.foresight=true "
CV = ONE + "--set models.world=world_constant_velocity "
LSTM = ONE + "--set models.perception=risk_gnn --set models.world=world_lstm --init-from {first} "
SHIELD = "--set models.shield=shield_barrier "
AHEAD = "--set shield_barrier.look_ahead_mps2=2 --set controller_mlp.foresight=false "
STILL = "--set shield_barrier.look_ahead_mps2=0 "
IMAGINED = "--set phase2_ppo.imagine_weight=0.5 --set phase2_ppo.imagine_steps=2 "
VARIANTS = {
    "none": "",
    "input, constant velocity": CV,
    "input, world_lstm": LSTM,
    "imagined, constant velocity": CV + IMAGINED,
    "imagined, world_lstm": LSTM + IMAGINED,
    "shield": SHIELD,
    "shield and input, world_lstm": SHIELD + LSTM + STILL,
    "shield and imagined, constant velocity": SHIELD + CV + STILL + IMAGINED,
    "shield and imagined, world_lstm": SHIELD + LSTM + STILL + IMAGINED,
    "shield looks ahead, constant velocity": SHIELD + CV + AHEAD,
    "shield looks ahead, world_lstm": SHIELD + LSTM + AHEAD,
}
COSTS = ["collisions", "time_to_collision", "hard_braking"]


def steps_to(run, level, steps):
    """Real steps until the mean return of 5 rounds is there for the first time; all of them where it never is."""
    r = common.curve(run, "charts/episodic_return")
    for i in range(5, len(r) + 1):
        if statistics.mean(r[i - 5 : i]) >= level:
            return i * steps
    return len(r) * steps


def show(values):
    dev = statistics.stdev(values) if len(values) > 1 else 0
    return f"{statistics.mean(values):9.3g} +- {dev:<7.2g}"


def run_of(a, name, seed):
    return os.path.join(a.work, f"{name.replace(' ', '_').replace(',', '')}_{seed}")


def train(a, cfg, first, name, seed):
    run = run_of(a, name, seed)
    if os.path.exists(run + ".json"):
        return
    episodes = range(101, 106 if a.sumocfg else 121)
    before = common.cpu_s()
    common.train(a, "phase2_ppo", run, [], "--config", cfg, "--threads", "1", "--seed", str(seed),
                 *VARIANTS[name].format(first=first).split())
    seconds = common.cpu_s() - before
    got = common.evaluate(a, "phase2_ppo", run, [], "--threads", "1", "--episodes", "1", "--seeds",
                          ",".join(str(k) for k in episodes))
    with open(run + ".json", "w") as f:
        json.dump({"eval": got, "s": seconds}, f)


def close(means):
    """Of the evaluated return, of the real steps to the level and of what braked hard: how much better than without."""
    for name, mine in means.items():
        base = means.get("shield" if name.startswith("shield ") else "none")
        if base is not None and base is not mine and name != "shield":
            at = "world_at_work." + name.replace(",", "").replace(" ", "_")
            print(f"ratio {at}.return {mine['return'] / base['return']:.3f} target 1")
            print(f"ratio {at}.real_steps {base['steps'] / mine['steps']:.3f} target 1")
            if mine["hard_braking"] > 0:
                print(f"ratio {at}.hard_braking {base['hard_braking'] / mine['hard_braking']:.3f} target 1")


def main():
    p = common.parser(__doc__)
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--first-seed", type=int, default=1)
    p.add_argument("--sumocfg", default="", help="vehicles of this scenario instead of the merge's")
    p.add_argument("--end", default="25500.0", help="s, end of its episodes; cologne1 begins at 25200")
    p.add_argument("--level", type=float, help="return whose real steps are counted; merge 450, SUMO 850")
    p.add_argument("--only", default="", help="variants that begin with one of these, by |")
    a = common.parse(p)
    if a.quick:
        a.only, a.seeds = "none|input, constant", 1
        a.more += common.options({"phase2_ppo.iterations": 3})
    names = [n for n in VARIANTS if not a.only or any(n.startswith(w) for w in a.only.split("|"))]
    cfg, first = os.path.join(a.work, "base.cfg"), os.path.join(a.work, "first")
    with open(cfg, "w") as f:
        sumo = SUMO.replace("SUMOCFG", os.path.abspath(a.sumocfg)).replace("END", a.end)
        f.write((sumo if a.sumocfg else MERGE) + BOTH)
    if any("{first}" in VARIANTS[n] for n in names) and not os.path.exists(os.path.join(first, "report.html")):
        small = ["risk_gnn.hidden=32", "risk_gnn.heads=4", "risk_gnn.layers=1", "world_lstm.hidden=32",
                 "world_lstm.layers=1", "world_lstm.head=64", "data.batch=32", "training.eval_interval=0"]
        common.call([a.dtrain, "--plugin", "phase1_world_model", "-q", "--threads", "1", "--run-dir", first,
                     *common.options(small)])
    seeds = range(a.first_seed, a.first_seed + a.seeds)
    level, steps = (a.level or 850, 600) if a.sumocfg else (a.level or 450, 960)  # steps of a round
    for seed in seeds:
        for name in names:
            train(a, cfg, first, name, seed)
    print(f"{'variant':40}{'first third':>20}{'last third':>20}{f'steps to {level:g}':>20}{'evaluated':>20}" +
          "".join(f"{c:>20}" for c in COSTS) + f"{'s':>8}")
    means = {}
    for name in names:
        early, late, until, final, costs, seconds = [], [], [], [], {c: [] for c in COSTS}, []
        for seed in seeds:
            run = run_of(a, name, seed)
            with open(run + ".json") as f:
                got = json.load(f)
            r = common.curve(run, "charts/episodic_return")
            early.append(statistics.mean(r[: len(r) // 3]))
            late.append(statistics.mean(r[-len(r) // 3 :]))
            until.append(steps_to(run, level, steps))
            final.append(got["eval"]["return"]["mean"])
            seconds.append(got["s"])
            for c in COSTS:
                costs[c].append(got["eval"]["costs"][c]["mean"])
        print(f"{name:40}{show(early):>20}{show(late):>20}{show(until):>20}{show(final):>20}" +
              "".join(f"{show(costs[c]):>20}" for c in COSTS) + f"{statistics.mean(seconds):8.1f}")
        means[name] = {"return": statistics.mean(final), "steps": statistics.mean(until),
                       "hard_braking": statistics.mean(costs["hard_braking"])}
    close(means)


if __name__ == "__main__":
    main()
