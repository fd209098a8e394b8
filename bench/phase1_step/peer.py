# SPDX-License-Identifier: Apache-2.0
"""bench/run phase1_step: dtrain's phase-1 step against the same model in PyTorch.

Both sides get the same batches, in the same order, and the same initial weights (through safetensors); losses of the
first 20 steps must agree before anything is timed. Then pairs of measurements take turns: while one side steps, the
other sleeps. Ratios are PyTorch's time over dtrain's, medians over the pairs. PyTorch's batches are laid out before
the clock starts; dtrain's time includes reading its data. With --dtype bf16 dtrain runs with amp.enabled and PyTorch
under autocast.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

CHECKED = 20        # steps whose losses are compared
# of max(1, |loss|): sums in different orders, in bf16 also values rounded in other places, grown over the updates
TOLERANCE = {"fp32": 2e-3, "bf16": 1e-2}
COMPARED = {"fp32": CHECKED, "bf16": 10}  # the first of those steps; later ones grow apart in bf16
DT_S = 0.2
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 1e-4
CLIP = 1.0

PRESETS = {
    "guide": {"targets": {"dense": 2.0, "compile": 1.5, "pyg": 10.0}, "rss": 300},
    "15m": {"targets": {"dense": 1.2, "compile": 1.1, "pyg": 4.0}, "rss": 450},
}
BF16_TARGETS = {"dense": 3.0, "compile": 2.0, "pyg": 10.0}


def options(args, preset):
    """What `dtrain run` gets: a constant rate and the whole horizon from the start, so that both sides stay simple."""
    sets = [f"data.batch={args.batch}", "training.scheduler=constant", "training.warmup_epochs=0",
            "training.epochs=100000", f"training.learning_rate={LEARNING_RATE}",
            f"training.weight_decay={WEIGHT_DECAY}", f"training.gradient_clip={CLIP}",
            "phase1_world_model.horizon_epochs=0", f"risk_gnn.preset={preset}", f"world_lstm.preset={preset}",
            "risk_gnn.dropout=0", "world_lstm.dropout=0"]  # masks of two generators would differ
    if args.dtype == "bf16":
        sets.append("amp.enabled=true")
    if args.store:
        sets.append(f"data.store={args.store}")
    out = ["--plugin", "phase1_world_model", "--threads", str(args.threads), "-q"]
    for s in sets + args.set:
        out += ["--set", s]
    return out


class Driver:
    """dtrain's side: a process that steps when it is told to."""

    def __init__(self, args, preset, folder, n):
        self.begin = time.perf_counter()
        self.process = subprocess.Popen([args.driver, folder, str(n)] + options(args, preset), text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.read("start")
        self.start_s = time.perf_counter() - self.begin  # ready: the next thing is the first step

    def read(self, what):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"phase1_step: the dtrain side ended while asked to {what}")
        return line

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return json.loads(self.read(command))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Peer:
    """One PyTorch variant: its own copy of the weights, its own optimizer."""

    def __init__(self, name, weights, batches, dtype):
        import torch
        import model
        self.torch, self.name, self.batches, self.at = torch, name, batches, 0
        self.p = {k: v.clone().requires_grad_() for k, v in weights.items()}
        self.list = list(self.p.values())
        self.optimizer = torch.optim.AdamW(self.list, lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=True)
        dense = name != "pyg"

        def loss(p, b):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == "bf16"):
                return model.loss(p, b, dense)

        self.loss = loss
        if name == "compile":
            # inductor (2.15) stumbles over the several results of oneDNN's LSTM layer, so that one runs as it is
            model.lstm = torch.compiler.disable(torch.lstm)
            torch._dynamo.config.recompile_limit = 64
            self.loss = torch.compile(self.loss, dynamic=False)

    def step(self):
        begin = time.perf_counter()
        total = self.loss(self.p, self.batches[self.at % len(self.batches)])
        self.optimizer.zero_grad(set_to_none=True)
        total.backward()
        norm = self.torch.nn.utils.clip_grad_norm_(self.list, CLIP)
        self.optimizer.step()
        value = total.item()
        self.at += 1
        return time.perf_counter() - begin, value, float(norm)


def compare(name, ours, theirs, limit):
    """Largest difference of the losses of the first steps; ends the bench when it is not the same work."""
    worst = max(abs(a[1] - b[1]) / max(1.0, abs(a[1])) for a, b in zip(ours, theirs))
    print(f"{name}: losses of {len(theirs)} steps agree within {worst:.1e} (limit {limit:.0e}); first "
          f"{ours[0][1]:.6f} and {theirs[0][1]:.6f}, last {ours[len(theirs) - 1][1]:.6f} and {theirs[-1][1]:.6f}; "
          f"gradient norms {ours[0][2]:.5f} and {theirs[0][2]:.5f}", flush=True)
    if not worst <= limit:
        for i, (a, b) in enumerate(zip(ours, theirs)):
            print(f"  step {i}: dtrain {a[1]:.7g}, PyTorch {b[1]:.7g}")
        sys.exit("phase1_step: the two sides do not do the same work, nothing is compared")


def calibrate(torch):
    """Seconds of a fixed matrix product on one thread: what the machine is worth right now."""
    a, b = torch.ones(512, 512), torch.ones(512, 512)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    times = []
    for _ in range(9):
        begin = time.perf_counter()
        a @ b
        times.append(time.perf_counter() - begin)
    torch.set_num_threads(threads)
    return 2 * 512 ** 3 / min(times) / 1e9


def busy_share():
    """Jiffies of all CPUs: busy, total."""
    with open("/proc/stat") as f:
        t = [int(x) for x in f.readline().split()[1:]]
    return sum(t) - t[3] - t[4], sum(t)


def pairs(driver, peer, n, k):
    """n times k steps of each side in turns -> times per step of dtrain, of PyTorch."""
    ours, theirs = [], []
    for i in range(n):
        sides = [0, 1] if i % 2 == 0 else [1, 0]
        for side in sides:
            time.sleep(0.05)
            if side == 0:
                ours.append(statistics.median(s[0] for s in driver.ask(f"step {k}")))
            else:
                theirs.append(statistics.median(peer.step()[0] for _ in range(k)))
    return ours, theirs


def contention(driver, n):
    """Step time beside one busy process over step time alone, taking turns."""
    alone, beside = [], []
    for _ in range(n):
        alone.append(statistics.median(s[0] for s in driver.ask("step 5")))
        hog = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        time.sleep(0.2)
        beside.append(statistics.median(s[0] for s in driver.ask("step 5")))
        hog.kill()
        hog.wait()
    return statistics.median(beside) / statistics.median(alone)


def bench(args, preset, folder):
    import torch
    import batch as layout
    from safetensors.torch import load_file
    want = PRESETS[preset]
    targets = BF16_TARGETS if args.dtype == "bf16" else want["targets"]
    label = f"phase1_step.{preset}" + (".bf16" if args.dtype == "bf16" else "")
    driver = Driver(args, preset, folder, CHECKED)
    weights = load_file(os.path.join(folder, "model.safetensors"))
    raws = [layout.load(os.path.join(folder, f"{i:03d}")) for i in range(CHECKED)]
    cap = layout.capacity(raws)
    rows = statistics.mean(r["nodes"].shape[0] for r in raws)
    edges = statistics.mean(r["col"].shape[0] for r in raws)
    print(f"{preset}: {sum(v.numel() for v in weights.values())} parameters; a batch of {args.batch} scenes has on "
          f"average {rows:.0f} vehicle rows and {edges:.0f} edges; padded to {cap[0]} frames of {cap[1]}", flush=True)
    ours = driver.ask(f"step {CHECKED}")
    for name in args.only or list(targets):
        batches = [layout.prepare(r, cap, DT_S, pad=name == "compile") for r in raws]
        n_check = COMPARED[args.dtype]
        peer = Peer(name, weights, batches, args.dtype)
        theirs = [peer.step() for _ in raws][:n_check]  # all of them: compiled code has seen every batch
        compare(f"{label}.{name}", ours, theirs, TOLERANCE[args.dtype])
        gf = calibrate(torch)
        busy = busy_share()
        mine, his = pairs(driver, peer, args.pairs, 1 if name == "pyg" else 2)
        after = busy_share()
        ratio = statistics.median(b / a for a, b in zip(mine, his))
        load = (after[0] - busy[0]) / max(1, after[1] - busy[1])
        print(f"  dtrain {1e3 * statistics.median(mine):.1f} ms (spread {1e3 * min(mine):.1f} to {1e3 * max(mine):.1f}), "
              f"PyTorch {1e3 * statistics.median(his):.1f} ms ({1e3 * min(his):.1f} to {1e3 * max(his):.1f}), "
              f"{args.pairs} pairs; one thread makes {gf:.0f} GF, CPUs {100 * load:.0f} % busy", flush=True)
        print(f"ratio {label}.{name} {ratio:.2f} target {targets[name]:g}", flush=True)
    if not args.only:
        print(f"value {label}.contention {contention(driver, 5):.2f} x target 2.5", flush=True)
    driver.close()
    if not args.only:
        starts = []
        for _ in range(5):
            fresh = Driver(args, preset, folder, 0)
            starts.append(fresh.start_s)
            if len(starts) == 5:
                fresh.ask("step 10")
                rss = fresh.ask("rss") / 1e6
            fresh.close()
        print(f"value {label}.first_step {statistics.median(starts):.3f} s target 0.3", flush=True)
        print(f"value {label}.resident {rss:.0f} MB target {want['rss']}", flush=True)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--driver", required=True, help="the dtrain side, bench_phase1_step of a build")
    a.add_argument("--preset", action="append", choices=list(PRESETS), help="default: both")
    a.add_argument("--only", action="append", choices=["dense", "compile", "pyg"], help="default: all, and the values")
    a.add_argument("--dtype", choices=list(TOLERANCE), default="fp32", help="default: fp32")
    a.add_argument("--batch", type=int, default=32)
    a.add_argument("--threads", type=int, default=2)
    a.add_argument("--pairs", type=int, default=9)
    a.add_argument("--store", help="a store; default: the embedded recording")
    a.add_argument("--set", action="append", default=[], help="further settings of dtrain")
    args = a.parse_args()

    import torch
    torch.set_num_threads(args.threads)
    with open("/proc/cpuinfo") as f:
        cpu = next((line.split(":")[1].strip() for line in f if line.startswith("model name")), "unknown")
    print(f"machine: {cpu}, {os.cpu_count()} CPUs, {args.threads} threads each; PyTorch {torch.__version__}, "
          f"Python {sys.version.split()[0]}, Linux {os.uname().release}, "
          f"{time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC", flush=True)
    for preset in args.preset or list(PRESETS):
        with tempfile.TemporaryDirectory(prefix="phase1_step-") as folder:
            bench(args, preset, folder)


if __name__ == "__main__":
    main()
