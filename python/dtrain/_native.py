# SPDX-License-Identifier: Apache-2.0
"""libdtrain-env by ctypes: the declarations of core/embed/worlds.h, errors, and memory as NumPy arrays."""

import ctypes as C
import json
import os
import threading

import numpy as np

from ._build import LIBDIR, PLUGINDIR

_ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_root")
PLUGINS = os.path.join(_ROOT, PLUGINDIR)
MESSAGE = 8192
MOST = {"num_envs": 1 << 20, "threads": 1024}
_libraries = {}
_lock = threading.Lock()

STATUS = {-1: "DT_EINVAL", -2: "DT_ECONFIG", -3: "DT_ESHAPE", -4: "DT_ENOTFOUND", -5: "DT_EABI", -6: "DT_EDATA",
          -20: "DT_ENOMEM", -21: "DT_EIO", -23: "DT_EUNSUPPORTED", -24: "DT_EPLUGIN", -25: "DT_EINTERRUPTED",
          -26: "DT_EBROKEN", -42: "DT_EDIVERGED"}
DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "u8": np.uint8}


class Error(RuntimeError):
    """An error of dtrain; status is the code of include/dtrain/status.h, such as "DT_EPLUGIN"."""

    def __init__(self, message, status=""):
        super().__init__(message)
        self.status = status


class ConfigError(Error, ValueError):
    """An option or a value that dtrain rejects."""


class NotFound(Error, LookupError):
    """An environment, file or name that is not found."""


def library(name):
    """A shared library of this package, opened once."""
    with _lock:
        if name not in _libraries:
            path = os.path.join(_ROOT, LIBDIR, name)
            try:
                _libraries[name] = C.CDLL(path)
            except OSError as e:
                raise Error(f"cannot load {path}: {e}; is the wheel made for this machine and C library?") from e
        return _libraries[name]


def check(status, message):
    """Raises what a dt_status below 0 means."""
    if status < 0:
        name = STATUS.get(status, str(status))
        text = message.value.decode("utf-8", "replace") or name
        kind = {"DT_ECONFIG": ConfigError, "DT_EINVAL": ConfigError, "DT_ENOTFOUND": NotFound}.get(name, Error)
        raise kind(text, name)


class _Desc(C.Structure):
    _fields_ = [("struct_size", C.c_uint32), ("n", C.c_uint32), ("env", C.c_char_p),
                ("settings", C.POINTER(C.c_char_p)), ("plugin_dir", C.c_char_p), ("threads", C.c_uint32),
                ("reserved", C.c_uint32)]


def _env_library():
    lib = library("libdtrain-env.so")
    text = [C.c_char_p, C.c_size_t]
    for name, result, arguments in (
        ("create", C.c_int32, [C.POINTER(_Desc), C.POINTER(C.c_void_p), *text]),
        ("destroy", None, [C.c_void_p]), ("describe", C.c_char_p, [C.c_void_p]),
        ("memory", C.c_void_p, [C.c_void_p]), ("over", C.c_void_p, [C.c_void_p]),
        ("reset", C.c_int32, [C.c_void_p, C.c_void_p, C.c_void_p, *text]),
        ("step", C.c_int32, [C.c_void_p, *text]), ("list", C.c_char_p, [C.c_char_p]),
    ):
        f = getattr(lib, "dt_worlds_" + name)
        f.restype, f.argtypes = result, arguments
    return lib


_loading = threading.Lock()  # plugins are loaded and configured by one thread at a time


def environments():
    """Ids of all environments that are found."""
    with _loading:
        return _env_library().dt_worlds_list(os.fsencode(PLUGINS)).decode().split()


def option_text(value):
    """A Python value as the configuration of dtrain has it."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(option_text(v) for v in value)
    return str(value)


class _Owner:
    def __init__(self, lib, handle):
        self._destroy, self._handle = lib.dt_worlds_destroy, handle

    def __del__(self):
        self._destroy(self._handle)


class Worlds:
    """Instances of one environment. Arrays of it keep it alive, so that none points at memory that is gone."""

    def __init__(self, env, n, options, threads):
        self._lib = _env_library()
        settings = [f"{k}={option_text(v)}".encode() for k, v in (options or {}).items()]
        texts = (C.c_char_p * (len(settings) + 1))(*settings, None)
        for name, value in (("num_envs", n), ("threads", threads)):
            if not 1 <= value <= MOST[name]:
                raise ConfigError(f"{name}={value}: must be from 1 to {MOST[name]}")
        desc = _Desc(C.sizeof(_Desc), n, os.fsencode(env), texts, os.fsencode(PLUGINS), threads, 0)
        self._message = C.create_string_buffer(MESSAGE)
        handle = C.c_void_p()
        with _loading:
            status = self._lib.dt_worlds_create(C.byref(desc), C.byref(handle), self._message, MESSAGE)
        self._check(status)
        self._handle, self._owner = handle, _Owner(self._lib, handle)
        self.n = n
        self.about = json.loads(self._lib.dt_worlds_describe(handle).decode())
        self._stride = self.about["record_bytes"]
        self._memory = self._bytes(self._lib.dt_worlds_memory(handle), n * self._stride)
        self.over = np.frombuffer(self._bytes(self._lib.dt_worlds_over(handle), n), np.bool_)

    def _bytes(self, address, n):
        memory = (C.c_char * n).from_address(address)
        memory.owner = self._owner
        return memory

    def _check(self, status):
        check(status, self._message)

    def array(self, offset, dtype, shape):
        """What is at this offset of each record: [n, *shape], in place."""
        inner = np.ndarray(shape, dtype).strides
        return np.ndarray((self.n, *shape), dtype, self._memory, offset, (self._stride, *inner))

    def reset(self, which=None, seed=None):
        which = None if which is None else np.ascontiguousarray(which, np.uint8)
        seed = None if seed is None else np.ascontiguousarray(seed, np.uint64)
        self._check(self._lib.dt_worlds_reset(self._handle, which if which is None else which.ctypes.data,
                                              seed if seed is None else seed.ctypes.data, self._message, MESSAGE))

    def step(self):
        self._check(self._lib.dt_worlds_step(self._handle, self._message, MESSAGE))
