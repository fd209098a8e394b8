#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How well phase 1 predicts on a store: k folds by scene, pooled, and each site held out whole. The targets are those of
a store with roads.

    bench/run phase1_folds STORE [--folds 5] [--only FOLD] [--cross-site] [--work DIR] [--quick] [dtrain options...]

Every fold trains from scratch and evaluates on complete windows of its held-out scenes only; squared errors are
pooled over folds, so each window counts once. Both sides, model and constant velocity, see the same windows.
"""
import json
import math
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import common


LEVELS = (50, 80, 95)


def train_and_eval(a, name, sets):
    run, sets = "%s/%s" % (a.work, name), {"data.store": a.store, **sets}
    took = common.train(a, "phase1_world_model", run,
                        {**sets, "training.eval_interval": 0, "checkpoint.every_seconds": 0})
    r = common.evaluate(a, "phase1_world_model", run, sets)
    print("%-12s windows %6d  rmse %s  cv %s  ratio at 5 s %.3f  mean distance at 1 s %.3f  auroc %s  %.0f s" % (
        name, r["samples"], " ".join("%.2f" % x for x in r["rmse_m"]), " ".join("%.2f" % x for x in r["cv_rmse_m"]),
        r["rmse_m"][-1] / r["cv_rmse_m"][-1], first_distance(r), r["risk_auroc"], took), flush=True)
    for level in LEVELS:
        print("%-12s coverage of %d %%: %s" % ("", level, " ".join("%.2f" % x for x in r["coverage_%d" % level])))
    print("%-12s k = 1: ade %.2f fde %.2f missed %.2f, k = 6: ade %.2f fde %.2f missed %.2f, constant velocity: ade %.2f "
          "fde %.2f missed %.2f" % ("", r["min_ade_1"], r["min_fde_1"], r["miss_rate_1"], r["min_ade_6"], r["min_fde_6"],
                                    r["miss_rate_6"], r["cv_ade"], r["cv_displacement_m"][-1], r["cv_miss_rate"]),
          flush=True)
    return r


def first_distance(r):
    """Mean distance at the first horizon over constant velocity's."""
    return r["displacement_m"][0] / r["cv_displacement_m"][0]


def mean_of(results, key):
    """Of all windows: a list by horizon, or a number."""
    n = sum(r["samples"] for r in results)
    if isinstance(results[0][key], list):
        return [sum(r["samples"] * r[key][i] for r in results) / n for i in range(len(results[0][key]))]
    return sum(r["samples"] * r[key] for r in results) / n


def pooled(results, key):
    n = sum(r["samples"] for r in results)
    horizons = len(results[0][key])
    return [math.sqrt(sum(r["samples"] * r[key][i] ** 2 for r in results) / n) for i in range(horizons)]


def main():
    p = common.parser(__doc__)
    p.add_argument("store")
    p.add_argument("--folds", type=int, default=5)
    p.add_argument("--only", type=int, help="one fold")
    p.add_argument("--cross-site", action="store_true")
    a = common.parse(p)
    if a.quick:
        a.only = 0
        a.more += common.options({"training.epochs": 1})
    results = []
    for k in range(a.folds):
        if a.only is None or a.only == k:
            results.append(train_and_eval(a, "fold%d" % k, {"data_trajectory.folds": a.folds,
                                                            "data_trajectory.fold": k}))
    rmse, cv = pooled(results, "rmse_m"), pooled(results, "cv_rmse_m")
    for i, h in enumerate(results[0]["horizon_s"]):
        target = 0.65 if h == 5 else 1
        common.tell("phase1_folds.rmse_over_cv_%gs" % h, rmse[i] / cv[i], "1", "%g at most" % target)
    for level in LEVELS:
        common.tell("phase1_folds.coverage_%d_5s" % level, 100 * mean_of(results, "coverage_%d" % level)[-1], "%",
                    "%d, 5 more or less" % level)
    for key in ("min_fde_1", "min_fde_6"):
        common.tell("phase1_folds." + key, mean_of(results, key), "m", "none")
    if a.cross_site:
        sites = json.loads(common.call([a.dtrain, "data", "inspect", a.store, "--json"]))["sites"]
        for site in sites:
            name = site["name"] if isinstance(site, dict) else site
            r = train_and_eval(a, "hold-" + name, {"data_trajectory.eval_site": name})
            common.tell("phase1_folds.rmse_over_cv_5s_on_unseen_" + name, r["rmse_m"][-1] / r["cv_rmse_m"][-1], "1",
                        "0.75 at most")
            common.tell("phase1_folds.distance_over_cv_1s_on_unseen_" + name, first_distance(r), "1", "1 at most")


if __name__ == "__main__":
    main()
