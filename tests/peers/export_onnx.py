#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dtrain export --format onnx, by onnx and onnxruntime: export_onnx.py BUILD

Small policies are trained, exported in both formats and driven for an episode by the example program, which leaves a
trace: what the environment showed, and what libdtrain-policy computed and did. onnx.checker takes the ONNX model apart,
and onnxruntime computes the same steps from the same observations. Every output has to be equal within 1e-5 (of its
size, where that is above 1), and the actions have to be the same.
"""
import json
import os
import shutil
import struct
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime

TOLERANCE = 1e-5
MOST_STEPS = 120  # of an episode, spread over it; a memory is kept up in all
DTYPE = {"f32": np.float32, "i32": np.int32, "i64": np.int64, "u8": np.uint8}

TRAFFIC = ["env.id=env_traffic", "models.shield=shield_barrier", "env_traffic.episode_s=120"]
SIGNALS = TRAFFIC + ["env_traffic.scenario=grid", "env_traffic.control=signals"]
VEHICLES = TRAFFIC + ["env_traffic.scenario=merge", "env_traffic.agents=8", "env_traffic.penetration=0.4",
                      "env_traffic.lane_actions=true"]
SMALL = ["risk_gnn.hidden=16", "risk_gnn.heads=2", "world_lstm.hidden=16", "world_gru.hidden=16"]
INFLUENCE = ["models.controller=controller_influence"]
POLICIES = {
    "mlp": ["env.id=cartpole"],
    "pendulum": ["env.id=pendulum"],
    "lstm": ["env.id=tmaze", "models.controller=controller_lstm", "phase2_ppo.window=4"],
    "lstm_vehicles": VEHICLES + ["models.controller=controller_lstm", "phase2_ppo.window=3"],
    "influence_signals": SIGNALS + INFLUENCE,
    "influence_vehicles": VEHICLES + INFLUENCE,
    "heads": TRAFFIC + ["models.shield=", "env_traffic.scenario=intersection", "env_traffic.control=both",
                        "env_traffic.lane_actions=true", "env_traffic.agents=4", "env_traffic.penetration=0.3"],
    "risk_gat": VEHICLES + INFLUENCE + SMALL + ["models.perception=risk_gnn"],
    "risk_transformer": VEHICLES + INFLUENCE + SMALL + ["models.perception=risk_gnn", "risk_gnn.layer=transformer"],
}
POLICIES["foresight"] = POLICIES["risk_gat"] + ["models.world=world_lstm", "phase2_ppo.foresight=true"]
PHASE1 = {"lstm": ["models.world=world_lstm"], "gru": ["models.world=world_gru"],
          "futures": ["models.world=world_gru", "world_gru.futures=3", "world_gru.kinematic=true"]}


def run(*command):
    p = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if p.returncode != 0:
        sys.exit(f"{' '.join(str(c) for c in command)}\nleft with {p.returncode}: {p.stderr[-2000:]}")
    return p.stdout


def sets(values):
    return [word for value in values for word in ("--set", value)]


COMMON = ["-q", "--threads", "1"] + sets(["training.eval_interval=0", "checkpoint.every_seconds=0",
                                          "report.enabled=false", "metrics.tensorboard=false"])


def make_policy(build, base, values):
    """Trains for three short rounds; leaves base.safetensors, base.onnx and the trace of an episode, base.jsonl."""
    dtrain, drive = os.path.join(build, "dtrain"), os.path.join(build, "examples", "drive_env_traffic")
    run(dtrain, "run", "--plugin", "phase2_ppo", "--run-dir", base, *COMMON,
        *sets(["env.instances=2", "phase2_ppo.fragment=32", "phase2_ppo.train_batch=64", "data.batch=32",
               "phase2_ppo.iterations=3", "training.learning_rate=3e-3", "phase2_ppo.normalise_obs=true"] + values))
    for form in ("safetensors", "onnx"):
        run(dtrain, "export", "-q", "--checkpoint", base, "--format", form, "--out", f"{base}.{form}")
    env = next(v for v in values if v.startswith("env.id="))[7:]
    env = env if env.startswith("env_") else "env_" + env
    run(drive, os.path.join(build, "plugins", ".libs", env + ".so"), base + ".safetensors", 7, base + ".jsonl")


def header_of(path):
    """What a safetensors file says of itself, and of the export in it."""
    with open(path, "rb") as f:
        (n,) = struct.unpack("<Q", f.read(8))
        return json.loads(json.loads(f.read(n))["__metadata__"]["dtrain.export"])


class World:
    """Rows of one world as the graph wants them, made of what the environment showed (dtrain/policy.h)."""

    def __init__(self, export):
        self.inputs = export["inputs"]
        self.window = export["window"]
        self.past, self.age, self.acted = [], None, None

    def given(self, x, flat):
        dims = x["dims"].split()
        if x["kind"] == "steps":  # the environment's rows come before their steps
            dims[0], dims[1] = dims[1], dims[0]
        shape = [int(d) if d.isdigit() else -1 for d in dims]
        if 0 in shape:
            return None
        a = np.array(flat, DTYPE[x["dtype"]])
        return a.reshape(shape) if a.size else np.zeros([0 if d < 0 else d for d in shape], a.dtype)

    def step(self, t):
        alive = np.array(t["alive"], bool)
        seen = alive | np.array(t["truncated"], bool)
        row = np.where(seen, np.cumsum(seen) - 1, -1).astype(np.int32)
        obs = {x["name"]: self.given(x, t["obs"][x["name"]]) for x in self.inputs if x["kind"] in ("given", "steps")}
        if self.age is None:
            self.age = np.zeros(len(alive), int)
        else:
            self.age = np.where(self.acted, self.age + 1, 0)
        self.acted = alive
        self.past = (self.past + [obs])[-self.window:]
        back = np.arange(self.window - 1, -1, -1)
        there = back[:, None] <= self.age[None, :]
        feed = {}
        for x in self.inputs:
            name, of_places = x["name"], "A" in x["dims"].split()
            if x["kind"] == "present":
                feed[name] = there[:, seen].astype(np.float32)
            elif x["kind"] == "history":
                shown = [self.past[-1 - b][x["of"]] if b < len(self.past) else 0 * obs[x["of"]] for b in back]
                feed[name] = np.where(there[:, :, None], np.stack(shown), 0).astype(np.float32)[:, seen]
            elif x["kind"] == "mask":
                feed[name] = np.array(t["mask"], np.float32).reshape(len(alive), -1)[seen]
            else:
                a = obs[name][seen] if of_places else obs[name]
                if x.get("counts") == "A":
                    a = np.where(a >= 0, row[a], -1).astype(np.int32)
                feed[name] = np.moveaxis(a, 1, 0) if x["kind"] == "steps" else a
        mask = np.array(t["mask"], np.float32)
        feed.setdefault("mask", mask.reshape(len(alive), -1)[seen] if mask.size else mask)
        return feed, alive[seen]


def far(a, b, is_allow=False):
    """Largest difference, as a share of b where that is above 1. Of allow it counts whether it is above 0: the shield
    says so by a slope of a million, of numbers of order 1."""
    if is_allow:
        return float(np.max(((a > 0) != (b > 0)) * np.maximum(a, b) / 1e6, initial=0))
    return float(np.max(np.abs(a - b) / np.maximum(1, np.abs(b)), initial=0))


def compare_policy(name, base):
    model = onnx.load(base + ".onnx")
    onnx.checker.check_model(model, full_check=True)
    said = {p.key for p in model.metadata_props}
    assert {"phase", "environment", "models", "settings"} <= said, said
    session = onnxruntime.InferenceSession(base + ".onnx", providers=["CPUExecutionProvider"])
    wanted = [i.name for i in session.get_inputs()]
    names = [o.name for o in session.get_outputs()]
    world = World(header_of(base + ".safetensors"))
    with open(base + ".jsonl") as f:
        trace = [json.loads(line) for line in f]
    every = max(1, len(trace) // MOST_STEPS)
    worst, ties, acts, done = {}, 0, 0, 0
    for k, t in enumerate(trace):
        feed, alive = world.step(t)
        if k % every or not alive.any():
            continue
        out = dict(zip(names, session.run(None, {n: feed[n] for n in wanted})))
        for o, ours in t["output"].items():
            x = far(out[o], np.array(ours, np.float32).reshape(out[o].shape), o == "allow")
            worst[o] = max(worst.get(o, 0), x)
        seen = np.array(t["alive"], bool) | np.array(t["truncated"], bool)
        if "action_f" in out:
            ours = np.array(t["act_f"], np.float32).reshape(len(seen), -1)[seen][alive]
            worst["action_f"] = max(worst.get("action_f", 0), far(out["action_f"][alive], ours))
        if "action_i" in out:
            ours = np.array(t["act_i"], np.int32).reshape(len(seen), -1)[seen][alive]
            other = out["action_i"][alive] != ours
            acts += other.size
            if other.any():  # only where two choices are as likely
                logits = out["logits"][alive]
                rows = np.nonzero(other.any(axis=1))[0]
                gap = [np.diff(np.sort(logits[r])[-2:])[0] for r in rows]
                assert max(gap) < TOLERANCE * max(1, np.abs(logits).max()), f"{name}: another action at step {k}"
                ties += len(rows)
        done += 1
    bad = {o: x for o, x in worst.items() if not x <= TOLERANCE}
    text = ", ".join(f"{o} {x:.1e}" for o, x in worst.items())
    print(f"{name}: {len(model.graph.node)} nodes, {done} steps, {acts} choices ({ties} ties); {text}")
    assert done > 5 and not bad, f"{name}: beyond {TOLERANCE}: {bad}"


def compare_phase1(name, folder, outputs):
    """The models of phase 1 are sound ONNX, and run: a scene of three vehicles, of which one has just come."""
    path = os.path.join(folder, name + ".onnx")
    onnx.checker.check_model(onnx.load(path), full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(7)
    sizes = {"N": 6, "E": 12, "S": 3, "B": 1}
    feed = {}
    for i in session.get_inputs():
        shape = [sizes[d.split("_")[0]] + ("_plus_1" in d) if isinstance(d, str) else d for d in i.shape]
        feed[i.name] = rng.standard_normal(shape).astype(np.float32)
        if i.name == "rowptr":
            feed[i.name] = np.arange(0, 13, 2, dtype=np.int32)
        elif i.name == "col":
            feed[i.name] = np.array([[r, (r + 1) % 6] for r in range(6)], np.int32).reshape(-1)
        elif i.name == "seq_row":
            feed[i.name] = np.where(np.arange(shape[0])[:, None] < shape[0] - 2, -1, rng.integers(0, 6, shape)).astype(
                np.int32)
        elif "int" in i.type:
            feed[i.name] = np.zeros(shape, np.int32 if "32" in i.type else np.int64)
        elif i.name == "present":
            feed[i.name] = (np.arange(shape[0])[:, None] >= shape[0] - 2).repeat(shape[1], 1).astype(np.float32)
    out = dict(zip([o.name for o in session.get_outputs()], session.run(None, feed)))
    assert set(outputs) == set(out) and all(np.isfinite(x).all() for x in out.values()), name
    if "futures" in out:  # the mean of the mixture, and its deviation
        p, apart = out["probability"][:, :, None, None], out["futures"] - out["future"][:, None]
        square = (p * (np.exp(2 * out["spreads"]) + apart * apart)).sum(1)
        assert far(out["future"], (p * out["futures"]).sum(1)) < TOLERANCE, name
        assert far(out["spread"], np.log(square) / 2) < TOLERANCE, name
    print(f"{name}: phase 1 runs, {', '.join(f'{o} {list(x.shape)}' for o, x in out.items())}")


def compare_ops(build, path):
    """Ops that none of the shipped models records: the model of tests/export/test_policy.c, by its formula."""
    subprocess.run([os.path.join(build, "tests/export/test_policy")], check=True, cwd=os.path.dirname(path),
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "DT_KEEP_ONNX": path,
                                                                    "DT_KEEP_ONNX_MAPS": path + ".maps"})
    compare_maps(path + ".maps")
    onnx.checker.check_model(onnx.load(path), full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(3).standard_normal((7, 2)).astype(np.float32)
    feed = {i.name: x if i.name == "obs" else np.ones((7, 3), np.float32) for i in session.get_inputs()}
    out = dict(zip([o.name for o in session.get_outputs()], session.run(None, feed)))
    y = x / np.sqrt((x * x).sum(1, keepdims=True) + 1)
    worst = far(out["logits"][:, :2], (x[:, :, None] * y[:, None, :]).mean(1) + 0.5 * x)
    print(f"ops along an axis: {worst:.1e}")
    assert worst < TOLERANCE, worst


def compare_maps(path):
    """Likewise: a convolution of maps, group norm, batch norm by running statistics, choices."""
    onnx.checker.check_model(onnx.load(path), full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(3).standard_normal((7, 2)).astype(np.float32)
    feed = {i.name: x if i.name == "obs" else np.ones((7, 3), np.float32) for i in session.get_inputs()}
    out = dict(zip([o.name for o in session.get_outputs()], session.run(None, feed)))
    number = np.array([0.5, -1, 2, 0.25, -0.75, 1.5, -0.5, 1, 3, -2, 0.125, -0.25])
    flat = np.tile(x.astype(np.float64), 4) * number[:8]
    padded = np.pad(flat.reshape(7, 2, 2, 2), ((0, 0), (0, 0), (1, 1), (0, 0)))
    kernel = number.reshape(3, 2, 2)
    seen = np.stack([np.einsum("ahjc,mjc->ahm", padded[:, :, q:q + 2], kernel) for q in range(3)], 2)
    mean, variance = (f(seen, axis=(1, 2, 3), keepdims=True) for f in (np.mean, np.var))
    normal = (seen - mean) / np.sqrt(variance + 1e-5) * number[:3] + number[:3]
    index = np.argsort(-flat, 1, kind="stable")[:, :2]
    wave = np.where(flat < number[:8], np.sin(flat), np.cos(np.abs(flat))) + np.eye(8)[index[:, 1]]
    chosen = np.concatenate([np.take_along_axis(flat, index, 1), index, wave, flat.min(1, keepdims=True)], 1)
    columns = number[:8] * (flat - number[:8]) / np.sqrt(number[:8] ** 2 + 0.5) + number[:8]
    want = {"columns": np.where(x[:, :1] > 0, columns, 0), "seen": seen.reshape(7, -1), "normal": normal.transpose(0, 3, 1, 2).reshape(7, -1), "chosen": chosen}
    worst = {name: far(out[name], value) for name, value in want.items()}
    print("ops of maps and choices:", ", ".join(f"{name} {value:.1e}" for name, value in worst.items()))
    assert max(worst.values()) < TOLERANCE, worst


def main():
    build = os.path.abspath(sys.argv[1])
    folder = os.path.join(build, "peers-onnx")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    compare_ops(build, os.path.join(folder, "ops.onnx"))
    for name, values in POLICIES.items():
        base = os.path.join(folder, name)
        make_policy(build, base, values)
        compare_policy(name, base)
        os.remove(base + ".jsonl")
    dtrain = os.path.join(build, "dtrain")
    for name, values in PHASE1.items():
        base = os.path.join(folder, "phase1_" + name)
        run(dtrain, "run", "--plugin", "phase1_world_model", "--run-dir", base, "--max-steps", "2", *COMMON,
            *sets(["data.batch=16"] + SMALL + values))
        run(dtrain, "export", "-q", "--checkpoint", base, "--format", "onnx", "--out", base + ".onnx")
        several = ["futures", "spreads", "probability"] if name == "futures" else []
        compare_phase1("phase1_" + name, folder, ["risk", "future", "spread"] + several)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
