# SPDX-License-Identifier: Apache-2.0
"""Weights by name: safetensors files, and the state_dicts of PyTorch modules. Matrices are [outputs, inputs] in both."""

import json
import os
import re
import struct

import numpy as np

from ._native import ConfigError, Error

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1",
          "BOOL": "?"}


def load_weights(path):
    """Name to array of a safetensors file."""
    with open(path, "rb") as f:
        data = f.read()
    try:
        n = struct.unpack_from("<Q", data)[0]
        header = json.loads(data[8:8 + n])
        header.pop("__metadata__", None)
        out = {}
        for name, t in header.items():
            begin, end = t["data_offsets"]
            raw = data[8 + n + begin:8 + n + end]
            if t["dtype"] == "BF16":
                flat = (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)
            else:
                flat = np.frombuffer(raw, _TYPES[t["dtype"]]).copy()
            out[name] = flat.reshape(t["shape"])
        return out
    except (struct.error, ValueError, KeyError, TypeError) as e:
        raise Error(f"{os.fspath(path)} is not a whole safetensors file: {e}", "DT_EDATA") from e


def save_weights(weights, path):
    """Writes a safetensors file for run(init_from=path). weights: name to array or tensor, with the names that
    load_run(...).weights() has; those of other trainers: from_state_dict."""
    header, parts, at = {}, [], 0
    for name, value in sorted(weights.items()):
        a = np.asarray(_array(value), np.float32)
        header[name] = {"dtype": "F32", "shape": list(a.shape), "data_offsets": [at, at + a.nbytes]}
        parts.append(np.ascontiguousarray(a).tobytes())
        at += a.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def _array(value):
    return value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value)


# Policies of hidden layers and one head, by trainer: prefixes of the hidden layers of policy and values, which are
# numbered 0, 2, 4, ... between activations; the heads; the logarithm of the deviation. A head of None is the last layer.
_KINDS = {
    "stable-baselines3": ("mlp_extractor.policy_net", "mlp_extractor.value_net", "action_net", "value_net", "log_std"),
    "cleanrl": ("actor", "critic", None, None, None),
    "cleanrl-continuous": ("actor_mean", "critic", None, None, "actor_logstd"),
}


def _kind_of(names):
    for kind, (policy, _, head, _, _) in _KINDS.items():
        if (head or policy + ".0") + ".weight" in names:
            return kind
    raise ConfigError(f"neither Stable-Baselines3's MlpPolicy nor an Agent of CleanRL has {', '.join(sorted(names)[:8])}; "
                      "map them by names={...}")


def _pairs(kind, depth, critic_depth, continuous):
    """Their names to those of controller_mlp."""
    policy, critic, head, value, deviation = _KINDS[kind]
    layers = {}
    for prefix, n, ours, last, ours_last in ((policy, depth, "policy", head, "mean" if continuous else "logits"),
                                             (critic, critic_depth, "critic", value, "value")):
        layers.update({f"{prefix}.{2 * k}": f"controller.{ours}.{k}" for k in range(n)})
        layers[last or f"{prefix}.{2 * n}"] = f"controller.head.{ours_last}"
    pairs = {f"{a}.{x}": f"{b}.{y}" for a, b in layers.items() for x, y in (("weight", "w"), ("bias", "b"))}
    return {**pairs, deviation: "controller.head.log_std"} if continuous else pairs


def _count(names, prefix):
    return len({m[1] for m in (re.fullmatch(re.escape(prefix) + r"\.(\d+)\.(?:weight|w)", n) for n in names) if m})


def from_state_dict(state, names=None):
    """Weights of controller_mlp from the state_dict of another trainer's policy: MlpPolicy of PPO and A2C in
    Stable-Baselines3, or the Agent of CleanRL's ppo.py and ppo_continuous_action.py, with tanh (their default) or
    activation=relu. names: {theirs: ours} of any other module. Tensors or arrays; torch is not needed."""
    if names is None:
        kind = _kind_of(state)
        policy, critic, head, value, deviation = _KINDS[kind]
        depth, critic_depth = _count(state, policy), _count(state, critic)
        names = _pairs(kind, depth - (head is None), critic_depth - (value is None), deviation in state)
    missing = [n for n in names if n not in state]
    more = [n for n in state if n not in names]
    if missing or more:
        raise ConfigError(f"the state_dict lacks {', '.join(missing) or 'nothing'}, and has {', '.join(more) or 'nothing'} "
                          "without a counterpart: controller_mlp has linear layers and one head for each output")
    out = {ours: np.array(_array(state[theirs]), np.float32) for theirs, ours in names.items()}
    return {n: a.reshape(-1) if n.endswith(".log_std") else a for n, a in out.items()}


def to_state_dict(weights, kind=None):
    """Weights as PyTorch tensors; torch is imported here. kind: "stable-baselines3", "cleanrl" or "cleanrl-continuous" for
    the names of that trainer's policy, where weights are those of controller_mlp; None: the names that they have."""
    import torch

    if kind is not None:
        weights = _renamed(weights, kind)
    return {name: torch.from_numpy(np.array(a)) for name, a in weights.items()}


def _renamed(weights, kind):
    if kind not in _KINDS:
        raise ConfigError(f"kind={kind!r}: expected one of {', '.join(_KINDS)}")
    weights = {n: a for n, a in weights.items() if n.startswith("controller.")}
    pairs = _pairs(kind, _count(weights, "controller.policy"), _count(weights, "controller.critic"),
                   _KINDS[kind][4] is not None and "controller.head.log_std" in weights)
    odd = sorted(set(weights).symmetric_difference(pairs.values()))
    if odd:
        raise ConfigError(f"{', '.join(odd)} do not match a policy of {kind}")
    rows = {"actor_logstd": (1, -1)}
    return {theirs: np.asarray(weights[ours]).reshape(rows.get(theirs, np.shape(weights[ours])))
            for theirs, ours in pairs.items()}
