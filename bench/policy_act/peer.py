#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time of one action of an exported policy: libdtrain-policy beside onnxruntime, one thread each, on the same steps.

bench/run policy_act [--pairs N]. Both sides are called from this program, by ctypes and by onnxruntime's own binding;
the observations are those of an episode, put together for onnxruntime before the clock starts, by libdtrain-policy
while it runs. Every action and output of the two is compared first. A pair is one pass over the steps by each side, in
turns; the figure is the median of a pass, by its steps.
"""
import argparse
import ctypes
import json
import os
import shutil
import statistics
import sys
import time

import numpy as np
import onnxruntime

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "peers"))
import export_onnx as peer  # noqa: E402

STEPS = 100
WORK = {"signals": "influence_signals", "vehicles": "influence_vehicles", "risk_gnn": "risk_gat"}
POINTER = ctypes.c_void_p


class Port(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dims", ctypes.c_char_p), ("dtype", ctypes.c_uint32),
                ("flags", ctypes.c_uint32)]


class Dim(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("size", ctypes.c_int64)]


class Info(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("reserved", ctypes.c_uint32), ("phase", ctypes.c_char_p),
                ("environment", ctypes.c_char_p), ("obs", ctypes.POINTER(Port)), ("symbols", ctypes.POINTER(Dim)),
                ("choices", POINTER), ("low", POINTER), ("high", POINTER), ("settings", POINTER)] + [
                    (n, ctypes.c_uint32) for n in ("n_obs", "n_symbols", "n_heads", "n_continuous", "n_settings",
                                                   "n_choices", "places", "window")]


class Io(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("n_places", ctypes.c_uint32)] + [
        (n, POINTER) for n in ("obs", "size", "alive", "truncated", "mask", "act_i", "act_f", "report")]


class Policy:
    """libdtrain-policy by ctypes: one Io per step, made beforehand from the trace."""

    def __init__(self, build, path, trace):
        self.lib = ctypes.CDLL(os.path.join(build, ".libs", "libdtrain-policy.so"))
        self.p, why = POINTER(), ctypes.create_string_buffer(512)
        self.lib.dt_policy_describe.restype = ctypes.POINTER(Info)
        if self.lib.dt_policy_load(path.encode(), ctypes.byref(self.p), why, 512) != 0:
            sys.exit(why.value.decode())
        self.info = self.lib.dt_policy_describe(self.p).contents
        self.kept, self.io = [], []
        for t in trace:
            self.io.append(self.step(t))

    def keep(self, values, dtype):
        a = np.array(values, dtype)
        self.kept.append(a)
        return a.ctypes.data

    def step(self, t):
        x, n = self.info, len(t["alive"])
        ports = [x.obs[i] for i in range(x.n_obs)]
        obs, rows = [], {}
        for p in ports:
            flat = t["obs"][p.name.decode()]
            dims = p.dims.decode().split()
            columns = int(np.prod([int(d) for d in dims[1:]])) if len(dims) > 1 else 1
            if "+" not in dims[0]:
                rows[dims[0]] = len(flat) // columns
            obs.append(self.keep(flat, np.float32 if p.dtype == 1 else np.int32))
        out_i, out_f = np.zeros((n, max(1, x.n_heads)), np.int32), np.zeros((n, max(1, x.n_continuous)), np.float32)
        self.kept += [out_i, out_f]
        size = [rows[x.symbols[k].name.decode()] for k in range(x.n_symbols)]
        io = Io(ctypes.sizeof(Io), n, self.keep(obs, np.uintp), self.keep(size, np.int64),
                self.keep(t["alive"], np.uint8), self.keep(t["truncated"], np.uint8),
                self.keep(t["mask"], np.uint8), out_i.ctypes.data, out_f.ctypes.data, None)
        self.kept.append(io)
        return ctypes.byref(io), out_i, out_f

    def run(self):
        act, p = self.lib.dt_policy_act, self.p
        for io, _, _ in self.io:
            if act(p, io, None, 0) != 0:
                sys.exit("dt_policy_act failed")


class Onnx:
    def __init__(self, path, feeds):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        names = [i.name for i in self.session.get_inputs()]
        self.feeds = [{n: f[n] for n in names} for f in feeds]

    def run(self):
        run = self.session.run
        for f in self.feeds:
            run(None, f)


def measure(name, build, folder, pairs):
    base = os.path.join(folder, name)
    peer.make_policy(build, base, peer.POLICIES[WORK[name]])
    peer.compare_policy(name, base)  # the same work: actions and outputs
    with open(base + ".jsonl") as f:
        trace = [json.loads(line) for line in f]
    trace = [t for t in trace if any(t["alive"])][:STEPS]
    world = peer.World(peer.header_of(base + ".safetensors"))
    ours, theirs = Policy(build, base + ".safetensors", trace), Onnx(base + ".onnx", [world.step(t)[0] for t in trace])
    ours.run()
    theirs.run()
    for (_, i, f), t in zip(ours.io, trace):  # and the same as when the trace was made
        assert list(i[:, :max(0, ours.info.n_heads)].reshape(-1)) == t["act_i"]
    a, b = [], []
    for _ in range(pairs):
        for side, times in ((ours, a), (theirs, b)):
            begin = time.perf_counter()
            side.run()
            times.append((time.perf_counter() - begin) / len(trace) * 1e6)
    x, y = statistics.median(a), statistics.median(b)
    rows = sum(map(sum, (t["alive"] for t in trace))) / len(trace)
    least = f"{min(a):.1f} and {min(b):.1f} us"
    print(f"# {name}: {rows:.1f} agents a step, {len(trace)} steps, {pairs} pairs; least {least}")
    print(f"value policy_act.{name}.dtrain {x:.1f} us")
    print(f"value policy_act.{name}.onnxruntime {y:.1f} us")
    print(f"ratio policy_act.{name} {statistics.median(q / p for p, q in zip(a, b)):.2f} target 1", flush=True)


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--build", required=True, help="build folder")
    args.add_argument("--pairs", type=int, default=31, help="at least 9")
    a = args.parse_args()
    build = os.path.abspath(a.build)
    folder = os.path.join(build, "bench-policy-act")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for name in WORK:
        measure(name, build, folder, max(9, a.pairs))
    shutil.rmtree(folder, ignore_errors=True)


main()
