#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/run store_bits: does phase 1 learn as well from features in fewer bits? The same trainings on the same
recording, kept as f32, f16 and i8, from the same seeds: the mean loss of each epoch, and what an evaluation makes of
the end. How far seeds are apart on the f32 store is the yardstick: the largest difference between the means over the
seeds, of f16 or i8 and f32, over the standard deviation of the seeds, in the epochs of the last half; and of the RMSE at
the horizon."""
import json
import os
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common

KINDS = ("f32", "f16", "i8")


def epochs(run):
    """Mean loss of each epoch of a run."""
    rows = common.rows(run, "loss")
    with open(os.path.join(run, "progress.json"), encoding="utf-8") as f:
        per = json.load(f)["steps_per_epoch"]
    loss = [r["loss"] for r in rows]
    return [statistics.fmean(loss[i:i + per]) for i in range(0, len(loss) - per + 1, per)]


def main():
    p = common.parser(__doc__)
    p.add_argument("--source", default=common.RECORDING, help="a recording, as dtrain data import takes it")
    p.add_argument("--seeds", type=int, default=4)
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--smooth", default="0", help="import.smooth_s")
    a = common.parse(p)
    if a.quick:
        a.seeds, a.epochs = 2, 2
    loss, rmse = {k: [] for k in KINDS}, {k: [] for k in KINDS}
    for kind in KINDS:
        common.call([a.dtrain, "data", "import", a.source, "--out", os.path.join(a.work, kind), "-q",
                     *common.options({"import.smooth_s": a.smooth, "store.features": kind})])
    for seed in range(1, a.seeds + 1):
        for kind in KINDS:
            run = os.path.join(a.work, f"run-{kind}-{seed}")
            sets = {"data.store": os.path.join(a.work, kind), "seed": seed, "training.epochs": a.epochs,
                    "training.warmup_epochs": 1, "training.eval_interval": 0, "data.batch": 16, "risk_gnn.hidden": 64,
                    "world_lstm.hidden": 64, "report.enabled": "false", "metrics.tensorboard": "false"}
            common.train(a, "phase1_world_model", run, sets, "--threads", "1")
            loss[kind].append(epochs(run))
            result = common.evaluate(a, "phase1_world_model", run, {"data.store": os.path.join(a.work, kind)},
                                     "--threads", "1")
            rmse[kind].append(result["rmse_m"][-1])
    print("mean loss of each epoch, the mean of %d seeds and their standard deviation" % a.seeds)
    for e in range(len(loss["f32"][0])):
        cells = ["%s %.4f +- %.4f" % (k, statistics.fmean(r[e] for r in loss[k]), statistics.stdev(r[e] for r in loss[k]))
                 for k in KINDS]
        print("epoch %2d  %s" % (e + 1, "  ".join(cells)))
    for kind in KINDS:
        print("%-4s RMSE at 5 s, m: %s" % (kind, " ".join("%.3f" % v for v in rmse[kind])))
    last = range(len(loss["f32"][0]) // 2, len(loss["f32"][0]))
    for kind in KINDS[1:]:
        apart = max(abs(statistics.fmean(r[e] for r in loss[kind]) - statistics.fmean(r[e] for r in loss["f32"])) /
                    statistics.stdev(r[e] for r in loss["f32"]) for e in last)
        common.tell("store_bits.%s_loss" % kind, apart, "of the seeds' spread", "1 at most")
        apart = abs(statistics.fmean(rmse[kind]) - statistics.fmean(rmse["f32"])) / statistics.stdev(rmse["f32"])
        common.tell("store_bits.%s_rmse" % kind, apart, "of the seeds' spread", "1 at most")


if __name__ == "__main__":
    main()
