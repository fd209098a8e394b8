# SPDX-License-Identifier: Apache-2.0
"""Batches that dtrain wrote (one .npy per field), laid out for the three PyTorch variants; not part of the timing."""
import os

import numpy as np
import torch

EMPTY = -1e9


def load(folder):
    return {f[:-4]: np.load(os.path.join(folder, f)) for f in os.listdir(folder) if f.endswith(".npy")}


def frames(raw):
    """Frame of each row and its place in the frame: rows of a frame are neighbours and share the step."""
    step = raw["step_of_row"]
    new = np.r_[True, step[1:] != step[:-1]]
    frame = np.cumsum(new) - 1
    start = np.flatnonzero(new)
    return frame, np.arange(len(step)) - start[frame]


def capacity(raws):
    """(frames, vehicles, sequences) that every batch fits into, so that a compiled graph has one shape."""
    g = v = s = 0
    for raw in raws:
        frame, slot = frames(raw)
        g, v, s = max(g, frame[-1] + 1), max(v, slot.max() + 1), max(s, raw["seq_row"].shape[1])
    return int(g), int(v), int(s)


def prepare(raw, cap, dt, pad):
    """pad: sequences up to the capacity (static shapes), else exactly as many as there are"""
    G, V, S_cap = cap
    T, S = raw["seq_row"].shape
    N = raw["nodes"].shape[0]
    frame, slot = frames(raw)
    place = frame * V + slot
    row = np.repeat(np.arange(N), np.diff(raw["rowptr"]))
    col = raw["col"]

    nodes = np.zeros((G * V, 9), np.float32)
    nodes[place] = raw["nodes"]
    edges = np.zeros((G * V, V, 4), np.float32)
    mask = np.full((G * V, V), EMPTY, np.float32)
    mask[np.arange(G * V), np.arange(G * V) % V] = 0  # a place without a vehicle sees itself
    mask[place[row], slot[col]] = 0
    edges[place[row], slot[col]] = raw["edges"]
    degree = np.diff(raw["rowptr"]).astype(np.float32)
    share = np.zeros((G * V, V), np.float32)  # of an edge in the mean over its target's edges
    share[place[row], slot[col]] = 1 / degree[row]
    label, weight = np.zeros(G * V, np.float32), np.zeros(G * V, np.float32)
    label[place], weight[place] = raw["risk_label"], raw["risk_weight"]

    # vehicles that appear late start at step 0, as the state of an absent vehicle is held at zero
    present = raw["present"] > 0
    first = np.where(present.any(0), present.argmax(0), T - 1)
    assert all(present[f:, s].all() for s, f in enumerate(first)), "a vehicle vanishes and comes back"
    order = np.minimum(np.arange(T)[:, None] + first[None, :], T - 1)
    seq = np.take_along_axis(raw["seq_row"], order, 0)
    motion = np.take_along_axis(raw["motion"], order[..., None], 0)
    speed = raw["motion"][T - 1, :, 4]
    back, k = [], T - 1
    while k > 0:
        back.append(raw["motion"][T - 1 - k])
        k //= 2
    lags = np.concatenate(back, 1) / np.tile(np.float32([2, 2, 1, 1, 5, 2]), len(back))
    last = T - 1 - first
    F = raw["target"].shape[1]
    target, target_weight = raw["target"], raw["target_weight"] / np.float32(F)  # the whole horizon, weights sum to 1

    if pad:
        more = S_cap - S
        wide = lambda a, axis, value=0: np.pad(a, [(0, more if i == axis else 0) for i in range(a.ndim)],
                                               constant_values=value)
        seq, motion, speed, last = wide(seq, 1, -1), wide(motion, 1), wide(speed, 0), wide(last, 0)
        lags = wide(lags, 0)
        target, target_weight = wide(target, 0), wide(target_weight, 0)
    seq_dense = np.where(seq >= 0, place[np.maximum(seq, 0)], G * V)
    seq_row = np.where(seq >= 0, seq, N)

    t = torch.from_numpy
    return {
        "nodes": t(raw["nodes"]), "edges": t(raw["edges"]), "row": t(row).long(), "col": t(col).long(),
        "risk_label": t(raw["risk_label"]), "risk_weight": t(raw["risk_weight"]),
        "nodes_dense": t(nodes).view(G, V, 9), "edges_dense": t(edges).view(G, V, V, 4),
        "share": t(share).view(G, V, V), "degree": t(degree).view(-1, 1), "mask": t(mask).view(G, 1, V, V), "risk_label_dense": t(label).view(G, V),
        "risk_weight_dense": t(weight).view(G, V),
        "seq_row": t(seq_row).long(), "seq_dense": t(seq_dense).long(), "motion": t(motion), "speed": t(speed), "lags": t(lags),
        "last": t(last).long(), "target": t(target), "weight": t(target_weight),
        "n_seq": torch.tensor(float(S)), "n_rows": torch.tensor(float(N)),
        "zero_bias": torch.zeros(8192), "dt": torch.tensor(dt),
    }
