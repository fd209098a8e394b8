# SPDX-License-Identifier: Apache-2.0
"""examples/mbpo.c on pendulum, with imagined transitions and without: returns of evaluations by environment steps.

Both arms have the same seeds, environment steps, updates and evaluations; options of dtrain count for both.
"""
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import common  # noqa: E402

ARMS = {"imagined": "8", "real": "0"}


def train(a, arm, seed):
    """[(environment steps, return)] of a run."""
    run = os.path.join(a.work, "%s-%d" % (arm, seed))
    sets = {"seed": seed, "mbpo.horizon": ARMS[arm], "mbpo.iterations": a.rounds, "critic_mlp.hidden": 64,
            "training.eval_interval": 5, "training.save_interval": 0, "evaluation.baselines": "",
            "report.enabled": "false", "metrics.tensorboard": "false"}
    seconds = common.train(a, a.plugin, run, sets, "--threads", "1")
    points = [(r["env_steps"], r["eval/return/mean"]) for r in common.rows(run, "eval/return/mean")]
    print("%-8s seed %-2d %4.0f s  %s" % (arm, seed, seconds, "  ".join("%d: %.0f" % p for p in points)), flush=True)
    return points


def main():
    p = common.parser(__doc__)
    p.add_argument("--plugin", default="build/examples/.libs/mbpo.so")
    p.add_argument("--seeds", type=int, default=6)
    p.add_argument("--rounds", type=int, default=35)
    a = common.parse(p)
    if a.quick:
        a.seeds, a.rounds = 1, 2
    of = {arm: [] for arm in ARMS}
    for seed in range(1, a.seeds + 1):
        for arm in ARMS:
            of[arm].append(train(a, arm, seed))
    for arm, runs in of.items():
        print("%-8s mean    %s" % (arm, "  ".join(
            "%d: %.0f" % (at[0][0], statistics.fmean(v for _, v in at)) for at in zip(*runs))))
    last = {arm: statistics.fmean(run[-1][1] for run in runs) for arm, runs in of.items()}
    common.tell("mbpo_real_data", last["real"], "return", "-1600", "the last evaluation, no imagined data")
    common.tell("mbpo_imagined_data", last["imagined"], "return", "-300")
    common.tell("mbpo_gain", last["imagined"] - last["real"], "return", "0")


if __name__ == "__main__":
    main()
