#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the world model is worth in phase 2: the same policy learnt with and without it, on the embedded merge or, with
--sumocfg, by vehicles of a SUMO scenario (its first 5 minutes, agents without SUMO's safe speed).

Phase 1 is trained on the demo recording (SUMO's drivers, not the merge's), then every variant of phase 2 for every
seed; each is evaluated on the same episodes. Tables: return and costs of an episode against real steps of the
simulation, mean and deviation over seeds, and processor seconds. What was trained before in --out is not trained again.

    bench/world_at_work/world_at_work.py --build build [--sumocfg FILE] [--seeds 5] [--only 'a|b'] [--out DIR]
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys

MERGE = """
env = { id = "env_traffic"; instances = 8; };
env_traffic = { scenario = "merge"; episode_s = 120.0; agents = 8; penetration = 0.2; action_s = 1.0; ramp_m = 150.0;
    length_m = 250.0; low_mps2 = -4.5; };
data = { batch = 96; };
phase2_ppo = { iterations = 60; fragment = 120; train_batch = 960;"""
SUMO = """
env = { id = "env_sumo"; instances = 2; };
env_sumo = { sumocfg = "SUMOCFG"; control = "vehicles"; agents = 32; penetration = 0.3; speed_mode = 30;
    low_mps2 = -4.5; end_s = END; };
data = { batch = 60; };
phase2_ppo = { iterations = 20; fragment = 300; train_batch = 600;"""
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
IMAGINED = "--set phase2_ppo.imagine_weight=0.5 --set phase2_ppo.imagine_steps=2 "
VARIANTS = {
    "none": "",
    "input, constant velocity": CV,
    "input, world_lstm": LSTM,
    "imagined, constant velocity": CV + IMAGINED,
    "imagined, world_lstm": LSTM + IMAGINED,
    "shield": SHIELD,
    "shield looks ahead, constant velocity": SHIELD + CV + AHEAD,
    "shield looks ahead, world_lstm": SHIELD + LSTM + AHEAD,
}
COSTS = ["collisions", "time_to_collision", "hard_braking"]


def call(words, out):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(out + ".err", "w") as err:
        r = subprocess.run(words, stdout=subprocess.PIPE, stderr=err, text=True)
    if r.returncode != 0:
        sys.exit(f"{' '.join(words)}\nleft with {r.returncode}: {open(out + '.err').read()[-800:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return r.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def rounds(run, name):
    with open(os.path.join(run, "metrics.jsonl")) as f:
        rows = [json.loads(line) for line in f]
    return [r[name] for r in rows if name in r]


def steps_to(run, level, steps):
    """Real steps until the mean return of 5 rounds is there for the first time; all of them where it never is."""
    r = rounds(run, "charts/episodic_return")
    for i in range(5, len(r) + 1):
        if statistics.mean(r[i - 5 : i]) >= level:
            return i * steps
    return len(r) * steps


def show(values):
    dev = statistics.stdev(values) if len(values) > 1 else 0
    return f"{statistics.mean(values):9.3g} +- {dev:<7.2g}"


def run_of(a, name, seed):
    return os.path.join(a.out, f"{name.replace(' ', '_').replace(',', '')}_{seed}")


def train(a, dtrain, cfg, first, name, seed):
    run = run_of(a, name, seed)
    if os.path.exists(run + ".json"):
        return
    episodes = range(101, 106 if a.sumocfg else 121)
    _, s = call(dtrain + ["--plugin", "phase2_ppo", "--config", cfg, "-q", "--threads", "1", "--seed", str(seed),
                          "--run-dir", run] + VARIANTS[name].format(first=first).split(), run)
    text, _ = call(dtrain + ["eval", "--checkpoint", run, "--json", "--threads", "1", "--episodes", "1",
                             "--seeds", ",".join(str(k) for k in episodes)], run)
    with open(run + ".json", "w") as f:
        json.dump({"eval": json.loads(text), "s": s}, f)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="build")
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--first-seed", type=int, default=1)
    p.add_argument("--sumocfg", default="", help="vehicles of this scenario instead of the merge's")
    p.add_argument("--end", default="25500.0", help="s, end of its episodes; cologne1 begins at 25200")
    p.add_argument("--level", type=float, help="return whose real steps are counted; merge 450, SUMO 100")
    p.add_argument("--only", default="", help="variants that begin with one of these, by |")
    p.add_argument("--out", default="world_at_work.out")
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    dtrain = [os.path.join(a.build, "dtrain")]
    cfg, first = os.path.join(a.out, "base.cfg"), os.path.join(a.out, "first")
    with open(cfg, "w") as f:
        f.write((SUMO.replace("SUMOCFG", os.path.abspath(a.sumocfg)).replace("END", a.end) if a.sumocfg else MERGE) + BOTH)
    if not os.path.exists(os.path.join(first, "report.html")):
        small = ["risk_gnn.hidden=32", "risk_gnn.heads=4", "risk_gnn.layers=1", "world_lstm.hidden=32",
                 "world_lstm.layers=1", "world_lstm.head=64", "data.batch=32", "training.eval_interval=0"]
        call(dtrain + "--plugin phase1_world_model -q --threads 1 --run-dir".split() + [first] +
             [w for s in small for w in ("--set", s)], first)
    names = [n for n in VARIANTS if not a.only or any(n.startswith(w) for w in a.only.split("|"))]
    seeds = range(a.first_seed, a.first_seed + a.seeds)
    level, steps = (a.level or 100, 600) if a.sumocfg else (a.level or 450, 960)  # steps of a round
    for seed in seeds:
        for name in names:
            train(a, dtrain, cfg, first, name, seed)
    print(f"{'variant':40}{'first third':>20}{'last third':>20}{f'steps to {level:g}':>20}{'evaluated':>20}" +
          "".join(f"{c:>20}" for c in COSTS) + f"{'s':>8}")
    for name in names:
        early, late, until, final, costs, seconds = [], [], [], [], {c: [] for c in COSTS}, []
        for seed in seeds:
            run = run_of(a, name, seed)
            with open(run + ".json") as f:
                got = json.load(f)
            r = rounds(run, "charts/episodic_return")
            early.append(statistics.mean(r[: len(r) // 3]))
            late.append(statistics.mean(r[-len(r) // 3 :]))
            until.append(steps_to(run, level, steps))
            final.append(got["eval"]["return"]["mean"])
            seconds.append(got["s"])
            for c in COSTS:
                costs[c].append(got["eval"]["costs"][c]["mean"])
        print(f"{name:40}{show(early):>20}{show(late):>20}{show(until):>20}{show(final):>20}" +
              "".join(f"{show(costs[c]):>20}" for c in COSTS) + f"{statistics.mean(seconds):8.1f}")


if __name__ == "__main__":
    main()
