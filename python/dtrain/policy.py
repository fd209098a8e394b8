# SPDX-License-Identifier: Apache-2.0
"""Exported policies on NumPy arrays: libdtrain-policy (include/dtrain/policy.h) by ctypes."""

import ctypes as C
import os

import numpy as np

from ._native import DTYPES, MESSAGE, ConfigError, check, library

_DTYPES = [None, *(DTYPES[k] for k in ("f32", "f64", "i32", "i64", "u8"))]  # by number: plugin.h


class _Port(C.Structure):
    _fields_ = [("name", C.c_char_p), ("dims", C.c_char_p), ("dtype", C.c_uint32), ("flags", C.c_uint32)]


class _Dim(C.Structure):
    _fields_ = [("name", C.c_char_p), ("size", C.c_int64)]


class _Setting(C.Structure):
    _fields_ = [("key", C.c_char_p), ("value", C.c_char_p)]


class _Info(C.Structure):
    _fields_ = [("struct_size", C.c_uint32), ("reserved", C.c_uint32), ("phase", C.c_char_p),
                ("environment", C.c_char_p), ("obs", C.POINTER(_Port)), ("symbols", C.POINTER(_Dim)),
                ("choices", C.POINTER(C.c_int32)), ("low", C.POINTER(C.c_float)), ("high", C.POINTER(C.c_float)),
                ("settings", C.POINTER(_Setting)),
                *((n, C.c_uint32) for n in ("n_obs", "n_symbols", "n_heads", "n_continuous", "n_settings", "n_choices",
                                            "places", "window"))]


class _IO(C.Structure):
    _fields_ = [("struct_size", C.c_uint32), ("n_places", C.c_uint32),
                *((n, C.c_void_p) for n in ("obs", "size", "alive", "truncated", "mask", "act_i", "act_f", "report"))]


def _library():
    lib = library("libdtrain-policy.so.0")
    text = [C.c_char_p, C.c_size_t]
    for name, result, arguments in (
        ("load", C.c_int32, [C.c_char_p, C.POINTER(C.c_void_p), *text]), ("free", None, [C.c_void_p]),
        ("describe", C.POINTER(_Info), [C.c_void_p]), ("reset", None, [C.c_void_p]),
        ("act", C.c_int32, [C.c_void_p, C.POINTER(_IO), *text]),
        ("output", C.c_void_p, [C.c_void_p, C.c_char_p, C.POINTER(C.c_int64), C.POINTER(C.c_uint32)]),
    ):
        f = getattr(lib, "dt_policy_" + name)
        f.restype, f.argtypes = result, arguments
    return lib


class Policy:
    """A policy that `dtrain export` wrote, of one world: what `dtrain eval` does with most likely actions, on NumPy
    arrays. ports: name to shape of a row and dtype; choices, low, high: its actions; settings: options that it was
    trained with; places: most agents; window: steps of observations that it remembers (1: none)."""

    def __init__(self, path):
        self._lib, self._handle, self._message = _library(), None, C.create_string_buffer(MESSAGE)
        handle = C.c_void_p()
        check(self._lib.dt_policy_load(os.fsencode(path), C.byref(handle), self._message, MESSAGE), self._message)
        self._handle = handle
        i = self._lib.dt_policy_describe(handle).contents
        self.phase, self.environment = i.phase.decode(), i.environment.decode()
        self.places, self.window, self._n_choices = i.places, i.window, i.n_choices
        self.choices = [i.choices[k] for k in range(i.n_heads)]
        self.low, self.high = ([a[k] for k in range(i.n_continuous)] for a in (i.low, i.high))
        self.settings = {i.settings[k].key.decode(): i.settings[k].value.decode() for k in range(i.n_settings)}
        self.symbols = {i.symbols[k].name.decode(): i.symbols[k].size for k in range(i.n_symbols)}
        self.ports, self._symbol = {}, {}
        for k in range(i.n_obs):
            symbol, *dims = i.obs[k].dims.decode().split()
            self.ports[i.obs[k].name.decode()] = (tuple(map(int, dims)), np.dtype(_DTYPES[i.obs[k].dtype]))
            self._symbol[i.obs[k].name.decode()] = symbol

    load = classmethod(lambda cls, path: cls(path))
    load.__func__.__doc__ = "Reads a file of `dtrain export --format safetensors`."

    def __del__(self):
        if self._handle is not None:
            self._lib.dt_policy_free(self._handle)
            self._handle = None

    def reset(self):
        """An episode begins: nothing is remembered."""
        self._lib.dt_policy_reset(self._handle)

    def act(self, observations, *, mask=None, alive=None, truncated=None, sizes=None):
        """The most likely permitted actions. observations: an array, or a dictionary of one per port, as Env returns
        them; more ports than the policy has are fine. Rows are agents: [agents, ...]; without that axis it is one
        agent, and so is the result. sizes: rows in use of each symbol, by default those given. mask: [agents, choices]
        1: allowed. Returns integers, floats, or a tuple of both, as the action space of Env."""
        given = observations if isinstance(observations, dict) else {next(iter(self.ports)): observations}
        missing = [p for p in self.ports if p not in given]
        if missing:
            raise ConfigError(f"observations lack {', '.join(missing)}; the policy has {', '.join(self.ports)}")
        if not isinstance(observations, dict) and len(self.ports) > 1:
            raise ConfigError(f"expected a dictionary of {', '.join(self.ports)}")
        arrays, rows, is_one = self._arrays(given)
        sizes = given.get("sizes") if sizes is None else sizes
        n = rows.get("A", 1)
        size = np.array([rows.get(s, 0) for s in self.symbols], np.int64) if sizes is None else self._sizes(sizes, rows)
        pointers = (C.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
        flags = [self._flags(*f) for f in (("alive", alive, (n,)), ("truncated", truncated, (n,)),
                                           ("mask", mask, (n, self._n_choices)))]
        act_i, act_f = np.zeros((n, len(self.choices)), np.int32), np.zeros((n, len(self.low)), np.float32)
        io = _IO(C.sizeof(_IO), n, C.cast(pointers, C.c_void_p), size.ctypes.data if size.size else None,
                 *(f if f is None else f.ctypes.data for f in flags), act_i.ctypes.data, act_f.ctypes.data, None)
        check(self._lib.dt_policy_act(self._handle, C.byref(io), self._message, MESSAGE), self._message)
        discrete = act_i[:, 0].astype(np.int64) if len(self.choices) == 1 else act_i
        parts = [a[0] if is_one else a for a, n_ in ((discrete, len(self.choices)), (act_f, len(self.low))) if n_]
        return parts[0] if len(parts) == 1 else tuple(parts)

    def output(self, name):
        """An output of the last act, such as "value" or "logits"; None: the policy has no such output."""
        dims, rank = (C.c_int64 * 8)(), C.c_uint32()
        at = self._lib.dt_policy_output(self._handle, name.encode(), dims, C.byref(rank))
        if not at:
            return None
        shape = tuple(dims[: rank.value])
        n = int(np.prod(shape))
        return np.ctypeslib.as_array(C.cast(at, C.POINTER(C.c_float)), (n,)).reshape(shape).copy()

    def _arrays(self, given):
        arrays, rows, is_one = [], {}, True
        for name, (shape, dtype) in self.ports.items():
            a = np.asarray(given[name])
            if a.dtype != dtype and not (dtype.kind == "f" and a.dtype.kind in "fiu"):
                raise ConfigError(f"{name} is {a.dtype}, expected {dtype}")
            symbol = self._symbol[name]
            if symbol == "A":
                is_one = a.shape == shape
                a = a[None] if is_one else a
            if a.shape[1:] != shape or a.ndim != len(shape) + 1:
                raise ConfigError(f"{name} has shape {a.shape}, expected {(symbol, *shape)}")
            symbol, n = (symbol[:-2], len(a) - 1) if symbol.endswith("+1") else (symbol, len(a))
            if rows.setdefault(symbol, n) != n:
                raise ConfigError(f"{name} has {n} rows of {symbol}, others have {rows[symbol]}")
            arrays.append(np.ascontiguousarray(a, dtype))
        if rows.get("A", 1) > self.places:
            raise ConfigError(f"{rows['A']} agents, the policy was made for {self.places}; it acts in one world: load it "
                              "once for each")
        return arrays, rows, is_one

    def _sizes(self, sizes, rows):
        sizes = np.asarray([sizes[s] for s in self.symbols] if isinstance(sizes, dict) else sizes, np.int64)
        if sizes.shape != (len(self.symbols),):
            raise ConfigError(f"sizes: expected one of each of {', '.join(self.symbols)}")
        for symbol, size in zip(self.symbols, sizes.tolist()):
            if not 0 <= size <= rows.get(symbol, size):
                raise ConfigError(f"sizes: {size} of {symbol}, the observations have {rows[symbol]} rows of it")
        return np.ascontiguousarray(sizes)

    @staticmethod
    def _flags(name, value, shape):
        if value is None:
            return None
        value = np.asarray(value)
        if value.size != np.prod(shape):
            raise ConfigError(f"{name} has shape {value.shape}, expected {shape}")
        return np.ascontiguousarray(value.reshape(shape) != 0, np.uint8)
