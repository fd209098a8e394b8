# SPDX-License-Identifier: Apache-2.0
"""Spaces of Gymnasium for what an environment of dtrain declares, and its arrays in memory."""

import numpy as np
from gymnasium import spaces

from ._native import DTYPES, ConfigError


def _bounds(port, shape):
    """Bounds of a Box: those of the described columns, -1 and up of indices, else all of the type."""
    dtype = np.dtype(DTYPES[port["dtype"]])
    if dtype.kind == "f":
        low, high = np.full(shape, -np.inf, dtype), np.full(shape, np.inf, dtype)
        for c in port["columns"] if shape else []:
            at = slice(c["first"], c["first"] + (c["n"] - 1) * c["stride"] + 1, c["stride"])
            if c["low"] is not None:
                low[..., at] = np.nextafter(dtype.type(c["low"]), dtype.type(-np.inf))
            if c["high"] is not None:
                high[..., at] = np.nextafter(dtype.type(c["high"]), dtype.type(np.inf))
        return low, high, dtype
    low = 0 if dtype.kind == "u" or port["plus"] else -1 if port["index_of"] >= 0 else np.iinfo(dtype).min
    return np.full(shape, low, dtype), np.full(shape, np.iinfo(dtype).max, dtype), dtype


def select(about, ports, per_agent):
    """The ports to observe: names, or NULL for all. per_agent: only those with a row per place."""
    known = {p["name"]: p for p in about["observations"]}
    unknown = [p for p in ports or [] if p not in known]
    if unknown or (ports is not None and not len(ports)):
        raise ConfigError(f"ports={list(ports)}: {about['id']} has {', '.join(known)}")
    chosen = [known[p] for p in ports] if ports is not None else list(known.values())
    shared = [p["name"] for p in chosen if not is_per_agent(p)]
    if per_agent and shared:
        rows = [p["name"] for p in known.values() if is_per_agent(p)]
        raise ConfigError(f"{', '.join(shared)} of {about['id']} belong to the world, not to an agent; "
                          f"choose of ports={rows}")
    return chosen


def is_per_agent(port):
    return port["symbol"] == 0 and not port["plus"]


def observation_space(chosen, about):
    """A Box where there is one port with a row per agent, else a Dict; ragged ports have room for their most rows, and
    "sizes" holds how many rows of each symbol are in use."""
    box = {}
    for p in chosen:
        shape = tuple(p["shape"]) if is_per_agent(p) else (p["rows"], *p["shape"])
        box[p["name"]] = spaces.Box(*_bounds(p, shape)[:2], dtype=_bounds(p, shape)[2])
    if len(box) == 1 and is_per_agent(chosen[0]):
        return box[chosen[0]["name"]]
    if any(p["symbol"] > 0 for p in chosen):
        box["sizes"] = spaces.Box(0, np.iinfo(np.int64).max, (len(about["symbols"]),), np.int64)
    return spaces.Dict(box)


def action_space(about):
    parts = []
    if about["choices"]:
        one = len(about["choices"]) == 1
        parts.append(spaces.Discrete(about["choices"][0]) if one else spaces.MultiDiscrete(about["choices"]))
    if about["low"]:
        low = np.array([-np.inf if v is None else v for v in about["low"]], np.float32)
        high = np.array([np.inf if v is None else v for v in about["high"]], np.float32)
        parts.append(spaces.Box(low, high, dtype=np.float32))
    return parts[0] if len(parts) == 1 else spaces.Tuple(parts)


class Arrays:
    """What the instances of a Worlds hold, in place: [n, agents, ...] of what has a row per agent."""

    def __init__(self, worlds):
        about, at = worlds.about, worlds.about["offsets"]
        a, heads, continuous = about["agents"], len(about["choices"]), len(about["low"])
        self.obs = {}
        for p in about["observations"]:
            shape = (a, *p["shape"]) if is_per_agent(p) else (p["rows"], *p["shape"])
            self.obs[p["name"]] = worlds.array(p["offset"], DTYPES[p["dtype"]], shape)
        self.size = worlds.array(at["size"], np.int64, (len(about["symbols"]),))
        self.alive = worlds.array(at["alive"], np.bool_, (a,))
        self.reward = worlds.array(at["reward"], np.float32, (a,))
        self.cost = worlds.array(at["cost"], np.float32, (a, len(about["costs"])))
        self.terminated = worlds.array(at["terminated"], np.bool_, (a,))
        self.truncated = worlds.array(at["truncated"], np.bool_, (a,))
        self.metric = worlds.array(at["metric"], np.float64, (len(about["metrics"]),))
        self.mask = worlds.array(at["mask"], np.bool_, (a, sum(about["choices"])))
        self.act_i = worlds.array(at["act_i"], np.int32, (a, heads))
        self.act_f = worlds.array(at["act_f"], np.float32, (a, continuous))
        self._choices = np.array(about["choices"], np.int64)
        self.low = np.array([-np.inf if v is None else v for v in about["low"]], np.float32)
        self.high = np.array([np.inf if v is None else v for v in about["high"]], np.float32)

    def set_actions(self, actions, rows):
        """actions as of the batched action space; rows: the shape in front, (n,) or (n * agents,)."""
        heads, continuous = self.act_i.shape[-1], self.act_f.shape[-1]
        parts = actions if heads and continuous else (actions,)
        if len(parts) != 1 + (heads > 0 and continuous > 0):
            raise ConfigError(f"actions: {len(parts)} parts, expected (discrete, continuous)")
        if heads:
            self._set_discrete(np.asarray(parts[0]), rows, heads)
        if continuous:
            self._set_continuous(np.asarray(parts[-1]), rows, continuous)
        if not self.alive.all():
            self.act_i[~self.alive] = 0
            self.act_f[~self.alive] = 0

    def _set_discrete(self, a, rows, heads):
        if a.shape != (*rows, heads) and not (heads == 1 and a.shape == rows):
            raise ConfigError(f"actions have shape {a.shape}, expected {rows if heads == 1 else (*rows, heads)}")
        if a.dtype.kind not in "iu":
            raise ConfigError(f"actions are {a.dtype}, expected integers")
        a = a.reshape(*rows, heads)
        if a.size and (a.min() < 0 or (a >= self._choices).any()):
            raise ConfigError(f"an action is outside of 0 to {(self._choices - 1).tolist()}")
        self.act_i[...] = a.reshape(self.act_i.shape)

    def _set_continuous(self, a, rows, continuous):
        if a.shape != (*rows, continuous):
            raise ConfigError(f"actions have shape {a.shape}, expected {(*rows, continuous)}")
        if a.dtype.kind not in "fiu":
            raise ConfigError(f"actions are {a.dtype}, expected numbers")
        if not np.isfinite(a).all():
            raise ConfigError("an action is not finite")
        np.clip(a.reshape(self.act_f.shape), self.low, self.high, out=self.act_f, casting="same_kind")
