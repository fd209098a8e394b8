#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed of phase 2 beside other PPOs: the same problem, network, batch, minibatch and epochs on the same two cores.

    rl_speed.py --dtrain build/dtrain [--peers VENV] [--cleanrl PPO.PY] [--rltools DIR] [--repeats 5]
                [--only cartpole] [--cores 0,1] [--realtime]

cartpole   Stable-Baselines3 (PyPI), and the ppo.py of a checkout of CleanRL
pendulum   RLtools' own Pendulum PPO program, in a checkout (rltools.cpp times it)

Sides take turns, one seed per repeat; numbers are medians. Compared are training loops: from the start of training to
the end of the last update. Beside it stand, for dtrain, the seconds of its whole process up to its exit with a
checkpoint, and the time of the processor, which says more where other programs share the machine (of the whole process
for dtrain and CleanRL, of the loop for the others). Steps and seconds to a threshold are those after which the last 20
episodes played for training had that mean return.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from common import call, cpu_s, options

WINDOW = 20

PROBLEMS = {
    "cartpole": {"id": "CartPole-v1", "env": "env_cartpole", "steps": 100_096, "envs": 8, "fragment": 32,
                 "minibatch": 256, "epochs": 20, "gamma": 0.98, "lambda": 0.8, "rate": 1e-3, "threshold": 475,
                 "set": ["training.scheduler=linear", "training.eta_min=0"]},
    # RLtools' configuration; dtrain keeps its clipping of gradients and its scaling of rewards, which cost time and
    # make up for the discount
    "pendulum": {"id": "Pendulum-v1", "env": "env_pendulum", "steps": 307_200, "envs": 4, "fragment": 1024,
                 "minibatch": 256, "epochs": 2, "gamma": 0.9, "lambda": 0.95, "rate": 1e-3, "threshold": -200,
                 "set": ["controller_mlp.activation=relu", "phase2_ppo.normalise_obs=true",
                         "phase2_ppo.normalise_reward=true"]},
}


def settings(p):
    batch = p["envs"] * p["fragment"]
    return ["env.id=" + p["env"], "env.instances=%d" % p["envs"], "phase2_ppo.fragment=%d" % p["fragment"],
            "phase2_ppo.train_batch=%d" % batch, "data.batch=%d" % p["minibatch"], "data.shards=2",
            "phase2_ppo.sgd_epochs=%d" % p["epochs"], "phase2_ppo.gamma=%g" % p["gamma"],
            "phase2_ppo.lambda=%g" % p["lambda"], "phase2_ppo.entropy_coef=0", "phase2_ppo.entropy_coef_end=0",
            "training.learning_rate=%g" % p["rate"], "training.eval_interval=0", "training.save_interval=0",
            "checkpoint.every_seconds=0", "phase2_ppo.iterations=%d" % (p["steps"] // batch)] + p["set"]


def to_threshold(episodes, threshold):
    """episodes: [steps, seconds, return]; None when it was never reached."""
    for i in range(WINDOW, len(episodes) + 1):
        if statistics.fmean(e[2] for e in episodes[i - WINDOW:i]) >= threshold:
            return episodes[i - 1][:2]
    return None


def pinned(a, threads):
    return (["chrt", "-f", "5"] if a.realtime else []) + ["taskset", "-c", a.cores if threads > 1 else a.cores.split(",")[0]]


def run_dtrain(a, name, threads, seed):
    p = PROBLEMS[name]
    words = [os.path.abspath(a.dtrain), "run", "--plugin", "phase2_ppo", "-q"] + options(settings(p))
    run = tempfile.mkdtemp(prefix="rl_speed-", dir=a.work)
    before, begin = cpu_s(), time.time()
    call(pinned(a, threads) + words + ["--run-dir", run + "/run", "--seed", str(seed + 1), "--threads", str(threads)])
    seconds, cpu = time.time() - begin, cpu_s() - before
    episodes, batch = [], p["envs"] * p["fragment"]
    with open(run + "/run/metrics.jsonl") as f:
        records = [r for r in map(json.loads, f) if "charts/episodes" in r]
    for i, r in enumerate(records):
        episodes += [[(i + 1) * batch, r["wall_s"], r.get("charts/episodic_return")]] * int(r["charts/episodes"])
    out = {"seconds": records[-1]["wall_s"], "process": seconds, "steps": p["steps"], "episodes": episodes,
           "cpu": cpu}
    if a.play:
        words = [os.path.abspath(a.dtrain), "eval", "--plugin", "phase2_ppo", "-q"] + options(settings(p))
        out["return"] = json.loads(call(words + ["--checkpoint", run + "/run", "--json", "--episodes", "1000",
                                                 "--seeds", "100001"]))["return"]["mean"]
    shutil.rmtree(run)
    return out


def run_sb3(a, name, threads, seed):
    here = os.path.dirname(os.path.abspath(__file__))
    env = dict(os.environ, OMP_NUM_THREADS=str(threads))
    return json.loads(call(pinned(a, threads) + [a.peers + "/bin/python", here + "/sb3.py", str(threads), str(seed),
                                                 json.dumps(PROBLEMS[name])], env=env))


def run_cleanrl(a, name, threads, seed):
    """Its own script as it comes; it prints every episode, and its rate since the first step."""
    p = PROBLEMS[name]
    words = [a.peers + "/bin/python", "-u", a.cleanrl, "--seed", str(seed), "--env-id", p["id"], "--total-timesteps",
             str(p["steps"]), "--num-envs", str(p["envs"]), "--num-steps", str(p["fragment"]), "--num-minibatches",
             str(p["envs"] * p["fragment"] // p["minibatch"]), "--update-epochs", str(p["epochs"]), "--gamma",
             str(p["gamma"]), "--gae-lambda", str(p["lambda"]), "--ent-coef", "0", "--learning-rate", str(p["rate"])]
    words += ["--no-cuda"]
    run = tempfile.mkdtemp(prefix="rl_speed-", dir=a.work)
    env = dict(os.environ, OMP_NUM_THREADS=str(threads))
    before = cpu_s()
    text = call(pinned(a, threads) + words, cwd=run, env=env)
    cpu = cpu_s() - before
    shutil.rmtree(run)
    rates = [int(x) for x in re.findall(r"SPS: (\d+)", text)]
    episodes = [[int(s), 0, float(r)] for s, r in re.findall(r"global_step=(\d+), episodic_return=\[?([-0-9.]+)", text)]
    for e in episodes:
        e[1] = e[0] / rates[-1]
    return {"seconds": p["steps"] / rates[-1], "steps": p["steps"], "episodes": episodes,
            "cpu": cpu}


def run_rltools(a, name, threads, seed):
    env = dict(os.environ, OPENBLAS_NUM_THREADS=str(threads))
    text = call(pinned(a, threads) + [a.rltools, str(seed)], env=env)
    word = text.split()
    get = {word[i]: float(word[i + 1]) for i in range(0, len(word), 2)}
    return {"seconds": get["seconds"], "cpu": get["cpu"], "steps": int(get["steps"]), "return": get["return"],
            "episodes": []}


SIDES = {"dtrain": run_dtrain, "sb3": run_sb3, "cleanrl": run_cleanrl, "rltools": run_rltools}


def find_peers(a):
    """What can be compared with; says what cannot."""
    sides = {"cartpole": [("dtrain", 1), ("dtrain", 2)], "pendulum": [("dtrain", 1), ("dtrain", 2)]}
    python = (a.peers or "") + "/bin/python"
    if a.peers and subprocess.run([python, "-c", "import stable_baselines3"], stderr=subprocess.DEVNULL).returncode == 0:
        sides["cartpole"] += [("sb3", 1), ("sb3", 2)]
    else:
        print("without Stable-Baselines3: --peers names no Python environment that has it")
    if a.peers and a.cleanrl:
        a.cleanrl = os.path.abspath(a.cleanrl)
        sides["cartpole"] += [("cleanrl", 1), ("cleanrl", 2)]
    else:
        print("without CleanRL: --cleanrl names no ppo.py")
    if a.rltools:
        a.rltools = compile_rltools(a)
        sides["pendulum"] += [("rltools", 1)]
    else:
        print("without RLtools: --rltools names no checkout")
    print("without PufferLib: it has no program for these problems on the CPU that this bench could run")
    return sides


def compile_rltools(a):
    """Its fastest setting here is OpenBLAS on one thread; CXXFLAGS and LDFLAGS say where that is, if need be."""
    here = os.path.dirname(os.path.abspath(__file__))
    out = a.work + "/rltools"
    call([os.environ.get("CXX", "c++"), "-std=c++17", "-Ofast", "-march=native", "-DRL_TOOLS_BACKEND_ENABLE_OPENBLAS",
          "-I" + a.rltools + "/include", "-I" + a.rltools + "/src/rl/environments/pendulum/ppo/cpu"]
         + os.environ.get("CXXFLAGS", "").split() + ["-o", out, here + "/rltools.cpp"]
         + os.environ.get("LDFLAGS", "").split() + ["-lopenblas"])
    return out


def report(name, side, threads, runs):
    def median(key):
        return statistics.median(r[key] for r in runs)
    what = "%s.%s_%d" % (name, side, threads)
    steps = runs[0]["steps"]
    line = "value rl_speed.%s %.0f steps/s  %.3f s, %.3f s of the processor" % (
        what, steps / median("seconds"), median("seconds"), median("cpu"))
    reached = [to_threshold(r["episodes"], PROBLEMS[name]["threshold"]) for r in runs]
    good = [x for x in reached if x]
    if side == "dtrain":
        line += ", %.3f s with start and checkpoint" % median("process")
    if any(r["episodes"] for r in runs):
        line += "; %g reached in %d of %d runs" % (PROBLEMS[name]["threshold"], len(good), len(runs))
    if good:
        line += " after %.0f steps, %.2f s" % tuple(statistics.median(x[i] for x in good) for i in (0, 1))
    if all("return" in r for r in runs):
        line += "; final return %.1f, worst %.1f" % (median("return"), min(r["return"] for r in runs))
    print(line, flush=True)
    return {"seconds": median("seconds"), "cpu": median("cpu")}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--dtrain", required=True)
    p.add_argument("--peers", help="Python environment with stable-baselines3 (and cleanrl)")
    p.add_argument("--cleanrl", default="", help="cleanrl/ppo.py of a checkout; needs tyro and tensorboard")
    p.add_argument("--rltools", help="a checkout of RLtools; needs OpenBLAS")
    p.add_argument("--repeats", type=int, default=5)
    p.add_argument("--only", choices=sorted(PROBLEMS))
    p.add_argument("--cores", default="0,1", help="two cores, as taskset takes them")
    p.add_argument("--realtime", action="store_true", help="chrt -f: a busy machine disturbs less; needs the right to")
    p.add_argument("--no-play", dest="play", action="store_false", help="do not play 1000 episodes after each training")
    a = p.parse_args()
    a.work = tempfile.mkdtemp(prefix="rl_speed-")
    sides = find_peers(a)
    print("load %.2f %.2f %.2f" % os.getloadavg())
    for name in PROBLEMS:
        if a.only not in (None, name):
            continue
        runs = {s: [] for s in sides[name]}
        for seed in range(a.repeats):
            for side, threads in sides[name]:
                runs[side, threads].append(SIDES[side](a, name, threads, seed))
        got = {s: report(name, *s, runs[s]) for s in sides[name]}
        for peer in ("sb3", "cleanrl", "rltools"):
            both = [s for s in got if s[0] == peer]
            for threads in (1, 2):
                if both:
                    best = min(both, key=lambda s: got[s]["seconds"])
                    target = (1.0, 1.6)[threads - 1] if peer == "rltools" else 10
                    print("ratio rl_speed.%s.%s_%d %.2f target %g  (of the processor %.2f, against its best, on %d)" % (
                        name, peer, threads, got[best]["seconds"] / got["dtrain", threads]["seconds"], target,
                        got[best]["cpu"] / got["dtrain", threads]["cpu"], best[1]))
    print("load %.2f %.2f %.2f" % os.getloadavg())
    shutil.rmtree(a.work)


if __name__ == "__main__":
    sys.exit(main())
