# SPDX-License-Identifier: Apache-2.0
"""Spaces of Gymnasium as what env_gym has ports and actions for. Spaces are known by the names of their classes and by
their attributes, so that environments without Gymnasium have them too; NumPy is used where it is installed."""
import re

try:
    import numpy as np
except ImportError:
    np = None

MOST_ONE_HOT, MOST_CHOICES, RANGE_CHECKS, TEXT_BYTES = 4096, 65536, 1000, 600


class Refused(Exception):
    """An error with a message for the user. code: config, unsupported, plugin or broken."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def printable(text, most=TEXT_BYTES):
    """One line without control characters; the beginning is cut."""
    text = "".join(c if c.isprintable() else " | " if c == "\n" else repr(c)[1:-1] for c in str(text).strip())
    return text if len(text) <= most else "..." + text[-most:]


# ---- spaces ---------------------------------------------------------------------------------------------------------

KINDS = ("Box", "Discrete", "MultiDiscrete", "MultiBinary", "Tuple", "Dict", "Text", "Sequence", "Graph", "OneOf")
NO_PORT = {
    "Text": "text has no fixed size; encode it as numbers with gymnasium.wrappers.TransformObservation",
    "Sequence": "its length varies; pad it to a Box with gymnasium.wrappers.TransformObservation",
    "Graph": "its size varies; flatten it to a Box with gymnasium.wrappers.TransformObservation",
    "OneOf": "its parts exclude each other; use a Dict of them",
}


def kind_of(space, what):
    """The kind of a space, by the names of its classes: no module is needed to know them."""
    for c in type(space).__mro__:
        if c.__name__ in KINDS:
            return c.__name__
    raise Refused("config", "%s is a %s, which is no space of Gymnasium" % (what, type(space).__name__))


def refuse(what, space, why):
    raise Refused("config", "%s, %s, cannot be mapped: %s" % (what, printable(space, 120), why))


def numbers(x):
    """All numbers of an array, a list of lists or a number, row by row."""
    if hasattr(x, "reshape"):
        return [v.item() for v in np.asarray(x).reshape(-1)] if np else list(x.reshape(-1))
    if isinstance(x, (list, tuple)):
        return [v for part in x for v in numbers(part)]
    return [x]


def shape_of(space):
    shape = getattr(space, "shape", None)
    return tuple(int(n) for n in shape) if shape is not None else ()


def product(shape):
    n = 1
    for k in shape:
        n *= k
    return n


def dtype_of(space):
    """The name of its dtype, which may be one of NumPy, a class or a text."""
    dtype = getattr(space, "dtype", None) or "float32"
    return re.sub(r"<class '(numpy\.)?(\w+)'>", r"\2", str(dtype))


def spread(x, size):
    v = numbers(x)
    return v * size if len(v) == 1 else v


def children(space, kind):
    parts = space.spaces
    return list(parts.items()) if kind == "Dict" else [(str(i), p) for i, p in enumerate(parts)]


def key_name(name):
    name = re.sub(r"[^a-z0-9_]+", "_", str(name).lower()).strip("_")
    return name if name[:1].isalpha() else "x" + name


class Leaf:
    """A part of an observation with a port, or columns of the port "obs"."""

    noted = set()  # parts that were reported, of any instance of this process

    def __init__(self, name, space, kind, what, bounds):
        self.name, self.what, self.kind, self.shape = name, what, kind, shape_of(space)
        self.low = self.high = None
        self.start, self.n, self.checks = [0], [1], 0
        self.dtype = dtype_of(space)
        self.is_image = kind == "Box" and self.dtype == "uint8" and len(self.shape) >= 2
        if kind == "Box":
            self.size = product(self.shape)
            if self.size < 1:
                refuse(what, space, "it has no elements")
            self.low, self.high = spread(space.low, self.size), spread(space.high, self.size)
            self.checks = RANGE_CHECKS if bounds == "warn" else 0 if bounds == "ignore" else -1
        elif kind == "MultiBinary":
            self.size = product(self.shape or (int(space.n),))
        else:
            self.n = [int(space.n)] if kind == "Discrete" else [int(n) for n in numbers(space.nvec)]
            self.start = spread(getattr(space, "start", 0), len(self.n))
            self.size = sum(self.n)
            if self.size > MOST_ONE_HOT:
                refuse(what, space, "one-hot it has %d columns, at most %d are possible; encode it with "
                       "gymnasium.wrappers.TransformObservation" % (self.size, MOST_ONE_HOT))
        self.np_low = self.np_high = None
        if np and kind == "Box":
            self.np_low = np.array(self.low, "float64").reshape(self.shape)
            self.np_high = np.array(self.high, "float64").reshape(self.shape)
        self.np_dtype = np.dtype(self.dtype) if np and kind == "Box" else None
        self.scale = 1 / 255 if self.is_image else 1

    def check_type(self, v):
        """v: an array whose dtype is not the declared one. Rounding is accepted, other kinds of numbers are not."""
        if not (np.can_cast(v.dtype, self.np_dtype, "same_kind") or (v.dtype.kind in "biu" and self.np_dtype.kind in "iu")):
            self.refuse_type(v.dtype)

    def refuse_type(self, dtype):
        raise Refused("plugin", "%s is %s, its space declares %s; convert it in the environment or with "
                      "gymnasium.wrappers.TransformObservation" % (self.what, dtype, self.dtype))

    def check_shape(self, shape):
        if tuple(shape) != self.shape:
            raise Refused("plugin", "%s has shape %s, its space declares %s" % (self.what, list(shape), list(self.shape)))

    def check_range(self, v, note):
        if np:
            v = np.asarray(v)
            bad = ~((v >= self.np_low) & (v <= self.np_high))
            at = int(bad.reshape(-1).argmax()) if bad.any() else -1
            value = v.reshape(-1)[at] if at >= 0 else 0
        else:
            at = next((i for i, x in enumerate(v) if not self.low[i] <= x <= self.high[i]), -1)
            value = v[at]
        if at >= 0:
            text = "%s has %g at %d, outside of the declared range from %g to %g" % (
                self.what, value, at, self.low[at], self.high[at])
            if self.checks < 0:
                raise Refused("plugin", text + "; correct the space or set bounds = \"warn\"")
            if self.what not in Leaf.noted:
                Leaf.noted.add(self.what)
                note(text + "; reported once")
            self.checks = 0
        elif self.checks > 0:
            self.checks -= 1

    def one_hot(self, v, out):
        at = 0
        v = numbers(v)
        if len(v) != len(self.n):
            raise Refused("plugin", "%s has %d values, its space declares %d" % (self.what, len(v), len(self.n)))
        for x, start, n in zip(v, self.start, self.n):
            for i in range(n):
                out[at + i] = 0
            k = int(x) - int(start)
            if not 0 <= k < n:
                raise Refused("plugin", "%s is %s, its space declares %s to %s" % (self.what, x, start, start + n - 1))
            out[at + k] = 1
            at += n

    def write(self, v, out, note):
        if self.kind in ("Discrete", "MultiDiscrete"):
            self.one_hot(v, out)
        elif np is not None:
            if type(v) is not np.ndarray:
                v = np.asarray(v)
            if self.kind == "Box":
                if v.shape != self.shape:
                    self.check_shape(v.shape)
                if v.dtype != self.np_dtype:
                    self.check_type(v)
                if self.checks:
                    self.check_range(v, note)
            if self.scale != 1 and out.dtype != self.np_dtype:
                np.multiply(v.reshape(-1), np.float32(self.scale), out=out)
            else:
                out[...] = v if v.ndim == 1 else v.reshape(-1)
        else:
            v = numbers(v)
            if len(v) != self.size:
                raise Refused("plugin", "%s has %d values, its space declares %d" % (self.what, len(v), self.size))
            if "int" in self.dtype and float in map(type, v):
                self.refuse_type("float")
            if self.checks:
                self.check_range(v, note)
            scale = self.scale if out.format == "f" else 1
            for i, x in enumerate(v):
                out[i] = x * scale


class Observer:
    """A tree of spaces as leaves: the writer of one agent's observations."""

    def __init__(self, space, bounds, what="the observation"):
        self.leaves, self.mask_key, self.names = [], None, set()
        self.tree = self.build(space, "", what, bounds, True)
        if not self.leaves:
            refuse(what, space, "it has no elements")

    def unique(self, name):
        base, n = name, 2
        while name in self.names:
            name, n = "%s_%d" % (base, n), n + 1
        self.names.add(name)
        return name

    def build(self, space, name, what, bounds, is_top):
        kind = kind_of(space, what)
        if kind in NO_PORT:
            refuse(what, space, NO_PORT[kind])
        if kind not in ("Dict", "Tuple"):
            self.leaves.append(Leaf(self.unique(name or "obs"), space, kind, what, bounds))
            return len(self.leaves) - 1
        parts = []
        for key, part in children(space, kind):
            if is_top and kind == "Dict" and key == "action_mask":
                self.mask_key = key
                continue
            below = "%s_%s" % (name, key_name(key)) if name else key_name(key)
            parts.append((key if kind == "Dict" else int(key), self.build(part, below, "%s, \"%s\"" % (what, key), bounds, False)))
        return parts

    def write(self, tree, value, out, note):
        if type(tree) is int:
            self.leaves[tree].write(value, out[tree], note)
            return
        for key, part in tree:
            try:
                inner = value[key]
            except (KeyError, IndexError, TypeError):
                raise Refused("plugin", "the observation has no \"%s\", which its space declares" % (key,)) from None
            self.write(part, inner, out, note)

    def signature(self):
        return [(x.name, x.kind, x.shape, x.size) for x in self.leaves]


class Actor:
    """The other way: heads and continuous values become an action."""

    def __init__(self, space, what="the action space"):
        self.choices, self.low, self.high, self.labels = [], [], [], []
        self.tree = self.build(space, what)

    def build(self, space, what):
        kind = kind_of(space, what)
        if kind in ("Text", "Sequence", "Graph", "OneOf"):
            refuse(what, space, "an action has a fixed number of values; use gymnasium.wrappers.TransformAction")
        if kind in ("Dict", "Tuple"):
            parts = [(k, self.build(p, "%s, \"%s\"" % (what, k))) for k, p in children(space, kind)]
            return (kind, parts)
        if kind == "Box":
            return self.build_box(space, what)
        n, start, shape = self.heads(space, kind)
        if max(n) > MOST_CHOICES:
            refuse(what, space, "it has %d choices, at most %d are possible" % (max(n), MOST_CHOICES))
        at = len(self.choices)
        self.choices += n
        dtype = getattr(space, "dtype", None) or "int64"
        return (kind, at, len(n), start, shape, dtype)

    @staticmethod
    def heads(space, kind):
        if kind == "Discrete":
            return [int(space.n)], [int(getattr(space, "start", 0))], None
        if kind == "MultiDiscrete":
            n = [int(v) for v in numbers(space.nvec)]
            return n, [int(v) for v in spread(getattr(space, "start", 0), len(n))], shape_of(space) or (len(n),)
        shape = shape_of(space) or (int(space.n),)
        return [2] * product(shape), [0] * product(shape), shape

    def build_box(self, space, what):
        shape = shape_of(space)
        size = product(shape)
        low, high = spread(space.low, size), spread(space.high, size)
        dtype = dtype_of(space)
        if size < 1:
            refuse(what, space, "it has no elements")
        if not dtype.startswith("float"):
            refuse(what, space, "an action of whole numbers is a Discrete or MultiDiscrete; use "
                   "gymnasium.wrappers.TransformAction")
        for i in range(size):
            if not low[i] < high[i]:
                refuse(what, space, "element %d has the bounds %g and %g" % (i, low[i], high[i]))
        at = len(self.low)
        self.low += low
        self.high += high
        return ("Box", at, size, None, shape, dtype)

    def read(self, tree, act_i, act_f):
        kind = tree[0]
        if kind == "Dict":
            return {k: self.read(p, act_i, act_f) for k, p in tree[1]}
        if kind == "Tuple":
            return tuple(self.read(p, act_i, act_f) for _, p in tree[1])
        _, at, n, start, shape, dtype = tree
        if kind == "Discrete":
            v = act_i[at] + start[0]
            return np.int64(v) if np else v
        if kind == "Box":
            v = act_f[at:at + n]
            return np.array(v, dtype).reshape(shape) if np else list(v)
        v = [act_i[at + i] + start[i] for i in range(n)]
        return np.array(v, dtype).reshape(shape) if np else v
