# SPDX-License-Identifier: Apache-2.0
"""bench/run loader: how fast dtrain's feed and PyTorch's DataLoader make batches of phase 1, with nothing trained.

Both read the same store, its arrays mapped into memory, with as many workers each (default: 2), and make the same
windows: graphs of the history, motions, futures, labels, turned, mirrored and moved as training does. The Dataset is
written as one would in numpy, without a loop over vehicles, and its collate function packs a batch one sample behind
another. Samples that are not augmented must have the same sizes and sums on both sides before anything is timed. Then
they take turns, an epoch each. A rate is samples over seconds of the clock, and, for a machine that others use, over
seconds of the processor, workers included; ratios are medians over the turns.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

RATE_HZ, HISTORY_S, HORIZON_S = 5, 3, 5
T, F = HISTORY_S * RATE_HZ, HORIZON_S * RATE_HZ
MIN_PAST_S = MIN_FUTURE_S = 1
SHIFT_M = 50
NODE_SHIFT = np.float32([0, 0, 0, 0, 0, 0, -5, -200, 0])
NODE_SCALE = np.float32([1 / 30, 1 / 30, 1 / 10, 1 / 2, 1, 1, 1 / 4, -1 / 100, 1])
EDGE_SCALE = np.float32([1 / 20, 1 / 4, 1 / 5, 1])
TARGET = 5       # times PyTorch's rate
TOLERANCE = 1e-4  # of a field's sum, of its size
NOT_COMPARED = ("row_key", "seq_key")  # numbers for dropout, which PyTorch draws otherwise


class Windows(Dataset):
    """What data_trajectory makes of a store; anchors at every frame that has enough past and future."""

    def __init__(self, store, held):
        with open(os.path.join(store, "store.json"), encoding="utf-8") as f:
            about = json.load(f)
        self.fps, self.held = about["frame_rate_hz"], about["sites"].index(held)
        for name in ("scene_frame", "scene_site", "frame_row", "node", "pose", "motion", "row_track", "track_row",
                     "edge_ptr", "edge_src", "edge", "risk"):
            setattr(self, name, np.load(os.path.join(store, name + ".npy"), mmap_mode="r"))
        self.stride = round(self.fps / RATE_HZ)
        self.n_frames = len(self.frame_row) - 1
        # where a track is in a frame: one sorted list of (track, frame), so that a search answers for all at once
        frame_of_row = np.repeat(np.arange(self.n_frames), np.diff(self.frame_row))
        self.place = self.row_track[self.track_row].astype(np.int64) * self.n_frames + frame_of_row[self.track_row]
        self.sample = self.list_anchors()
        self.augments = True

    def list_anchors(self):
        past = min((T - 1) * self.stride, round(MIN_PAST_S * self.fps))
        future = min(F * self.stride, round(MIN_FUTURE_S * self.fps))
        out = []
        for scene in np.flatnonzero(self.scene_site != self.held):
            anchor = np.arange(self.scene_frame[scene] + past, self.scene_frame[scene + 1] - future)
            anchor = anchor[self.frame_row[anchor + 1] > self.frame_row[anchor]]
            out.append(np.stack([np.full_like(anchor, scene), anchor], 1))
        return np.concatenate(out)

    def __len__(self):
        return len(self.sample)

    def find(self, track, frame):
        """Row of each track in each frame [frames, tracks], -1 where it is not there."""
        want = track[None, :] * self.n_frames + frame[:, None]
        at = np.minimum(np.searchsorted(self.place, want), len(self.place) - 1)
        return np.where(self.place[at] == want, self.track_row[at], -1)

    def __getitem__(self, i):
        scene, anchor = self.sample[i]
        begin, end = self.scene_frame[scene], self.scene_frame[scene + 1]
        angle, flip, shift = 0.0, 1.0, np.zeros(2)
        if self.augments:
            draw = torch.rand(4).numpy()
            angle, flip = 2 * np.pi * draw[0], -1.0 if draw[1] < 0.5 else 1.0
            shift = SHIFT_M * (2 * draw[2:] - 1)
        return {**self.graphs(anchor, begin, angle, flip, shift), **self.vehicles(scene, anchor, begin, end, flip)}

    def graphs(self, anchor, begin, angle, flip, shift):
        step = np.arange(T)
        frame = anchor - (T - 1 - step) * self.stride
        step, frame = step[frame >= begin], frame[frame >= begin]
        first, last = self.frame_row[frame], self.frame_row[frame + 1]
        rows = np.concatenate([np.arange(a, b) for a, b in zip(first, last)])
        count = last - first
        base = np.cumsum(count) - count
        degree = self.edge_ptr[rows + 1] - self.edge_ptr[rows]
        cut = [slice(self.edge_ptr[a], self.edge_ptr[b]) for a, b in zip(first, last)]
        col = np.concatenate([self.edge_src[c] + b for c, b in zip(cut, base)])
        edges = np.concatenate([self.edge[c] for c in cut]) * EDGE_SCALE
        edges[:, 1] *= flip
        pose = self.pose[rows]
        here = self.pose[self.frame_row[anchor]:self.frame_row[anchor + 1], :2]
        x, y = (pose[:, :2] - here.mean(0) - shift).T
        y = flip * y
        sin_h, cos_h = flip * np.sin(pose[:, 2]), np.cos(pose[:, 2])
        cos_a, sin_a = np.cos(angle), np.sin(angle)
        nodes = self.node[rows]
        nodes[:, 0] = x * cos_a - y * sin_a
        nodes[:, 1] = x * sin_a + y * cos_a
        nodes[:, 4] = sin_h * cos_a + cos_h * sin_a
        nodes[:, 5] = cos_h * cos_a - sin_h * sin_a
        risk = self.risk[rows]
        return {"nodes": (nodes + NODE_SHIFT) * NODE_SCALE, "degree": degree, "col": col.astype(np.int32),
                "edges": edges, "risk_label": np.isin(risk, (1, 2)).astype(np.float32),
                "risk_weight": (risk != 3).astype(np.float32), "risk_state": risk,
                "step_of_row": np.repeat(step, count).astype(np.int32)}

    def vehicles(self, scene, anchor, begin, end, flip):
        rows = np.arange(self.frame_row[anchor], self.frame_row[anchor + 1])
        own = self.pose[rows]
        track = self.row_track[rows].astype(np.int64)
        cos_h, sin_h = np.cos(own[:, 2]), np.sin(own[:, 2])
        step = np.arange(T - 1, -1, -1)
        past = anchor - step * self.stride
        ahead = anchor + np.arange(1, F + 1) * self.stride
        row = self.find(track, np.concatenate([np.maximum(past, begin), np.minimum(ahead, end - 1)]))
        row[:T][past < begin] = -1
        row[T:][ahead >= end] = -1
        seen = row >= 0
        there = self.pose[np.maximum(row, 0)]
        dx, dy = there[..., 0] - own[:, 0], there[..., 1] - own[:, 1]
        xy = np.stack([dx * cos_h + dy * sin_h, flip * (dy * cos_h - dx * sin_h)], -1)
        turned = there[:T, :, 2] - own[:, 2]
        first = np.maximum(row[:T], 0)
        motion = np.empty((T, len(rows), 6), np.float32)
        motion[..., :2] = xy[:T]
        motion[..., 0] += self.motion[rows, 0] * (step[:, None] * self.stride / self.fps)
        motion[..., 2], motion[..., 3] = np.cos(turned), flip * np.sin(turned)
        motion[..., 4], motion[..., 5] = self.motion[first, 0], self.node[first, 3]
        motion *= seen[:T, :, None]
        # rows of the slice: those of frames before, then the place in the frame
        known = np.where(past >= begin, past, anchor)
        size = np.where(past >= begin, self.frame_row[known + 1] - self.frame_row[known], 0)
        base = np.cumsum(size) - size - self.frame_row[known]
        target = (xy[T:] * seen[T:, :, None]).transpose(1, 0, 2).astype(np.float32)
        pose = np.column_stack([own[:, :2] - own[0, :2], own[:, 2], self.motion[rows, 2]]).astype(np.float32)
        return {"seq_row": np.where(seen[:T], row[:T] + base[:, None], -1).astype(np.int32),
                "present": seen[:T].astype(np.float32), "motion": motion, "target": target,
                "target_weight": seen[T:].T.astype(np.float32), "complete": seen.all(0).astype(np.uint8),
                "pose": pose, "site": np.full(len(rows), self.scene_site[scene], np.int32)}


def collate(samples):
    """A packed batch: rows, edges and sequences of the samples one behind another."""
    n = np.array([len(s["nodes"]) for s in samples])
    base = np.cumsum(n) - n
    out = {k: np.concatenate([s[k] for s in samples], axis=1 if k in ("present", "motion") else 0)
           for k in samples[0] if k not in ("degree", "col", "seq_row")}
    out["rowptr"] = np.concatenate([[0], np.cumsum(np.concatenate([s["degree"] for s in samples]))]).astype(np.int32)
    out["col"] = np.concatenate([s["col"] + np.int32(b) for s, b in zip(samples, base)])
    out["seq_row"] = np.concatenate([np.where(s["seq_row"] >= 0, s["seq_row"] + np.int32(b), -1)
                                     for s, b in zip(samples, base)], axis=1)
    out["sample_of_seq"] = np.repeat(np.arange(len(samples)), [len(s["pose"]) for s in samples]).astype(np.int32)
    return {k: torch.from_numpy(np.ascontiguousarray(v)) for k, v in out.items()}


class Driver:
    """dtrain's side."""

    def __init__(self, args):
        sets = [f"data.store={args.store}", f"data.batch={args.batch}", "data_trajectory.train_stride_s=0",
                "data_trajectory.eval_site=" + args.held]
        words = [args.driver, str(args.workers), "--plugin", "phase1_world_model", "-q"]
        self.process = subprocess.Popen(words + [w for s in sets for w in ("--set", s)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.samples = int(self.read("open the store"))

    def read(self, what):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"loader: the dtrain side ended while asked to {what}")
        return line

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return json.loads(self.read(command))


def compare(driver, data, n):
    """Ends the bench when the two sides do not make the same samples."""
    data.augments = False
    if len(data) != driver.samples:
        sys.exit(f"loader: {driver.samples} samples there, {len(data)} here")
    worst = 0.0
    for i, theirs in enumerate(driver.ask(f"look {n}")):
        mine = collate([data[i]])
        for name, (size, total) in theirs.items():
            if name in NOT_COMPARED:
                continue
            field = mine[name].double()
            error = abs(float(field.sum()) - total) / max(1.0, float(field.abs().sum()))
            worst = max(worst, error)
            if field.numel() != size or error > TOLERANCE:
                sys.exit(f"loader: sample {i}, {name}: {size} numbers that add up to {total} there, "
                         f"{field.numel()} and {float(field.sum())} here")
    data.augments = True
    print(f"{n} of {len(data)} samples have the same sizes and sums on both sides, within {worst:.1e}", flush=True)


def processor_s(pids):
    """Seconds of the processor that these have used, and this process."""
    ticks = 0
    for pid in [os.getpid(), *pids]:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def children():
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="utf-8") as f:
        return [int(p) for p in f.read().split()]


def epoch(loader, workers):
    """An epoch: seconds, processor seconds, samples, rows; workers are there before and after it."""
    begin, begin_cpu, samples, rows = time.perf_counter(), processor_s(workers), 0, 0
    for batch in loader:
        rows += len(batch["nodes"])
        samples += loader.batch_size
    return time.perf_counter() - begin, processor_s(workers) - begin_cpu, samples, rows


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--driver", required=True, help="the dtrain side, bench_loader of a build")
    p.add_argument("--dtrain", required=True)
    p.add_argument("--store", help="default: the recording that comes with dtrain; plain, f32, not smoothed")
    p.add_argument("--source", help="folder that the default store is made of")
    p.add_argument("--held", default="merge", help="a site of the store that is left out, as training does")
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--turns", type=int, default=7)
    args = p.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="loader-") as folder:
        if args.store is None:
            args.store = os.path.join(folder, "store")
            subprocess.run([args.dtrain, "data", "import", args.source, "--out", args.store, "-q",
                            "--set", "import.smooth_s=0"], check=True)
        bench(args)


def bench(args):
    data = Windows(args.store, args.held)
    driver = Driver(args)
    compare(driver, data, 200)
    before = children()
    loader = DataLoader(data, batch_size=args.batch, shuffle=True, drop_last=True, num_workers=args.workers,
                        collate_fn=collate, persistent_workers=True, prefetch_factor=2)
    epoch(loader, [])  # starts the workers, and the store is in memory from here on
    workers = [c for c in children() if c not in before]
    ours, theirs = [], []
    for turn in range(args.turns):
        for side in (0, 1) if turn % 2 == 0 else (1, 0):
            if side == 0:
                ours.append(driver.ask("epochs 10"))
            else:
                theirs.append(epoch(loader, workers))
    rate = lambda runs, i: [r[2] / r[i] for r in runs]
    for name, runs in (("dtrain", ours), ("PyTorch", theirs)):
        clock, cpu = rate(runs, 0), rate(runs, 1)
        print(f"{name}: {statistics.median(clock):.0f} samples/s ({min(clock):.0f} to {max(clock):.0f}), "
              f"{statistics.median(cpu):.0f} per second of the processor, {runs[0][3] / runs[0][2]:.0f} rows each",
              flush=True)
    for i, name in ((0, "loader.clock"), (1, "loader.processor")):
        ratio = statistics.median(a / b for a, b in zip(rate(ours, i), rate(theirs, i)))
        print(f"ratio {name} {ratio:.2f} target {TARGET}", flush=True)
    del loader  # its workers hold the driver's pipe, too
    driver.process.stdin.close()
    driver.process.wait()


if __name__ == "__main__":
    main()
