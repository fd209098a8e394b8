# SPDX-License-Identifier: Apache-2.0
"""bench/run gpu: dtrain's phase-1 step on one GPU compared with the same model in PyTorch on the same GPU.

Models, batches and weights are those of bench/run phase1_step. Losses of the first 20 steps must agree before anything
is timed. Then both sides take turns in bf16 (autocast on PyTorch's side), many steps at a time with one wait at the end,
because dtrain reads results one step late. Ratios are PyTorch's time over dtrain's, medians over the pairs. PyTorch's
batches are on the GPU before the clock starts; dtrain's time includes reading its data and copying it to the GPU: data
comes from a store of 16 copies of the recording, by 8 workers, and the share of a step that waited for data is printed.

Variants: dense (eager), graph (dense; forward, backward, clipping and AdamW captured as one CUDA graph), compile (the
same of torch.compile'd code), pyg (eager, PyG style). Each runs in a process of its own with a time box (--box), so a
variant that fails or hangs loses only itself. Exit codes: 0, 1 (a variant failed), 77 (no PyTorch, or it sees no GPU).
"""
import argparse
import importlib.util
import json
import math
import multiprocessing
import os
import statistics
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
sys.path.insert(0, os.path.join(HERE, "..", "phase1_step"))
import common  # noqa: E402
import peer as cpu  # noqa: E402  (Driver, options and limits are shared)

TARGETS = {"guide": {"dense": 4.0, "graph": 2.0, "compile": 1.3, "pyg": 8.0},
           "15m": {"dense": 3.0, "graph": 1.5, "compile": 1.2, "pyg": 6.0}}
CHECKED = 20
TIMED = 50
COPIES = 16  # of the recording: an epoch has 121 steps of 64, and the host waits for the last step of each epoch
TOLERANCE = {"fp32": 2e-3, "bf16": 5e-2}


def load_weights(path, device):
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
            out[name] = flat.reshape(t["shape"]).clone().to(device)
    return out


class Peer:
    """One PyTorch variant: its own copy of the weights, its own optimizer. With is_captured a step is the replay of one
    CUDA graph, whose inputs are static copies of the batch."""

    def __init__(self, name, weights, batches, half, is_captured):
        import torch
        import model
        self.torch, self.batches, self.at, self.graph = torch, batches, 0, None
        self.p = {k: torch.nn.Parameter(v.clone()) for k, v in weights.items()}
        self.list = list(self.p.values())
        self.optimizer = torch.optim.AdamW(self.list, lr=cpu.LEARNING_RATE, weight_decay=cpu.WEIGHT_DECAY,
                                           fused=True, capturable=is_captured)
        dense, kind = name != "pyg", self.list[0].device.type

        def loss(p, b):
            with torch.autocast(kind, dtype=torch.bfloat16, enabled=half, cache_enabled=not is_captured):
                return model.loss(p, b, dense)

        if name == "compile":
            model.lstm = torch.compiler.disable(torch.lstm)  # inductor would unroll it over time
            loss = torch.compile(loss, dynamic=False)
        self.loss = loss
        if is_captured:
            self.capture()

    def body(self, batch):
        total = self.loss(self.p, batch)
        total.backward()
        self.torch.nn.utils.clip_grad_norm_(self.list, cpu.CLIP, foreach=True)
        self.optimizer.step()
        return total

    def capture(self):
        torch = self.torch
        # arrays of the other layout, whose sizes differ from batch to batch, are not part of the step
        first = self.batches[0]
        self.static = {k: v.clone() for k, v in first.items() if all(b[k].shape == v.shape for b in self.batches)}
        before = [p.detach().clone() for p in self.list]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(4):  # what allocates, compiles or chooses an algorithm does so before the capture
                self.optimizer.zero_grad(set_to_none=True)
                self.body(self.static)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        self.optimizer.zero_grad(set_to_none=True)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.total = self.body(self.static)
        with torch.no_grad():  # as before the warm-up
            for p, old in zip(self.list, before):
                p.copy_(old)
            for state in self.optimizer.state.values():
                for v in state.values():
                    v.zero_()

    def step(self):
        batch = self.batches[self.at % len(self.batches)]
        self.at += 1
        if self.graph is None:
            self.optimizer.zero_grad(set_to_none=True)
            return self.body(batch)
        for k, v in self.static.items():
            v.copy_(batch[k], non_blocking=True)
        self.graph.replay()
        return self.total

    def run(self, n):
        """Seconds per step of n steps with one wait at the end."""
        synchronize = self.torch.cuda.synchronize if self.list[0].is_cuda else lambda: None
        synchronize()
        begin = time.perf_counter()
        for _ in range(n):
            self.step()
        synchronize()
        return (time.perf_counter() - begin) / n


def serve(pipe, name, device, half, folder):
    """The process of one variant: sends what machine it is and the losses of the first steps, then runs as many steps as
    it is asked for."""
    try:
        import torch
        import batch as layout
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        if device == "cuda" and not torch.cuda.is_available():
            pipe.send(None)
            return
        pipe.send(f"{torch.cuda.get_device_name() if device == 'cuda' else 'no GPU'}, PyTorch {torch.__version__} with CUDA "
                  f"{torch.version.cuda}")
        is_captured = name in ("graph", "compile") and device != "cpu"
        weights = load_weights(os.path.join(folder, "model.safetensors"), device)
        raws = [layout.load(os.path.join(folder, f"{i:03d}")) for i in range(CHECKED)]
        cap = layout.capacity(raws)
        batches = [{k: v.to(device) for k, v in layout.prepare(r, cap, cpu.DT_S, pad=name in ("graph", "compile")).items()}
                   for r in raws]
        checked_half = half and name == "compile"  # compiled once, so it is checked in the type that is timed
        peer = Peer(name, weights, batches, checked_half, is_captured)
        pipe.send(("bf16" if checked_half else "fp32", [float(peer.step().detach()) for _ in range(CHECKED)]))
        if checked_half != half:
            peer = Peer(name, weights, batches, half, is_captured)
        peer.run(CHECKED)
        for n in iter(pipe.recv, 0):
            pipe.send(peer.run(n))
    except EOFError:
        return  # the other side has what it wanted
    except Exception as e:  # the other side prints it, and continues with the next variant
        pipe.send(RuntimeError(f"{type(e).__name__}: {(str(e).splitlines() or [''])[0][:300]}"))


class Variant:
    """The process of a variant, as its caller sees it. Raises RuntimeError when it fails or its time box is over."""

    def __init__(self, args, name, folder):
        self.until = time.monotonic() + args.box
        context = multiprocessing.get_context("spawn")  # neither CUDA nor OpenMP survives a fork
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, name, args.device, args.half == "bf16", folder))
        self.process.start()
        other.close()

    def read(self):
        if not self.pipe.poll(max(0, self.until - time.monotonic())):
            raise RuntimeError("its time box is over (--box)")
        try:
            answer = self.pipe.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            raise RuntimeError(f"its process ended with code {self.process.exitcode}") from None
        if isinstance(answer, RuntimeError):
            raise answer
        return answer

    def run(self, n):
        try:
            self.pipe.send(n)
        except ConnectionError:
            pass  # its process has ended, with which code read() finds
        return self.read()

    def close(self):
        self.pipe.close()
        self.process.join(1)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def run_driver(driver, n):
    """Seconds per step, and of these waiting for data."""
    steps = driver.ask(f"step {n}")
    return sum(s[0] for s in steps) / n, sum(s[3] for s in steps) / n


def compare(label, ours, checked):
    dtype, theirs = checked
    apart = [abs(a[1] - b) / max(1.0, abs(a[1])) for a, b in zip(ours, theirs)]
    worst = math.nan if any(map(math.isnan, apart)) else max(apart)  # max passes over a later NaN
    print(f"{label}: losses of {CHECKED} steps agree within {worst:.1e} of dtrain's in fp32 (PyTorch in {dtype}, limit "
          f"{TOLERANCE[dtype]:.0e})", flush=True)
    if not worst <= TOLERANCE[dtype]:
        raise RuntimeError("the two sides do not do the same work, nothing is compared")


def time_variant(args, label, name, target, driver, ours, folder):
    begin = time.monotonic()
    variant = Variant(args, name, folder)
    try:
        machine = variant.read()
        if machine is None:
            print("bench gpu: skipped, PyTorch sees no GPU")
            sys.exit(77)
        print(f"{label}: {machine}, {os.cpu_count()} CPUs, {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC", flush=True)
        compare(label, ours, variant.read())
        variant.run(TIMED)
        ready = time.monotonic() - begin
        mine, his = [], []
        for i in range(args.pairs):
            for side in [0, 1] if i % 2 == 0 else [1, 0]:
                if side == 0:
                    mine.append(run_driver(driver, args.steps))
                else:
                    his.append(variant.run(args.steps))
    finally:
        variant.close()
    waits, mine = [m[1] / m[0] for m in mine], [m[0] for m in mine]
    ratio = statistics.median(b / a for a, b in zip(mine, his))
    print(f"= {label}: dtrain {1e3 * statistics.median(mine):.3f} ms ({1e3 * min(mine):.3f} to {1e3 * max(mine):.3f}), "
          f"data_wait {100 * statistics.median(waits):.1f} % of a step, PyTorch {1e3 * statistics.median(his):.3f} ms "
          f"({1e3 * min(his):.3f} to {1e3 * max(his):.3f}), {args.pairs} pairs of {args.steps} steps, {args.half}, ready "
          f"after {ready:.0f} s", flush=True)
    print(f"ratio {label} {ratio:.2f} target {target:g}", flush=True)


def bench(args, preset, batch, folder):
    """-> how many variants failed"""
    label = f"gpu.phase1.{preset}.{batch}"
    args.batch, args.dtype, common_sets = batch, "fp32", list(args.set)
    args.set = common_sets + [f"engine.device={args.device}", "engine.synchronous=true"]
    checked = cpu.Driver(args, preset, folder, CHECKED)
    ours = checked.ask(f"step {CHECKED}")
    checked.close()
    args.dtype = args.half
    args.set = common_sets + [f"engine.device={args.device}"]
    driver = cpu.Driver(args, preset, folder, 0)
    args.set = common_sets
    for _ in range(3):
        run_driver(driver, args.steps)  # capture, and every shape class met
    failed = 0
    for name, target in TARGETS[preset].items():
        if args.only and name not in args.only:
            continue
        try:
            time_variant(args, f"{label}.{name}", name, target, driver, ours, folder)
        except RuntimeError as e:
            failed += 1
            print(f"FAILED {label}.{name}: {e}", flush=True)
    driver.close()
    return failed


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--driver", required=True, help="the dtrain side, bench_phase1_step of a build")
    a.add_argument("--dtrain", help="makes the store; default: next to the driver")
    a.add_argument("--preset", action="append", choices=list(TARGETS), help="default: both")
    a.add_argument("--only", action="append", choices=list(TARGETS["guide"]), help="default: all")
    a.add_argument("--batch", type=int, action="append", help="default: 64 and 256")
    a.add_argument("--half", choices=["bf16", "fp32"], default="bf16", help="what is timed")
    a.add_argument("--threads", type=int, default=max(2, (os.cpu_count() or 2) - 1))
    a.add_argument("--workers", type=int, default=8, help="threads that read data, data.workers")
    a.add_argument("--pairs", type=int, default=9)
    a.add_argument("--steps", type=int, default=TIMED, help="of one measurement")
    a.add_argument("--box", type=float, default=150, help="seconds that a variant may take")
    a.add_argument("--device", default="cuda", choices=["cuda", "cpu"], help="cpu: does the bench run? figures mean nothing")
    a.add_argument("--store", help=f"a store; default: {COPIES} copies of the embedded recording")
    a.add_argument("--set", action="append", default=[], help="further settings of dtrain")
    args = a.parse_args()
    for name in ("torch", "numpy"):
        if importlib.util.find_spec(name) is None:
            print(f"bench gpu: skipped, no {name} here (pip install torch numpy)")
            sys.exit(77)
    args.set.insert(0, f"data.workers={args.workers}")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="bench-gpu-") as work:
        if not args.store:
            near = os.path.dirname(os.path.abspath(args.driver))
            args.store = common.copy_scenes(args.dtrain or os.path.join(near, "dtrain"),
                                            os.path.join(near, "share", "demo.store"), COPIES, work,
                                            os.path.join(work, "store"))
        for preset in args.preset or list(TARGETS):
            for batch in args.batch or [64, 256]:
                folder = os.path.join(work, f"{preset}-{batch}")
                os.mkdir(folder)
                try:
                    failed += bench(args, preset, batch, folder)
                except SystemExit as e:
                    if e.code == 77:
                        raise
                    failed += 1  # dtrain's side ended
                    print(f"FAILED gpu.phase1.{preset}.{batch}: {e}", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
