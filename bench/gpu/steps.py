# SPDX-License-Identifier: Apache-2.0
"""Time of a step of phase 1 on a GPU, dtrain alone: presets, precisions, batches, readers. Needs no PyTorch.

Prints one line per combination: median, smallest and largest mean of measurements of 100 steps, the share of a step that
waited for data, and the bound that `dtrain bench gpu --predict` calculates. A combination that fails or exceeds --box
loses only itself. Exit codes: 0, 1 (a combination failed), 5 (no GPU can be used).
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import common  # noqa: E402

KINDS = {"bf16": ["amp.enabled=true"], "fp32": [], "tf32": ["engine.tf32=true"],
         "bf16, one reader": ["amp.enabled=true", "data.workers=1"]}
WARM_UP, TIMED = 100, 100


def settings(args, preset, kind, batch):
    sets = [f"data.batch={batch}", f"data.store={args.store}", "data.workers=8", "training.scheduler=constant",
            "training.warmup_epochs=0", "training.epochs=100000", f"risk_gnn.preset={preset}",
            f"world_lstm.preset={preset}", *KINDS[kind], *args.set]
    return ["--plugin", "phase1_world_model", "--threads", str(args.threads), "-q", *common.options(sets)]


def predict(args, preset, kind, batch):
    """The calculated bound in ms, or why there is none."""
    if not args.predict:
        return "no bound for this GPU"
    p = subprocess.run([args.dtrain, "bench", "gpu", "--predict", args.predict, *settings(args, preset, kind, batch)],
                       text=True, capture_output=True)
    found = re.search(r"no step is faster than ([0-9.]+) ms", p.stdout)
    return f"bound {found.group(1)} ms" if found else f"no bound: exit code {p.returncode}"


def measure(args, preset, kind, batch):
    label = f"steps {preset} {kind} batch {batch}"
    asked = [WARM_UP] + [TIMED] * args.repeats
    with tempfile.TemporaryDirectory(prefix="steps-") as folder:
        try:
            p = subprocess.run([args.driver, folder, "0", *settings(args, preset, kind, batch),
                                *common.options([f"engine.device={args.device}"])],
                               input="".join(f"step {n}\n" for n in asked), text=True, capture_output=True,
                               timeout=args.box)
        except subprocess.TimeoutExpired:
            print(f"FAILED {label}: more than {args.box:g} s", flush=True)
            return 1
    measured = [json.loads(line) for line in p.stdout.splitlines() if line.startswith("[")]
    if p.returncode != 0 or len(measured) != len(asked):
        print(f"FAILED {label}: exit code {p.returncode}: {' '.join(p.stderr.split())[-300:]}", flush=True)
        return 1
    times = [1e3 * statistics.fmean(s[0] for s in m) for m in measured[1:]]
    wait = sum(s[3] for m in measured[1:] for s in m) / sum(s[0] for m in measured[1:] for s in m)
    print(f"= {label}: {statistics.median(times):.3f} ms a step ({min(times):.3f} to {max(times):.3f}), data_wait "
          f"{100 * wait:.1f} %, {predict(args, preset, kind, batch)}, loss {measured[-1][-1][1]:.4g}", flush=True)
    return 0


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--driver", required=True, help="bench_phase1_step of a build")
    a.add_argument("--dtrain", required=True)
    a.add_argument("--store", required=True, help="larger than the recording, so that an epoch has many steps")
    a.add_argument("--predict", help="name of the GPU, as dtrain bench gpu knows it")
    a.add_argument("--preset", action="append", choices=["guide", "15m"], help="default: both")
    a.add_argument("--kind", action="append", choices=list(KINDS), help="default: all")
    a.add_argument("--batch", type=int, action="append", help="default: 64, and 256 in bf16")
    a.add_argument("--threads", type=int, default=max(2, (os.cpu_count() or 2) - 1))
    a.add_argument("--repeats", type=int, default=5)
    a.add_argument("--box", type=float, default=25, help="seconds that a combination may take")
    a.add_argument("--device", default="cuda")
    a.add_argument("--set", action="append", default=[], help="further settings of dtrain")
    args = a.parse_args()
    p = subprocess.run([args.dtrain, *settings(args, "guide", "fp32", 64), "--device", args.device, "--dry-run"], text=True,
                       capture_output=True)
    if p.returncode == 5:
        print(" ".join(p.stderr.split())[-300:])
        sys.exit(5)
    failed = 0
    for preset in args.preset or ["guide", "15m"]:
        for kind in args.kind or list(KINDS):
            for batch in args.batch or ([64, 256] if kind == "bf16" else [64]):
                failed += measure(args, preset, kind, batch)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
