# SPDX-License-Identifier: Apache-2.0
"""The Python side of env_gym: serves several instances of an environment to the plugin that started this process.

Messages travel over a SOCK_SEQPACKET pair, one per call or per step of many instances; observations, actions, rewards
and flags are in memory that both map (wire.h has the other half of both). Only the standard library is required; with
NumPy, observations and actions are NumPy arrays. Arguments: descriptors of socket, memory and lifeline.
"""
import sys

if sys.version_info < (3, 8):
    sys.exit("env_gym needs Python 3.8 or later, this is " + sys.version.split()[0])

import faulthandler
import fcntl
import importlib.metadata
import importlib.util
import inspect
import json
import mmap
import os
import platform
import re
import signal
import socket
import struct
import traceback

from env_gym_spaces import Actor, Observer, Refused, key_name, np, numbers, printable

sys.path.pop(0)  # the folder of this file, which holds no modules for environments

PROTOCOL = 2
CREATE, MAP, STEP, RESET, CLOSE = 1, 2, 3, 4, 5
OK, DONE, FAILED = 0, 1, 2
MOST_COLUMNS = 256


def version_of(package):
    """Of an installed package, without importing it; "" where there is none."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def describe(e):
    """An exception with the innermost frames outside of this file."""
    frames = [f for f in traceback.extract_tb(e.__traceback__) if f.filename != __file__]
    where = "".join(", at %s:%d in %s: %s" % (f.filename, f.lineno, f.name, f.line) for f in frames[:-3:-1])
    return printable("%s: %s" % (type(e).__name__, printable(e, 300)), 320) + printable(where, 400)


# ---- making an environment ------------------------------------------------------------------------------------------


def parse_kwargs(text):
    text = text.strip()
    if not text:
        return {}
    try:
        if text.startswith("{"):
            return json.loads(text)
        out = {}
        for part in text.split(","):
            key, eq, value = part.partition("=")
            if not eq or not key.strip().isidentifier():
                raise ValueError("expected {\"key\": value} or key=value, separated by commas, got \"%s\"" % printable(part, 60))
            try:
                out[key.strip()] = json.loads(value)
            except ValueError:
                out[key.strip()] = value.strip()
        return out
    except ValueError as e:
        raise Refused("config", "kwargs: %s" % printable(e, 200)) from None


def parse_wrappers(text):
    out, at = [], 0
    while text[at:].strip(" ,\t"):
        at += len(text[at:]) - len(text[at:].lstrip(" ,\t"))
        m = re.compile(r"[A-Za-z_][\w.]*(:[A-Za-z_][\w.]*)?").match(text, at)
        if not m:
            raise Refused("config", "wrappers: expected module:Class, got \"%s\"" % printable(text[at:], 60))
        at, kwargs = m.end(), {}
        if text[at:at + 1] == "{":
            try:
                kwargs, at = json.JSONDecoder().raw_decode(text, at)
            except ValueError as e:
                raise Refused("config", "wrappers: %s: %s" % (m.group(0), printable(e, 120))) from None
        out.append((m.group(0), kwargs))
    return out


def import_module(name, path):
    try:
        if name.endswith(".py"):
            file = os.path.join(path, name)
            spec = importlib.util.spec_from_file_location(key_name(os.path.basename(name)[:-3]), file)
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
            return module
        return importlib.import_module(name)
    except FileNotFoundError:
        raise Refused("config", "there is no file %s" % printable(os.path.join(path, name), 200)) from None
    except ModuleNotFoundError as e:
        if e.name is None:
            raise
        hint = ": %s -m pip install gymnasium" % sys.executable if e.name == "gymnasium" else ""
        raise Refused("unsupported" if e.name == "gymnasium" else "config", "module %s is not found by %s, Python %s%s" % (
            e.name, sys.executable, platform.python_version(), hint)) from None


def find_object(text, path):
    module, _, name = text.rpartition(":")
    found = import_module(module, path)
    for part in name.split("."):
        if not hasattr(found, part):
            raise Refused("config", "%s has no %s" % (module, name))
        found = getattr(found, part)
    return found


def check_kwargs(fn, kwargs, what):
    try:
        parameters = inspect.signature(fn).parameters
    except (TypeError, ValueError):
        return
    names = [p.name for p in parameters.values() if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind == p.VAR_KEYWORD for p in parameters.values()):
        return
    for key in kwargs:
        if key not in names:
            raise Refused("config", "kwargs: %s takes no \"%s\"; it takes %s" % (what, key, ", ".join(names) or "none"))


def make_gymnasium(name, kwargs, path):
    gymnasium = import_module("gymnasium", path)
    module, _, name = name.rpartition(":")
    if module:
        import_module(module, path)  # which registers its environments
    try:
        spec = gymnasium.spec(name)
        entry = spec.entry_point
        if isinstance(entry, str):
            entry = find_object(entry, path)
        if callable(entry):
            own = ("max_episode_steps", "render_mode", "disable_env_checker")
            check_kwargs(entry, {k: v for k, v in kwargs.items() if k not in own}, name)
        return gymnasium.make(name, **dict({"disable_env_checker": True}, **kwargs))
    except gymnasium.error.DependencyNotInstalled as e:
        raise Refused("unsupported", "%s lacks a package in %s: %s" % (name, sys.executable, printable(e, 300))) from None
    except gymnasium.error.Error as e:
        raise Refused("config", "%s: %s" % (name, printable(e, 300))) from None


def make(options):
    path, name, kwargs = options["path"], options["id"], parse_kwargs(options["kwargs"])
    if path not in sys.path:
        sys.path.insert(0, path)
    m = re.fullmatch(r"(.+\.py|[A-Za-z_][\w.]*):([A-Za-z_][\w.]*)", name)
    if m:
        fn = find_object(name, path)
        check_kwargs(fn, kwargs, name)
        env = fn(**kwargs)
    else:
        env = make_gymnasium(name, kwargs, path)
    for wrapper, arguments in parse_wrappers(options["wrappers"]):
        fn = find_object(wrapper if ":" in wrapper else "gymnasium.wrappers:" + wrapper, path)
        check_kwargs(fn, arguments, wrapper)
        env = fn(env, **arguments)
    return env


def is_parallel(env, name):
    """Has it several agents? Their spaces are functions of the agent."""
    space = getattr(env, "action_space", None)
    if space is None or not hasattr(env, "observation_space"):
        raise Refused("config", "%s is a %s without observation_space and action_space" % (name, type(env).__name__))
    if not callable(space):
        if hasattr(getattr(env, "unwrapped", env), "single_action_space"):
            raise Refused("config", "the environment is a vector environment; give the environment of one instance, "
                          "dtrain steps many of them")
        return False
    if hasattr(env, "agent_iter"):
        raise Refused("config", "the environment has the AEC API of PettingZoo, in which agents act one after another; "
                      "set wrappers = \"pettingzoo.utils.conversions:aec_to_parallel\"")
    return True


# ---- instances ------------------------------------------------------------------------------------------------------


def words(text):
    return [w for w in re.split(r"[,\s]+", text) if w]


class Views:
    """Of one instance in the shared memory."""

    def __init__(self, memory, map_of, slot, x):
        base = slot * map_of["stride"]
        A, K, M = len(x.agents), len(x.costs), len(x.metrics)
        self.n_choices, self.n_continuous, self.n_heads = sum(x.actor.choices), len(x.actor.low), len(x.actor.choices)

        def cast(name, n, kind, size):
            at = base + map_of[name]
            return memoryview(memory)[at:at + n * size].cast(kind)

        self.reward, self.cost = cast("reward", A, "f", 4), cast("cost", A * K, "f", 4)
        self.alive, self.terminated, self.truncated = (cast(k, A, "B", 1) for k in ("alive", "terminated", "truncated"))
        self.mask, self.metric = cast("mask", A * self.n_choices, "B", 1), cast("metric", M, "d", 8)
        self.status = cast("status", 1, "i", 4)
        self.act_i, self.act_f = cast("act_i", A * self.n_heads, "i", 4), cast("act_f", A * self.n_continuous, "f", 4)
        self.ports = [cast("obs%d" % i, A * n, "B" if t == "u8" else "f", 1 if t == "u8" else 4)
                      for i, (_, _, t, n) in enumerate(x.ports)]
        self.obs = [self.rows(x, a) for a in range(A)]
        self.is_masked = True

    def rows(self, x, a):
        """A view per leaf of an agent."""
        out = []
        for leaf, port, at in x.places:
            n = x.ports[port][3]
            row = self.ports[port][a * n + at:a * n + at + leaf.size]
            out.append(np.asarray(row) if np else row)
        return out


class Instance:
    """What environments with one agent and with several have in common; wire order is that of agents."""

    def __init__(self, env, options, agents, observers, actors):
        self.env, self.agents, self.observers, self.actors = env, agents, observers, actors
        self.actor, self.options, self.view, self.notes = actors[0], options, None, []
        self.costs, self.metrics, self.info = words(options["costs"]), words(options["metrics"]), {}
        self.cost_seen, self.steps = not self.costs, 0
        for what, names in (("cost", self.costs), ("metric", self.metrics)):
            if len({key_name(n) for n in names}) != len(names):
                raise Refused("config", "%ss names one twice" % what)
        self.lay_out()

    def lay_out(self):
        """ports: name, dims, dtype, items of a row; places: leaf, port, first item."""
        leaves = self.observers[0].leaves
        self.ports, self.places, at = [], [], 0
        apart = [x for x in leaves if self.is_apart(x)]
        other = "image"
        while other in [x.name for x in leaves]:
            other += "_"
        for x in apart:
            dims = " ".join(str(n) for n in (x.shape if x.kind == "Box" and x.shape else (x.size,)))
            name = other if x.name == "obs" and len(apart) < len(leaves) else x.name
            self.ports.append((name, "A " + dims, "u8" if x.is_image else "f32", x.size))
        for x in leaves:
            if x in apart:
                self.places.append((x, apart.index(x), 0))
            else:
                self.places.append((x, len(apart), at))
                at += x.size
        if at > 0:
            self.ports.append(("obs", "A %d" % at, "f32", at))

    def is_apart(self, leaf):
        """Has it a port of its own?"""
        ports = self.options["ports"]
        return ports == "named" or (ports == "images" and (leaf.is_image or (leaf.kind == "Box" and len(leaf.shape) >= 3)))

    def columns(self):
        """port, name, meaning, low, high, first, n of what the ports hold"""
        out = []
        for leaf, port, at in self.places:
            if self.is_apart(leaf) and leaf.shape and len(leaf.shape) > 1:
                continue
            if leaf.kind != "Box":
                low, high = 0, 1
            else:
                low, high = (0, 1) if leaf.is_image else (min(leaf.low), max(leaf.high))
            meaning = {"Discrete": "one-hot", "MultiDiscrete": "one-hot", "MultiBinary": "0 or 1"}.get(leaf.kind, "")
            out.append((self.ports[port][0], leaf.name, meaning, low, high, at, leaf.size))
        return out[:MOST_COLUMNS]

    def note(self, text):
        self.notes.append(text)

    def set_mask(self, a, mask):
        v, n = self.view, self.view.n_choices
        if mask is None:
            return
        flat = [int(bool(x)) for x in numbers(mask)]
        if len(flat) != n:
            raise Refused("plugin", "the action mask has %d entries, the actions have %d choices" % (len(flat), n))
        v.mask[a * n:(a + 1) * n] = bytes(flat)
        v.is_masked = True

    def clear_masks(self):
        v = self.view
        if v.is_masked and v.n_choices:
            v.mask[:] = b"\1" * len(v.mask)
            v.is_masked = False

    def observe(self, a, obs, info):
        o = self.observers[a]
        o.write(o.tree, obs, self.view.obs[a], self.note)
        if self.view.n_choices:
            mask = info.get("action_mask") if info else None
            self.set_mask(a, obs[o.mask_key] if mask is None and o.mask_key else mask)

    def count_costs(self, a, info):
        K = len(self.costs)
        for k, name in enumerate(self.costs):
            value = info.get(name)
            self.cost_seen |= value is not None
            self.view.cost[a * K + k] = float(value) if value is not None else 0.0

    def finish(self, infos):
        """The end of an episode: what is measured of it."""
        for m, name in enumerate(self.metrics):
            values = [float(i[name]) for i in infos if i and i.get(name) is not None]
            self.view.metric[m] = sum(values) / len(values) if values else float("nan")
        if not self.cost_seen:
            known = sorted({k for i in infos for k in (i or {})})
            self.note("no step of an episode had a cost \"%s\" in info, so costs are 0; info has %s" % (
                ", ".join(self.costs), printable(", ".join(known) or "no keys", 200)))
            self.cost_seen = True

    def close(self):
        try:
            self.env.close()
        except Exception:  # an environment without close, or one that is broken
            pass


def split_result(result, n, call):
    if not isinstance(result, tuple) or len(result) != n:
        got = "%d values" % len(result) if isinstance(result, tuple) else type(result).__name__
        raise Refused("plugin", "%s returned %s; Gymnasium's %s" % (call, got, (
            "reset returns (observation, info)" if n == 2 else
            "step returns (observation, reward, terminated, truncated, info)")))
    return result


class Single(Instance):
    def __init__(self, env, options):
        super().__init__(env, options, [""], [Observer(env.observation_space, options["bounds"])], [Actor(env.action_space)])

    def reset(self, seed):
        v = self.view
        obs, info = split_result(self.env.reset(seed=seed), 2, "reset")
        self.clear_masks()
        self.observe(0, obs, info)
        v.alive[0] = 1
        return OK

    def step(self):
        v = self.view
        result = self.env.step(self.actor.read(self.actor.tree, v.act_i, v.act_f))
        if type(result) is tuple and len(result) == 6:  # Safety-Gymnasium
            obs, reward, cost, terminated, truncated, info = result
            info = dict(info, cost=cost)
        else:
            obs, reward, terminated, truncated, info = split_result(result, 5, "step")
        if v.is_masked:
            self.clear_masks()
        self.observe(0, obs, info)
        v.reward[0] = float(reward)
        v.terminated[0], v.truncated[0] = bool(terminated), bool(truncated)
        is_over = terminated or truncated
        v.alive[0] = not is_over
        if self.costs:
            self.count_costs(0, info or {})
        if is_over:
            self.finish([info])
            return DONE
        return OK


class Parallel(Instance):
    """PettingZoo's parallel API: places are possible_agents."""

    def __init__(self, env, options):
        agents = list(env.possible_agents)
        if not agents:
            raise Refused("config", "the environment has no possible_agents")
        observers = [Observer(env.observation_space(a), options["bounds"], "the observation of %s" % a) for a in agents]
        actors = [Actor(env.action_space(a), "the action space of %s" % a) for a in agents]
        for i in range(1, len(agents)):
            same = (observers[i].signature() == observers[0].signature() and actors[i].choices == actors[0].choices and
                    actors[i].low == actors[0].low and actors[i].high == actors[0].high)
            if not same:
                raise Refused("config", "agents %s and %s have different spaces; make them alike, such as by "
                              "wrappers = \"supersuit:pad_observations_v0,supersuit:pad_action_space_v0\"" % (
                                  agents[0], agents[i]))
        super().__init__(env, options, agents, observers, actors)
        self.place = {a: i for i, a in enumerate(agents)}

    def teams(self):
        prefixes, out = words(self.options["teams"]), []
        for a in self.agents:
            team = [i for i, p in enumerate(prefixes) if str(a).startswith(p)]
            if prefixes and not team:
                raise Refused("config", "teams = \"%s\": agent %s begins with none of them" % (self.options["teams"], a))
            out.append(team[0] if prefixes else 0)
        return out if prefixes else []

    def write(self, alive, obs, infos, acted):
        v = self.view
        self.clear_masks()
        for i, a in enumerate(self.agents):
            v.alive[i] = a in alive
            if a in obs:
                self.observe(i, obs[a], infos.get(a))
            elif a in alive:
                raise Refused("plugin", "agent %s acts next and has no observation" % a)
            elif a not in acted:
                for row in v.obs[i]:
                    memoryview(row).cast("B")[:] = bytes(row.nbytes)

    def reset(self, seed):
        obs, infos = split_result(self.env.reset(seed=seed), 2, "reset")
        self.live = [a for a in self.env.agents]
        for a in self.live:
            self.check_agent(a)
        if not self.live:
            raise Refused("plugin", "after reset no agent acts")
        self.write(set(self.live), obs, infos or {}, ())
        return OK

    def check_agent(self, a):
        if a not in self.place:
            raise Refused("plugin", "agent %s is not one of possible_agents" % (a,))

    def step(self):
        v, env = self.view, self.env
        h, c = v.n_heads, v.n_continuous
        actions = {}
        for a in self.live:
            i = self.place[a]
            x = self.actors[i]
            actions[a] = x.read(x.tree, v.act_i[i * h:(i + 1) * h], v.act_f[i * c:(i + 1) * c])
        obs, reward, terminated, truncated, infos = split_result(env.step(actions), 5, "step")
        acted, ended = set(self.live), set()
        for i, a in enumerate(self.agents):
            v.reward[i] = float(reward.get(a, 0)) if a in acted else 0
            is_terminated = a in acted and bool(terminated.get(a, False))
            is_truncated = a in acted and bool(truncated.get(a, False))
            if a in acted and a not in env.agents and not is_terminated:
                is_truncated = True  # it left
            v.terminated[i], v.truncated[i] = is_terminated, is_truncated
            if is_terminated or is_truncated:
                ended.add(a)
            if self.costs:
                self.count_costs(i, (infos.get(a) or {}) if a in acted else {})
        self.live = [a for a in env.agents if a not in ended]
        for a in self.live:
            self.check_agent(a)
        self.write(set(self.live), obs, infos, acted)
        if self.live:
            return OK
        self.finish([infos.get(a) for a in self.agents])
        return DONE


# ---- the connection -------------------------------------------------------------------------------------------------


class Server:
    def __init__(self, sock, memory_fd):
        self.sock, self.memory_fd, self.memory, self.map = sock, memory_fd, None, None
        self.slots, self.signature = {}, None

    def reply(self, texts):
        message = b"".join(str(t).encode("utf-8", "replace") + b"\0" for t in texts)
        self.sock.sendall(message or b"\0")

    def create(self, slot, options):
        if slot in self.slots:
            self.slots.pop(slot).close()
        env = make(options)
        x = Parallel(env, options) if is_parallel(env, options["id"]) else Single(env, options)
        spec = self.describe(x)
        if self.signature is not None and spec != self.signature:
            raise Refused("plugin", "another instance of it has other spaces")
        self.signature = spec
        self.slots[slot] = x
        if self.map is not None:
            x.view = Views(self.memory, self.map, slot, x)
        return spec

    @staticmethod
    def describe(x):
        limit = getattr(getattr(x.env, "spec", None), "max_episode_steps", None) or 0
        teams = x.teams() if isinstance(x, Parallel) else []
        out = ["spec", len(x.agents), len(x.ports)]
        for name, dims, dtype, n in x.ports:
            out += [name, dims, dtype, n]
        out += [len(x.actor.choices)] + x.actor.choices
        out.append(len(x.actor.low))
        for low, high in zip(x.actor.low, x.actor.high):
            out += [repr(float(low)), repr(float(high))]
        out += [len(x.costs)] + [key_name(n) for n in x.costs] + [len(x.metrics)] + [key_name(n) for n in x.metrics]
        columns = x.columns()
        out += [limit, len(columns)]
        for port, name, meaning, low, high, first, n in columns:
            out += [port, name, meaning, repr(float(low)), repr(float(high)), first, n]
        names = [printable(a, 60) for a in x.agents] if isinstance(x, Parallel) else []
        return [str(t) for t in out + [len(names)] + names + [len(teams)] + teams]

    def set_map(self, payload):
        names = ["stride", "reward", "cost", "alive", "terminated", "truncated", "mask", "metric", "act_i", "act_f", "status"]
        values = struct.unpack("<%dQ" % (len(payload) // 8), payload)
        self.map = dict(zip(names, values[1:]))
        self.map.update(("obs%d" % i, at) for i, at in enumerate(values[1 + len(names):]))
        self.memory = mmap.mmap(self.memory_fd, values[0])
        for slot, x in self.slots.items():
            x.view = Views(self.memory, self.map, slot, x)

    def call(self, slot, fn, out):
        x = self.slots.get(slot)
        try:
            status = fn(x)
        except Refused as e:
            status = FAILED
            out += ["error", slot, e.code, e]
        except BaseException as e:  # SystemExit of an environment among them
            traceback.print_exc()
            status = FAILED
            out += ["error", slot, "broken", describe(e)]
        if x is None:
            return
        x.view.status[0] = status
        for text in x.notes:
            out += ["note", text]
        x.notes = []

    def answer(self, message):
        kind, n = struct.unpack_from("<II", message)
        out = []
        if kind == STEP:
            for slot in struct.unpack_from("<%dI" % n, message, 8):
                self.call(slot, step_instance, out)
        elif kind == RESET:
            seed = struct.unpack_from("<Q", message, 8)[0]
            self.call(n, lambda x: x.reset(seed), out)
        elif kind == CREATE:
            texts = message[8:].decode("utf-8", "replace").split("\0")
            try:
                out = self.create(n, dict(zip(texts[0:-1:2], texts[1::2])))
            except Refused as e:
                out = ["error", n, e.code, e]
            except BaseException as e:
                traceback.print_exc()
                out = ["error", n, "plugin", describe(e)]
        elif kind == MAP:
            self.set_map(message[8:])
        elif kind == CLOSE and n in self.slots:
            self.slots.pop(n).close()
        sys.stdout.flush()
        self.reply(out)

    def run(self):
        self.reply(["hello", PROTOCOL, platform.python_version(), platform.machine(), np.__version__ if np else "",
                    version_of("gymnasium")])
        while True:
            message = self.sock.recv(1 << 20)
            if not message:
                return
            self.answer(message)


def step_instance(x):
    return x.step()


def end_with_host(fd):
    """The host holds the other end of this pipe. When that closes the kernel sends SIGIO, whose default is to end the
    process, whatever it computes."""
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)
    try:
        if os.read(fd, 1) == b"":
            os._exit(1)  # it was gone before
    except BlockingIOError:
        pass


def main():
    sock_fd, memory_fd, life_fd = (int(a) for a in sys.argv[1:4])
    for fd in (sock_fd, memory_fd, life_fd):
        os.set_inheritable(fd, False)
    end_with_host(life_fd)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)
    sys.argv = ["env_gym"]
    Server(socket.socket(fileno=sock_fd), memory_fd).run()


main()
