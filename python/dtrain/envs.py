# SPDX-License-Identifier: Apache-2.0
"""Environments of dtrain with the API of Gymnasium: Env (one), VectorEnv (many, stepped in C)."""

import os

import gymnasium
import numpy as np
from gymnasium.utils.seeding import np_random
from gymnasium.vector.utils import batch_space

from ._native import ConfigError, Error, Worlds
from ._spaces import Arrays, action_space, observation_space, select

try:
    from gymnasium.vector import AutoresetMode
except ImportError:  # before 1.1
    from enum import Enum

    AutoresetMode = Enum("AutoresetMode", {"NEXT_STEP": "NextStep", "SAME_STEP": "SameStep", "DISABLED": "Disabled"})


class VectorEnv(gymnasium.vector.VectorEnv):
    """num_envs instances of an environment.

    env: id ("env_traffic" or "traffic") or the path of a plugin. options: its options, as of `dtrain show env_traffic`.
    ports: observations to return; default: all, a Dict where there are several. copy=False returns views of the memory
    that the environment writes: they change with the next step. agents="rows": of an environment with several agents,
    each is an environment of its own here (num_envs times agents, instance by instance); all act by one policy.
    threads: default, one per core. Actions outside of their bounds are clipped; impossible choices are errors.
    """

    metadata = {"render_modes": []}
    closed, viewer, is_vector_env = False, None, True  # the __init__ of Gymnasium 0.29 sets them

    def __init__(self, env, num_envs=1, *, options=None, seed=None, ports=None, threads=None,
                 autoreset_mode=AutoresetMode.NEXT_STEP, copy=True, agents=None, render_mode=None):
        if int(num_envs) < 1:
            raise ConfigError(f"num_envs={num_envs}: must be at least 1")
        if agents not in (None, "rows"):
            raise ConfigError(f"agents={agents!r}: expected None or \"rows\"")
        if render_mode is not None:
            raise ConfigError(f"render_mode={render_mode!r}: environments are drawn by `dtrain render`, not here")
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        worlds = Worlds(env, int(num_envs), options, min(int(threads or cores), int(num_envs)))
        about = worlds.about
        if about["agents"] > 1 and agents is None:
            raise ConfigError(f"{about['id']} has {about['agents']} agents with these options: use "
                              "dtrain.parallel_env, or agents=\"rows\" for one environment per agent")
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.about, self.num_worlds, self.num_envs = about, worlds.n, worlds.n * about["agents"]
        self._worlds, self._copy, self._first_seed, self._is_fresh = worlds, copy, seed, True
        self._arrays = Arrays(worlds)
        self._ports = [p["name"] for p in select(about, ports, about["agents"] > 1)]
        self.single_observation_space = observation_space(select(about, ports, about["agents"] > 1), about)
        self.single_action_space = action_space(about)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._ended = np.zeros(self.num_worlds, np.bool_)

    @property
    def arrays(self):
        """The memory of the instances as NumPy arrays [num_worlds, agents, ...], without a copy; they exchange with
        other libraries by DLPack (torch.from_dlpack). They stay valid after close."""
        return self._open()

    def reset(self, *, seed=None, options=None):
        arrays = self._open()
        mask = (options or {}).get("reset_mask")
        if mask is not None:
            mask = self._world_mask(mask)
        if seed is None and self._is_fresh:
            seed = self._first_seed if self._first_seed is not None else int(np.random.SeedSequence().entropy % 2**62)
        if isinstance(seed, (int, np.integer)):
            self._np_random, self._np_random_seed = np_random(int(seed))
            seed = [int(seed) + i for i in range(self.num_worlds)]
        if seed is not None:
            if len(seed) != self.num_worlds:
                raise ConfigError(f"{len(seed)} seeds for {self.num_worlds} instances")
            if any(s is not None and s < 0 for s in seed):
                raise ConfigError("a seed is negative")
            seed = [int(self.np_random.integers(2**62)) if s is None else int(s) % 2**64 for s in seed]
        self._worlds.reset(mask, seed)
        self._is_fresh = False
        self._ended[slice(None) if mask is None else mask] = False
        return self._observations(), self._infos(arrays)

    def step(self, actions):
        arrays = self._open()
        if self._is_fresh:
            raise Error("step before the first reset")
        if self.autoreset_mode == AutoresetMode.DISABLED and self._ended.any():
            raise Error(f"instances {np.flatnonzero(self._ended).tolist()} have ended: reset them first by "
                        "reset(options={\"reset_mask\": mask})")
        arrays.set_actions(actions, (self.num_envs,))
        self._worlds.step()
        reward = arrays.reward.astype(np.float64).reshape(-1)
        terminated, truncated = arrays.terminated.reshape(-1).copy(), arrays.truncated.reshape(-1).copy()
        if self.about["agents"] == 1:
            self._worlds.over |= terminated | truncated
        self._ended[:] = self._worlds.over
        # a world may end while nobody acts in it: what follows is another episode all the same
        truncated |= np.repeat(self._ended, self.about["agents"]) & ~terminated
        infos = self._infos(arrays, self._ended)
        observations = self._observations()
        if self.autoreset_mode == AutoresetMode.SAME_STEP and self._ended.any():
            rows = np.repeat(self._ended, self.about["agents"])
            infos = {"final_obs": self._object_rows(observations, rows), "_final_obs": rows, "final_info": infos,
                     "_final_info": rows}
            self._worlds.reset(self._ended)
            self._ended[:] = False
            infos.update(self._infos(arrays))
            observations = self._observations()
        return observations, reward, terminated, truncated, infos

    def close_extras(self, **kwargs):
        self._worlds = self._arrays = None

    # ---- parts --------------------------------------------------------------------------------------------------

    def _open(self):
        if self._arrays is None:
            raise Error("the environment is closed")
        return self._arrays

    def _world_mask(self, mask):
        mask = np.asarray(mask)
        if mask.dtype != np.bool_ or mask.shape != (self.num_envs,) or not mask.any():
            raise ConfigError(f"reset_mask: expected {self.num_envs} bools, at least one of them True")
        worlds = mask.reshape(self.num_worlds, -1)
        if (worlds != worlds[:, :1]).any():
            raise ConfigError("reset_mask: the agents of an instance are reset together")
        return worlds[:, 0]

    def _rows(self, array):
        out = array[:, 0] if self.about["agents"] == 1 else array.reshape(self.num_envs, *array.shape[2:])
        return out.copy() if self._copy and out.base is not None else out

    def _observations(self):
        if not isinstance(self.single_observation_space, gymnasium.spaces.Dict):
            return self._rows(self._arrays.obs[self._ports[0]])
        out = {}
        for name, space in self.single_observation_space.spaces.items():
            array = self._arrays.size if name == "sizes" else self._arrays.obs[name]
            is_world = array.shape[1:] == space.shape
            out[name] = (array.copy() if self._copy else array) if is_world else self._rows(array)
        return out

    def _object_rows(self, observations, rows):
        out = np.full(self.num_envs, None, object)
        for i in np.flatnonzero(rows):
            out[i] = ({k: v[i].copy() for k, v in observations.items()} if isinstance(observations, dict)
                      else observations[i].copy())
        return out

    def _infos(self, arrays, ended=None):
        every, infos = np.ones(self.num_envs, np.bool_), {}
        if arrays.mask.shape[-1]:
            infos.update(action_mask=arrays.mask.reshape(self.num_envs, -1).copy(), _action_mask=every)
        if arrays.cost.shape[-1]:
            infos.update(cost=arrays.cost.reshape(self.num_envs, -1).copy(), _cost=every)
        if self.about["agents"] > 1:
            infos.update(alive=arrays.alive.reshape(-1).copy(), _alive=every)
        if ended is not None and ended.any() and self.about["metrics"]:
            rows = np.repeat(ended, self.about["agents"])
            values = np.repeat(arrays.metric, self.about["agents"], axis=0)
            metrics = {}
            for k, name in enumerate(self.about["metrics"]):
                metrics.update({name: np.where(rows, values[:, k], 0.0), "_" + name: rows})
            infos.update(metrics=metrics, _metrics=rows)
        return infos


class Env(gymnasium.Env):
    """One instance; see VectorEnv for env, options and ports."""

    metadata = {"render_modes": []}

    def __init__(self, env, *, options=None, seed=None, ports=None, render_mode=None):
        self._vector = VectorEnv(env, 1, options=options, seed=seed, ports=ports, threads=1, render_mode=render_mode,
                                 autoreset_mode=AutoresetMode.DISABLED)
        self.about = self._vector.about
        self.observation_space = self._vector.single_observation_space
        self.action_space = self._vector.single_action_space

    @staticmethod
    def _first(value):
        if isinstance(value, dict):
            return {k: Env._first(v) for k, v in value.items() if not k.startswith("_")}
        return value[0]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        observations, infos = self._vector.reset(seed=seed)
        return self._first(observations), self._first(infos)

    def step(self, action):
        parts = action if isinstance(action, tuple) else (action,)
        batched = tuple(np.asarray(p)[None] for p in parts)
        observations, reward, terminated, truncated, infos = self._vector.step(batched if len(batched) > 1 else batched[0])
        return (self._first(observations), float(reward[0]), bool(terminated[0]), bool(truncated[0]),
                self._first(infos))

    def close(self):
        self._vector.close()


def make(env, **options):
    """One instance of an environment of dtrain: Env."""
    return Env(env, **options)


def make_vec(env, num_envs=1, **options):
    """num_envs instances of an environment of dtrain: VectorEnv."""
    return VectorEnv(env, num_envs, **options)
