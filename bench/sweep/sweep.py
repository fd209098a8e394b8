#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dtrain sweep: successive halving against random search at equal processor time, and a table that kills do not change.

    bench/run sweep [--only lqr] [--searches 5] [--trials 64] [--kills 20] [--parallel 2] [--work DIR] [--quick]

Both searches try PPO on the same space, wide enough that few of its points are good: in a narrow one the best of a few
random trials is as good as any. Random search gets as many trials as fit into the processor time of successive halving,
start of its processes included: its file is given more of them until it has used as much. The best trial of each then
plays 100 episodes whose seeds are none of the sweep's. All of it is repeated with other seeds of the search; figures are
medians. The first sweep by successive halving is repeated while it is killed (kill -9, every second time with its
trainings), and must end in the same bytes.
"""
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common

# 40 steps of the optimizer in an iteration: 10 passes over 4 batches
PROBLEMS = {
    "cartpole": ["env.id=env_cartpole", "env.instances=8", "phase2_ppo.train_batch=1024", "phase2_ppo.fragment=128",
                 "data.batch=256"],
    "lqr": ["env.id=env_lqr", "env.instances=8", "phase2_ppo.train_batch=2048", "phase2_ppo.fragment=256",
            "data.batch=512"],
    "pendulum": ["env.id=env_pendulum", "env.instances=8", "phase2_ppo.train_batch=4096", "phase2_ppo.fragment=512",
                 "data.batch=1024", "phase2_ppo.normalise_reward=true"],
}
ITERATION, ITERATIONS, FIRST = 40, 81, 3  # rungs after 3, 9, 27 and 81 iterations
ALWAYS = ["models.controller=controller_mlp", "phase2_ppo.iterations=%d" % ITERATIONS,
          "training.eval_interval=%d" % FIRST, "evaluation.baselines=", "evaluation.seeds=1,2,3,4,5,6,7,8",
          "evaluation.episodes=1", "report.enabled=false", "metrics.tensorboard=false", "checkpoint.every_seconds=0",
          "checkpoint.keep_last=1"]
SPACE = """parameters = (
    { key = "training.learning_rate"; min = 1e-6; max = 1; log = true; },
    { key = "phase2_ppo.gamma"; min = 0; max = 0.999; },
    { key = "phase2_ppo.lambda"; min = 0; max = 1; },
    { key = "phase2_ppo.entropy_coef"; min = 1e-5; max = 1; log = true; },
    { key = "phase2_ppo.clip"; min = 0.01; max = 1; log = true; },
    { key = "phase2_ppo.value_coef"; min = 0.01; max = 100; log = true; },
    { key = "controller_mlp.hidden"; min = 2; max = 64; integer = true; log = true; }
);
"""


def write(a, name, kind, trials, sets, seed):
    path = os.path.join(a.work, "%s-%s-%d.cfg" % (name, kind, seed))
    rungs = "min_steps = %d; " % (FIRST * ITERATION) if kind == "asha" else ""
    with open(path, "w", encoding="utf-8") as f:
        f.write('arguments = [ "--plugin", "phase2_ppo"%s ];\n' % "".join(
            ', "%s"' % w for w in common.options(sets + ALWAYS)))
        f.write('metric = "return/mean"; goal = "max"; search = "%s"; trials = %d; seed = %d;\n' % (
            kind, trials, seed))
        f.write("%ssteps = %d;\n%s" % (rungs, ITERATIONS * ITERATION, SPACE))
    return path


def command(a, path, folder):
    return [a.dtrain, "sweep", path, "--run-dir", folder, "--parallel", str(a.parallel), "--json"]


def sweep(a, path, folder):
    """Its table, and processor seconds of it with all trainings."""
    before = common.cpu_s()
    return common.call(command(a, path, folder)), common.cpu_s() - before


def search_randomly(a, name, sets, seed, budget):
    folder, used, trials = os.path.join(a.work, "%s-random-%d" % (name, seed)), 0.0, 0
    while used < budget:
        trials += 1
        table, took = sweep(a, write(a, name, "random", trials, sets, seed), folder)
        used += took
    return json.loads(table), used


def play(a, folder, table, sets):
    best = table["trials"][0]
    run = "%s/trial-%04d/seed-1" % (folder, best["trial"])
    sets = sets + ALWAYS[:1] + ["%s=%s" % (k, v) for k, v in best["parameters"].items()]
    return common.evaluate(a, "phase2_ppo", run, sets, "--episodes", "2", "--seeds",
                           ",".join(str(100_000 + i) for i in range(50)))["return"]["mean"]


def children(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="utf-8") as f:
            return [int(word) for word in f.read().split()]
    except OSError:
        return []


def kill_often(a, path, folder, wall_s):
    """The table of a sweep that was killed a.kills times, at times spread over its length; kills that it took."""
    draw, kills = random.Random(1), 0
    while True:
        p = subprocess.Popen(command(a, path, folder), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if kills < a.kills:
            try:
                p.wait(draw.uniform(0.2, 1.2) * wall_s / (a.kills + 1))
            except subprocess.TimeoutExpired:
                victims = children(p.pid) if kills % 2 else []
                for pid in [p.pid] + victims:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                kills += 1
                p.communicate()
                continue
        out = p.communicate()[0]
        if p.returncode != 0:
            raise SystemExit("%s: exit code %d after %d kills" % (folder, p.returncode, kills))
        return out, kills


def search_once(a, name, sets, seed):
    """Returns of the best trials: of successive halving, of random search; how to repeat the first one."""
    folder = os.path.join(a.work, name)
    path, halved = write(a, name, "asha", a.trials, sets, seed), "%s-asha-%d" % (folder, seed)
    begin = time.time()
    table, cpu = sweep(a, path, halved)
    wall = time.time() - begin
    halving = json.loads(table)
    by_chance, used = search_randomly(a, name, sets, seed, cpu)
    best = [play(a, halved, halving, sets), play(a, "%s-random-%d" % (folder, seed), by_chance, sets)]
    for kind, t, r, took in (("asha", halving, best[0], cpu), ("random", by_chance, best[1], used)):
        whole = sum(row["steps"] == ITERATIONS * ITERATION for row in t["trials"])
        print("%s %d: %-6s %d trials, %d of them whole, %.1f s of processor time; best %s, value %.6g, return of 100 "
              "other episodes %.6g" % (name, seed, kind, len(t["trials"]), whole, took,
                                       json.dumps(t["trials"][0]["parameters"]), t["trials"][0]["value"], r), flush=True)
    return best, (path, table, wall)


def compare(a, name, sets):
    pairs, first = [], None
    for seed in range(1, a.searches + 1):
        best, repeat = search_once(a, name, sets, seed)
        first = first or repeat
        pairs.append(best)
    asha, by_chance = ([p[i] for p in pairs] for i in (0, 1))
    wins = sum(p[0] > p[1] for p in pairs)
    common.tell("sweep.%s.asha" % name, statistics.median(asha), "return", "%.4g at least" % statistics.median(by_chance),
                "median of %d searches, and of random search in equal time; better in %d; worst %.4g and %.4g" % (
                    len(pairs), wins, min(asha), min(by_chance)))
    if a.kills > 0:
        path, table, wall = first
        again, kills = kill_often(a, path, os.path.join(a.work, name + "-killed"), wall)
        common.tell("sweep.%s.kills" % name, kills, "kills", "%d at least" % a.kills,
                    "same table" if again == table else "ANOTHER TABLE")
        if again != table:
            raise SystemExit("another table after %d kills" % kills)


def main():
    p = common.parser(__doc__)
    p.add_argument("--only", choices=sorted(PROBLEMS))
    p.add_argument("--searches", type=int, default=5)
    p.add_argument("--trials", type=int, default=64)
    p.add_argument("--kills", type=int, default=20)
    p.add_argument("--parallel", type=int, default=2)
    a = common.parse(p)
    if a.quick:
        a.only, a.searches, a.trials, a.kills = "lqr", 1, 4, 2
    for name, sets in PROBLEMS.items():
        if a.only in (None, name):
            compare(a, name, sets)


if __name__ == "__main__":
    main()
