#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Learning off policy: what phase_sac and phase_ddpg (as TD3) reach on Pendulum, and how fast, beside RLtools.

    offpolicy.py --dtrain build/dtrain [--rltools DIR] [--seeds 5] [--only sac] [--cores 0]

dtrain trains by its profile `pendulum`, RLtools by its own Pendulum programs (rltools.cpp times them), which that
follows: 2 hidden layers of 64, minibatches of 100, one update per step, 10000 steps (TD3 20000), one thread. Beyond
them the TD3 of the profile begins with more noise, and with 1000 steps without learning. Sides take turns, one seed per
repeat. Compared are training loops: for dtrain from the start of training to the end of the last update. Returns are of
200 episodes of the most likely actions; the optimum is -138.1 +- 0.5. On a machine that is shared the time of the
processor says more.
"""
import os
import shutil
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from common import call, cpu_s, evaluate, options, parse, parser, rows, tell

EVAL = ["--episodes", "200", "--seeds", "100001"]
QUIET = {"training.eval_interval": 0, "training.save_interval": 0, "checkpoint.every_seconds": 0,
         "evaluation.baselines": "", "report.enabled": "false"}
PROBLEMS = {"sac": ("phase_sac", 10_000), "td3": ("phase_ddpg", 20_000)}


def pinned(a):
    return ["taskset", "-c", a.cores]


def run_dtrain(a, name, seed):
    phase, steps = PROBLEMS[name]
    run = os.path.join(a.work, "%s-%d" % (name, seed))
    before = cpu_s()
    words = ["run", "--plugin", phase, "--profile", "pendulum", "-q", "--seed", str(seed + 1), "--threads", "1"]
    less = options(["%s.iterations=3" % phase]) if a.quick else []
    call(pinned(a) + [os.path.abspath(a.dtrain)] + words + ["--run-dir", run] + options(QUIET) + less + a.more)
    out = {"cpu": cpu_s() - before, "steps": steps, "seconds": rows(run, "charts/replay")[-1]["wall_s"]}
    out["return"] = evaluate(a, phase, run, QUIET, *EVAL)["return"]["mean"]
    shutil.rmtree(run)
    return out


def run_rltools(a, name, seed):
    word = call(pinned(a) + [a.rltools[name], str(seed)], env=dict(os.environ, OPENBLAS_NUM_THREADS="1")).split()
    word = word[word.index("seed"):]
    get = {word[i]: float(word[i + 1]) for i in range(0, len(word), 2)}
    return {key: get[key] for key in ("seconds", "cpu", "steps", "return")}


def compile_rltools(a, name):
    """Its fastest setting here is OpenBLAS on one thread; CXXFLAGS and LDFLAGS say where that is, if need be."""
    here, out = os.path.dirname(os.path.abspath(__file__)), os.path.join(a.work, "rltools-" + name)
    call([os.environ.get("CXX", "c++"), "-std=c++17", "-Ofast", "-march=native", "-DRL_TOOLS_BACKEND_ENABLE_OPENBLAS",
          "-D" + name.upper(), "-DSTEPS=%d" % PROBLEMS[name][1], "-I" + a.rltools + "/include"]
         + os.environ.get("CXXFLAGS", "").split() + ["-o", out, here + "/rltools.cpp"]
         + os.environ.get("LDFLAGS", "").split() + ["-lopenblas"])
    return out


def report(name, side, runs):
    got = {key: statistics.median(r[key] for r in runs) for key in ("seconds", "cpu")}
    returns = [r["return"] for r in runs]
    print("value offpolicy.%s.%s %.0f steps/s  %.3f s, %.3f s of the processor; %d seeds return %.1f, the worst %.1f"
          % (name, side, runs[0]["steps"] / got["seconds"], got["seconds"], got["cpu"], len(runs),
             statistics.fmean(returns), min(returns)), flush=True)
    return dict(got, **{"return": statistics.fmean(returns)})


def main():
    p = parser(__doc__)
    p.add_argument("--rltools", help="a checkout of RLtools; needs OpenBLAS")
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--only", choices=sorted(PROBLEMS))
    p.add_argument("--cores", default="0", help="a core, as taskset takes it")
    a = parse(p)
    names = [n for n in PROBLEMS if a.only in (None, n)]
    sides = {"dtrain": run_dtrain}
    if a.rltools:
        a.rltools = {n: compile_rltools(a, n) for n in names}
        sides["rltools"] = run_rltools
    else:
        print("without RLtools: --rltools names no checkout")
    print("load %.2f %.2f %.2f" % os.getloadavg())
    for name in names:
        runs = {side: [] for side in sides}
        for seed in range(1 if a.quick else a.seeds):
            for side, run in sides.items():
                runs[side].append(run(a, name, seed))
        got = {side: report(name, side, runs[side]) for side in sides}
        tell("offpolicy.%s.return" % name, got["dtrain"]["return"], "return", "-150 at least")
        if "rltools" in got:
            mine, peer = got["dtrain"], got["rltools"]
            print("ratio offpolicy.%s.rltools %.2f target 1  (of the processor %.2f)" % (
                name, peer["seconds"] / mine["seconds"], peer["cpu"] / mine["cpu"]))
    print("load %.2f %.2f %.2f" % os.getloadavg())


if __name__ == "__main__":
    sys.exit(main())
