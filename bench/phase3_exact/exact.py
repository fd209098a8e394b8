#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does phase 3 find optima? Problems whose best policy under a limit is known (env_constrained), every algorithm.

    bench/run phase3_exact [--only queue] [--algorithms pid_lagrangian,penalty] [--seeds 1,2,3,4,5] [--work DIR]
                           [--quick] [dtrain options...]

Every seed trains from scratch. The policy it leaves behind is evaluated exactly: its probabilities (its gain) come from
the parameters in the checkpoint, what it earns and costs from the closed form of the problem, no episode is played. The
means over seeds are compared with the optimum:

    |J - J*| / |J*|                                  below 1 %
    (cost - limit) / limit                           at most 1 %
    |multiplier - multiplier*| / multiplier*         below 5 %   mean of the last tenth of training; pid_lagrangian and
                                                                 lagrangian
    the cost that the phase itself measured, mean over the last tenth of training, relative to the limit: at most 1 %

Plain ascent circles about the optimum, so that its time average counts, of the policy too: means of what the rounds of
the last tenth measured. An entropy bonus that fades, but not to nothing, makes its circles smaller; where it does not
fade (lqr), value and multiplier are means of the last half, while cost remains that of the last tenth.
"""
import json
import math
import os
import statistics
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common

STEPS = 200  # of an episode of queue and lqr
PHASE = "phase3_constrained."
ALGORITHMS = ["pid_lagrangian", "lagrangian", "penalty", "log_barrier", "cpo"]

COMMON = ["training.eval_interval=0", "checkpoint.every_seconds=0", "training.save_interval=0",
          PHASE + "entropy_coef=0", PHASE + "entropy_coef_end=0", PHASE + "on_violations=none",
          "controller_mlp.layers=0", "training.weight_decay=0", "training.warmup_epochs=0", "training.eta_min=0",
          "training.scheduler=cosine", "env.id=env_constrained", "env.instances=20"]


def of_phase(text):
    return [PHASE + word for word in text.split()]


ENDLESS = of_phase("fragment=1000 centre=true gamma=1 cost_gamma=1")
SHORT = of_phase("lambda=0.5 cost_lambda=0.5")  # where values are learnt well

# limit: of an episode. scale: what J, cost and limit of an episode are divided by. circles: share of the rounds, at the
# end, that plain ascent's value and multiplier are means of. own: settings of one algorithm, after those of all.
# Settings of lqr and those of one algorithm were chosen by seeds 101 to 103 (lagrangian of bandit, and what the other
# problems have for all: by 1 to 5).
PROBLEMS = {
    "bandit": {
        "value": 0.84, "limit": 0.6, "multiplier": 0.4, "cost": "price", "scale": 1, "circles": 0.1,
        "set": of_phase("train_batch=8000 fragment=400 sgd_epochs=5") + [
            "data.batch=4000", "training.learning_rate=3e-2"],
        "own": {"lagrangian": of_phase("iterations=600 entropy_coef=0.2") + [
            "training.scheduler=constant", "training.learning_rate=1e-2"]},
    },
    "detour": {
        "value": 0.79675, "limit": 0.25, "multiplier": 0.271, "cost": "shortcuts", "scale": 1, "circles": 0.1,
        "set": of_phase("train_batch=20000 fragment=1000 sgd_epochs=5 gamma=0.9 cost_gamma=0.9") + [
            "data.batch=10000", "training.learning_rate=3e-2"],
        "own": {"lagrangian": of_phase("iterations=300 rate=0.1 entropy_coef=0.2 entropy_coef_end=0.03") + [
                    "training.eta_min=4.5e-3"],
                "penalty": of_phase("penalty=20"),
                "cpo": of_phase("train_batch=60000 iterations=40 sgd_epochs=2 cg_iterations=4 margin=0.005") + [
                    "data.batch=30000"]},
    },
    "queue": {
        "value": 14 / 47, "limit": 1.0, "multiplier": 8 / 47, "cost": "waiting", "scale": STEPS, "circles": 0.1,
        "set": of_phase("train_batch=40000 sgd_epochs=5") + ENDLESS + [
            "data.batch=20000", "training.learning_rate=3e-2"],
        "own": {"lagrangian": of_phase("train_batch=20000 sgd_epochs=2 iterations=400 rate=0.2 entropy_coef=0.05 "
                                       "entropy_coef_end=0.005 margin=0.005") + SHORT + [
                                           "data.batch=10000", "training.eta_min=1e-2"],
                "log_barrier": of_phase("barrier_t=1000"),
                "cpo": of_phase("iterations=60")},
    },
    "lqr": {
        "value": -1.52953953, "limit": 0.2, "multiplier": 3.68953013, "cost": "effort", "scale": STEPS, "circles": 0.5,
        "set": of_phase("train_batch=40000 sgd_epochs=1 iterations=300 entropy_coef=0.0025 entropy_coef_end=0.0025") +
        ENDLESS + SHORT + [
            "data.batch=4000", "training.learning_rate=3e-3", "training.eta_min=3e-4", "controller_mlp.critic_layers=1",
            "controller_mlp.hidden=16", "controller_mlp.activation=relu", "controller_mlp.log_std_init=-1.5"],
        "own": {"pid_lagrangian": of_phase("margin=0.005"),
                "lagrangian": of_phase("rate=0.06 margin=0.005") + ["training.eta_min=5e-4"],
                "log_barrier": of_phase("barrier_t=1000"),
                "cpo": of_phase("iterations=120 cg_iterations=4 margin=0.005")},
    },
}


# ---- the policy in a checkpoint, and what it is worth ---------------------------------------------------------------

def read_weights(path):
    """A safetensors file of f32: {name: (shape, flat list)}, names as the controller has them, less "head."."""
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        body = f.read()
    weights = {}
    for name, t in header.items():
        if name != "__metadata__":
            begin, end = t["data_offsets"]
            flat = struct.unpack("<%df" % ((end - begin) // 4), body[begin:end])
            weights[name.replace("controller.", "").replace("head.", "")] = (t["shape"], flat)
    return weights


def softmax(x):
    e = [math.exp(v - max(x)) for v in x]
    return [v / sum(e) for v in e]


def rows_of(w):
    """Probabilities of the choices for every one-hot observation."""
    (n, d), flat = w["logits.w"]
    bias = w["logits.b"][1]
    return [softmax([flat[i * d + s] + bias[i] for i in range(n)]) for s in range(d)]


def bandit(w):
    p = rows_of(w)[0]
    return 0.8 * p[1] + p[2], 0.5 * p[1] + p[2]


def detour(w):
    p = rows_of(w)[0][0]
    return p + (1 - p) * 0.9 ** 3, p


def queue(w):
    admit = [row[1] for row in rows_of(w)][:5] + [0]
    share = [1.0] + [0.0] * 5
    for _ in range(3000):
        after, earns, waits = [0.0] * 6, 0.0, 0.0
        for q in range(6):
            for left, p in ((max(q - 1, 0), 0.4), (q, 0.6)):
                enters = 0.5 * admit[q]
                p *= share[q]
                after[left] += p * (1 - enters)
                if enters > 0:
                    after[left + 1] += p * enters
                earns += p * enters
                waits += p * (left + enters)
        share = after
    return earns, waits


def lqr(w):
    """u = k x + b, without noise: x is normal in the long run."""
    k, b = w["mean.w"][1][0], w["mean.b"][1][0]
    a = 0.95 + k
    mean, variance = b / (1 - a), 1 / (1 - a * a)
    return -(variance + mean ** 2), k * k * variance + (k * mean + b) ** 2


EXACT = {"bandit": bandit, "detour": detour, "queue": queue, "lqr": lqr}


# ---- runs -----------------------------------------------------------------------------------------------------------

def tail(values, share):
    """Mean of the last ones."""
    return statistics.fmean(values[-max(1, int(share * len(values))):])


def measured_value(name, run, share):
    """Mean of what was earned in the last rounds; detour's, discounted, follows from its cost."""
    p = PROBLEMS[name]
    if name == "detour":
        return 0.729 + 0.271 * tail(common.curve(run, "costs/" + p["cost"]), share)
    return tail(common.curve(run, "charts/episodic_return"), share) / p["scale"]


def train(a, name, algorithm, seed):
    p = PROBLEMS[name]
    run = "%s/%s-%s-%d" % (a.work, name, algorithm, seed)
    own = ["env_constrained.problem=" + name, "env_constrained.steps=%d" % STEPS, PHASE + "algorithm=" + algorithm,
           PHASE + "limits=%s:%.9g" % (p["cost"], p["limit"] * p["scale"])]
    took = common.train(a, "phase3_constrained", run,
                        COMMON + p["set"] + p["own"].get(algorithm, []) + own,
                        "--threads", "1", "--seed", str(seed))
    with open(run + "/checkpoints/LATEST") as f:
        latest = f.read().strip()
    w = read_weights("%s/checkpoints/%s/model.safetensors" % (run, latest))
    value, cost = EXACT[name](w)
    share = p["circles"] if algorithm == "lagrangian" else 0.1
    got = {"value": value, "cost": cost, "took": took,
           "late": tail(common.curve(run, "costs/" + p["cost"]), 0.1) / p["scale"],
           "late_value": measured_value(name, run, share),
           "multiplier": tail(common.curve(run, "multipliers/" + p["cost"]), share)}
    std = " std %.3f" % math.exp(w["log_std"][1][0]) if "log_std" in w else ""
    print("%-7s %-15s seed %d  J %.5f  cost %.5f  late %.5f %.5f  multiplier %.4f%s  %.1f s" % (
        name, algorithm, seed, value, cost, got["late_value"], got["late"], got["multiplier"], std, took), flush=True)
    return got


def judge(name, algorithm, all_of):
    p = PROBLEMS[name]
    mean = {k: statistics.fmean(g[k] for g in all_of) for k in all_of[0]}
    if algorithm == "lagrangian":
        mean["value"] = mean["late_value"]
        mean["cost"] = mean["late"]
    lines = [("value", 100 * abs(mean["value"] - p["value"]) / abs(p["value"]), 1),
             ("violation", 100 * (mean["cost"] / p["limit"] - 1), 1),
             ("late_violation", 100 * (mean["late"] / p["limit"] - 1), 1)]
    if algorithm in ("pid_lagrangian", "lagrangian"):
        lines.append(("multiplier", 100 * abs(mean["multiplier"] / p["multiplier"] - 1), 5))
    for what, got, most in lines:
        common.tell("phase3_exact.%s.%s.%s" % (name, algorithm, what), got, "%", "%g at most" % most,
                    "" if got <= most else "missed")


def main():
    p = common.parser(__doc__)
    p.add_argument("--only", default=",".join(PROBLEMS))
    p.add_argument("--algorithms", default=",".join(ALGORITHMS))
    p.add_argument("--seeds", default="1,2,3,4,5")
    a = common.parse(p)
    if a.quick:
        a.only, a.algorithms, a.seeds = "bandit", "pid_lagrangian", "1"
        a.more += common.options({PHASE + "iterations": 3})
    for name in a.only.split(","):
        for algorithm in a.algorithms.split(","):
            judge(name, algorithm, [train(a, name, algorithm, int(s)) for s in a.seeds.split(",")])


if __name__ == "__main__":
    main()
