#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How well phase 1 predicts on a store: k folds by scene, pooled, and each site held out whole.

    folds.py --dtrain build/dtrain STORE [--folds 5] [--cross-site] [--work DIR] [dtrain options...]

Every fold trains from scratch and evaluates on complete windows of its held-out scenes only; squared errors are
pooled over folds, so each window counts once. Both sides, model and constant velocity, see the same windows.
"""
import argparse
import json
import math
import subprocess
import sys
import tempfile
import time


def call(words):
    p = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if p.returncode != 0:
        sys.exit("%s\nfailed with exit code %d:\n%s" % (" ".join(words), p.returncode, p.stderr[-2000:]))
    return p.stdout


def train_and_eval(a, extra, name, settings):
    run = "%s/%s" % (a.work, name)
    keys = []
    for s in settings:
        keys += ["--set", s]
    common = ["--plugin", "phase1_world_model", "-q", "--set", "data.store=" + a.store]
    begin = time.time()
    call([a.dtrain, "run"] + common + ["--run-dir", run, "--set", "training.eval_interval=0",
                                       "--set", "checkpoint.every_seconds=0"] + keys + extra)
    r = json.loads(call([a.dtrain, "eval"] + common + ["--checkpoint", run, "--json"] + keys + extra))
    print("%-12s windows %6d  rmse %s  cv %s  ratio at 5 s %.3f  auroc %s  %.0f s" % (
        name, r["samples"], " ".join("%.2f" % x for x in r["rmse_m"]), " ".join("%.2f" % x for x in r["cv_rmse_m"]),
        r["rmse_m"][-1] / r["cv_rmse_m"][-1], r["risk_auroc"], time.time() - begin), flush=True)
    return r


def pooled(results, key):
    n = sum(r["samples"] for r in results)
    horizons = len(results[0][key])
    return [math.sqrt(sum(r["samples"] * r[key][i] ** 2 for r in results) / n) for i in range(horizons)]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("store")
    p.add_argument("--dtrain", default="build/dtrain")
    p.add_argument("--folds", type=int, default=5)
    p.add_argument("--only", type=int, help="one fold")
    p.add_argument("--cross-site", action="store_true")
    p.add_argument("--work", default=None)
    a, extra = p.parse_known_args()
    a.work = a.work or tempfile.mkdtemp(prefix="dtrain-folds-")
    results = []
    for k in range(a.folds):
        if a.only is None or a.only == k:
            results.append(train_and_eval(a, extra, "fold%d" % k, ["data_trajectory.folds=%d" % a.folds,
                                                                   "data_trajectory.fold=%d" % k]))
    rmse, cv = pooled(results, "rmse_m"), pooled(results, "cv_rmse_m")
    for i, h in enumerate(results[0]["horizon_s"]):
        print("value phase1_rmse_over_cv_%gs %.4f 1 target %s" % (h, rmse[i] / cv[i], "0.75" if h == 5 else "1.00"))
    if a.cross_site:
        sites = json.loads(call([a.dtrain, "data", "inspect", a.store, "--json"]))["sites"]
        for site in sites:
            name = site["name"] if isinstance(site, dict) else site
            r = train_and_eval(a, extra, "hold-" + name, ["data_trajectory.eval_site=" + name])
            print("value phase1_rmse_over_cv_5s_on_unseen_%s %.4f 1 target 1.00" % (
                name, r["rmse_m"][-1] / r["cv_rmse_m"][-1]))


main()
