# SPDX-License-Identifier: Apache-2.0
"""bench/run gpu: dtrain's phase-1 step on one GPU against the same model in PyTorch on the same GPU.

The models, batches and weights are those of bench/run phase1_step. First both sides step in full precision, waiting for
every step: their losses must agree before anything is timed. Then they take turns in bf16 (autocast on PyTorch's side),
many steps at a time with one wait at the end, because dtrain reads results a step late. Ratios are PyTorch's time over
dtrain's, medians over the pairs. PyTorch's batches lie on the GPU before the clock starts; dtrain's time includes
reading its data and bringing it over. Variants: PyG-style eager, dense eager, torch.compile(max-autotune) with CUDA
graphs. Needs PyTorch and numpy, nothing else.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "phase1_step"))
import peer as cpu  # noqa: E402  (Driver, options and limits are shared)

TARGETS = {"guide": {"pyg": 8.0, "dense": 4.0, "compile": 1.3}, "15m": {"pyg": 6.0, "dense": 3.0, "compile": 1.2}}
CHECKED = 20
TIMED = 50


def load_weights(path):
    """A safetensors file of float32 tensors, without the library."""
    import torch
    with open(path, "rb") as f:
        n = int.from_bytes(f.read(8), "little")
        head = json.loads(f.read(n))
        body = bytearray(f.read())
    out = {}
    for name, t in head.items():
        if name != "__metadata__":
            begin, end = t["data_offsets"]
            flat = torch.frombuffer(body, dtype=torch.float32, count=(end - begin) // 4, offset=begin) \
                if end > begin else torch.zeros(0)
            out[name] = flat.reshape(t["shape"]).clone().cuda()
    return out


class Peer:
    """One PyTorch variant on the GPU: its own copy of the weights, its own optimizer."""

    def __init__(self, name, weights, batches, half):
        import torch
        import model
        self.torch, self.batches, self.at = torch, batches, 0
        self.p = {k: v.clone().requires_grad_() for k, v in weights.items()}
        self.list = list(self.p.values())
        self.optimizer = torch.optim.AdamW(self.list, lr=cpu.LEARNING_RATE, weight_decay=cpu.WEIGHT_DECAY, fused=True)
        dense = name != "pyg"

        def loss(p, b):
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=half):
                return model.loss(p, b, dense)

        self.loss = torch.compile(loss, mode="max-autotune", dynamic=False) if name == "compile" else loss

    def step(self):
        total = self.loss(self.p, self.batches[self.at % len(self.batches)])
        self.optimizer.zero_grad(set_to_none=True)
        total.backward()
        self.torch.nn.utils.clip_grad_norm_(self.list, cpu.CLIP, foreach=True)
        self.optimizer.step()
        self.at += 1
        return total

    def run(self, n):
        """Seconds per step of n steps with one wait at the end."""
        self.torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(n):
            self.step()
        self.torch.cuda.synchronize()
        return (time.perf_counter() - begin) / n


def run_driver(driver, n):
    return sum(s[0] for s in driver.ask(f"step {n}")) / n


def bench(args, preset, batch, folder):
    import torch
    import batch as layout
    label = f"gpu.phase1.{preset}.{batch}"
    args.batch = batch
    args.dtype = "fp32"
    common = list(args.set)
    args.set = common + ["engine.device=cuda", "engine.synchronous=true"]
    checked = cpu.Driver(args, preset, folder, CHECKED)
    ours = checked.ask(f"step {CHECKED}")
    checked.close()
    weights = load_weights(os.path.join(folder, "model.safetensors"))
    raws = [layout.load(os.path.join(folder, f"{i:03d}")) for i in range(CHECKED)]
    cap = layout.capacity(raws)
    args.dtype = args.half
    args.set = common + ["engine.device=cuda"]
    driver = cpu.Driver(args, preset, folder, 0)
    args.set = common
    driver.ask(f"step {TIMED}")  # capture, and every shape class met
    for name, target in TARGETS[preset].items():
        if args.only and name not in args.only:
            continue
        batches = [{k: v.cuda() for k, v in layout.prepare(r, cap, cpu.DT_S, pad=name == "compile").items()}
                   for r in raws]
        peer = Peer(name, weights, batches, False)
        theirs = [(0, float(peer.step()), 0) for _ in range(CHECKED)]
        cpu.compare(f"{label}.{name}", ours, theirs, cpu.TOLERANCE["fp32"])
        peer = Peer(name, weights, batches, args.half == "bf16")
        peer.run(CHECKED)
        mine, his = [], []
        for i in range(args.pairs):
            for side in [0, 1] if i % 2 == 0 else [1, 0]:
                if side == 0:
                    mine.append(run_driver(driver, TIMED))
                else:
                    his.append(peer.run(TIMED))
        ratio = statistics.median(b / a for a, b in zip(mine, his))
        print(f"  dtrain {1e3 * statistics.median(mine):.3f} ms ({1e3 * min(mine):.3f} to {1e3 * max(mine):.3f}), PyTorch "
              f"{1e3 * statistics.median(his):.3f} ms ({1e3 * min(his):.3f} to {1e3 * max(his):.3f}), {args.pairs} pairs "
              f"of {TIMED} steps, {args.half}", flush=True)
        print(f"ratio {label}.{name} {ratio:.2f} target {target:g}", flush=True)
    driver.close()


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--driver", required=True, help="the dtrain side, bench_phase1_step of a build")
    a.add_argument("--preset", action="append", choices=list(TARGETS), help="default: both")
    a.add_argument("--only", action="append", choices=["pyg", "dense", "compile"], help="default: all")
    a.add_argument("--batch", type=int, action="append", help="default: 32 and 256")
    a.add_argument("--half", choices=["bf16", "fp32"], default="bf16", help="what is timed")
    a.add_argument("--threads", type=int, default=min(8, os.cpu_count() or 1))
    a.add_argument("--pairs", type=int, default=9)
    a.add_argument("--store", help="a store; default: the embedded recording")
    a.add_argument("--set", action="append", default=[], help="further settings of dtrain")
    args = a.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("bench gpu: no PyTorch here (pip install torch)")
    if not torch.cuda.is_available():
        sys.exit("bench gpu: skipped, PyTorch sees no GPU")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], text=True,
                          capture_output=True).stdout.split("\n")[0]
    print(f"machine: {torch.cuda.get_device_name()}, driver {driver}, PyTorch {torch.__version__} with CUDA "
          f"{torch.version.cuda}, {os.cpu_count()} CPUs, {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC", flush=True)
    for preset in args.preset or list(TARGETS):
        for batch in args.batch or [32, 256]:
            with tempfile.TemporaryDirectory(prefix="bench-gpu-") as folder:
                bench(args, preset, batch, folder)


if __name__ == "__main__":
    main()
