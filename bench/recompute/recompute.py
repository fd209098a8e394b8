#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What engine.recompute saves and costs, model by model: memory of activations as planned - arenas are held to the
byte - and the processor time of a step, against the same steps without it: not the clock's, which a busy machine
stretches. Every variant has to end in the same bits."""
import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from common import call, cpu_s

VARIANTS = (("kept", []), ("perception", ["perception"]), ("world", ["world"]), ("all", ["perception", "world"]))


def options(preset, roles, batch):
    o = ["--set", f"risk_gnn.preset={preset}", "--set", f"world_lstm.preset={preset}", "--set", f"data.batch={batch}"]
    if roles:
        o += ["--set", "engine.recompute=true", "--set", "engine.recompute_roles=" + ",".join(roles)]
    return o


def train(base, opts, steps, bits):
    """Processor time of a run of so many steps; bits gets the state it ends in."""
    with tempfile.TemporaryDirectory() as where:
        run = pathlib.Path(where) / "run"
        before = cpu_s()
        call(base + opts + ["--max-steps", str(steps), "--run-dir", str(run), "--set", "report.enabled=false", "-q"])
        took = cpu_s() - before
        bits.add(json.loads(call([base[0], "ckpt", "inspect", str(run), "--json"]))["state_hash"])
        return took


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--dtrain", required=True)
    p.add_argument("--threads", default="1")
    p.add_argument("--rounds", type=int, default=9, help="runs of each variant, in turns")
    p.add_argument("--steps", type=int, default=4, help="that are measured, after the first one")
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--preset", action="append")
    a = p.parse_args()
    base = [a.dtrain, "run", "--plugin", "phase1_world_model", "--threads", a.threads, "--device", "cpu"]
    for preset in a.preset or ["guide", "15m"]:
        activations, peak, times, bits = {}, {}, {n: [] for n, _ in VARIANTS}, set()
        for name, roles in VARIANTS:
            plan = json.loads(call(base + options(preset, roles, a.batch) + ["--dry-run", "--json"]))["phases"][0]
            activations[name], peak[name] = plan["bytes"]["activations"], plan["planned_peak"]
        for _ in range(a.rounds):
            for name, roles in VARIANTS:
                opts = options(preset, roles, a.batch)
                short = train(base, opts, 1, set())
                times[name].append((train(base, opts, 1 + a.steps, bits) - short) / a.steps)
        assert len(bits) == 1, f"{preset}: variants end in {len(bits)} states"
        for name, _ in VARIANTS:
            ratio = statistics.median(t / k for t, k in zip(times[name], times["kept"]))
            print(f"{preset:6} {name:10} activations {activations[name] / 1e6:7.1f} MB, planned peak "
                  f"{peak[name] / 1e6:7.1f} MB, a step {statistics.median(times[name]) * 1e3:7.1f} ms, {ratio:.2f} of kept")
            if name != "kept":
                print(f"value {preset}_{name}_memory_saved {100 * (1 - activations[name] / activations['kept']):.1f} % "
                      "target 0")
                print(f"value {preset}_{name}_time_paid {100 * (ratio - 1):.1f} % target 40")


if __name__ == "__main__":
    main()
