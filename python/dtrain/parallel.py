# SPDX-License-Identifier: Apache-2.0
"""Environments of dtrain with the parallel API of PettingZoo."""

import numpy as np
from pettingzoo import ParallelEnv as Base

from ._native import ConfigError, Error, Worlds
from ._spaces import Arrays, action_space, is_per_agent, observation_space, select


class ParallelEnv(Base):
    """One instance whose agents act at the same time. env, options, ports: as of VectorEnv; observations that belong to
    the world, such as the graph of vehicles, go to every agent. An agent is the place that it has: where an agent ends
    and another takes its place, PettingZoo's rules keep the new one out until the next reset; it acts by zeros.
    Episodes without anybody who acts continue until somebody does."""

    def __init__(self, env, *, options=None, seed=None, ports=None, render_mode=None):
        if render_mode is not None:
            raise ConfigError(f"render_mode={render_mode!r}: environments are drawn by `dtrain render`, not here")
        self._worlds = Worlds(env, 1, options, 1)
        about = self.about = self._worlds.about
        self._arrays, self._seed, self._is_seeded, self._is_over = Arrays(self._worlds), seed, False, True
        self.metadata = {"name": about["id"], "render_modes": [], "is_parallelizable": True}
        self.render_mode = None
        names = [p["name"] for p in about.get("places") or []]
        if len(set(names)) != about["agents"] or "" in names:
            names = [f"agent_{k}" for k in range(about["agents"])]
        self.possible_agents, self.agents = names, []
        self._place = {name: k for k, name in enumerate(names)}
        self._chosen = select(about, ports, False)
        observed = observation_space(self._chosen, about)
        self._is_one = not hasattr(observed, "spaces")
        self.observation_spaces = {n: observation_space(self._chosen, about) for n in names}
        self.action_spaces = {n: action_space(about) for n in names}

    def observation_space(self, agent):
        return self.observation_spaces[agent]

    def action_space(self, agent):
        return self.action_spaces[agent]

    @property
    def arrays(self):
        """The memory of the instance: see VectorEnv.arrays."""
        return self._open()

    def reset(self, seed=None, options=None):
        arrays = self._open()
        seed, self._seed = (self._seed if seed is None else seed), None
        if seed is None and not self._is_seeded:
            seed = int(np.random.SeedSequence().entropy % 2**62)
        if seed is not None and seed < 0:
            raise ConfigError("the seed is negative")
        self._is_seeded = True
        self._worlds.reset(None, None if seed is None else [int(seed)])
        self._is_over, self._gone, self.agents = False, set(), []
        self._join(arrays)
        return self._observations(arrays, self.agents), self._infos(arrays, self.agents)

    def step(self, actions):
        arrays = self._open()
        if self._is_over:
            raise Error("the episode is over: reset first")
        if set(actions) != set(self.agents):
            raise ConfigError(f"actions of {sorted(actions)}, expected those of {sorted(self.agents)}")
        for name, action in actions.items():
            if not self.action_spaces[name].contains(action):
                raise ConfigError(f"the action of {name}, {action}, is not of {self.action_spaces[name]}")
        self._act(arrays, actions)
        acted = list(self.agents)
        reward = {n: float(arrays.reward[0, self._place[n]]) for n in acted}
        terminated = {n: bool(arrays.terminated[0, self._place[n]]) for n in acted}
        truncated = {n: bool(arrays.truncated[0, self._place[n]]) for n in acted}
        observations, infos = self._observations(arrays, acted), self._infos(arrays, acted)
        ended = {n for n in acted if terminated[n] or truncated[n]}
        self._gone |= ended
        self.agents = [n for n in acted if n not in ended]
        before = list(self.agents)
        self._join(arrays)
        joined = [n for n in self.agents if n not in before]
        observations.update(self._observations(arrays, joined))
        infos.update(self._infos(arrays, joined))
        for name in joined:
            reward[name], terminated[name], truncated[name] = 0.0, False, False
        return observations, reward, terminated, truncated, infos

    def close(self):
        self._worlds = self._arrays = None
        self.agents = []

    # ---- parts --------------------------------------------------------------------------------------------------

    def _open(self):
        if self._arrays is None:
            raise Error("the environment is closed")
        return self._arrays

    def _act(self, arrays, actions):
        arrays.act_i[...] = 0
        arrays.act_f[...] = np.clip(0, arrays.low, arrays.high)
        for name, action in actions.items():
            parts = action if isinstance(action, tuple) else (action,)
            k = self._place[name]
            if arrays.act_i.shape[-1]:
                arrays.act_i[0, k] = parts[0]
            if arrays.act_f.shape[-1]:
                arrays.act_f[0, k] = np.clip(parts[-1], arrays.low, arrays.high)
        arrays.act_i[~arrays.alive], arrays.act_f[~arrays.alive] = 0, 0
        self._worlds.step()
        self._is_over = bool(self._worlds.over[0])

    def _join(self, arrays):
        """Those who act now and did not before; where nobody does, steps until somebody does or the episode is over."""
        while not self._is_over:
            alive = [n for n, k in self._place.items() if arrays.alive[0, k] and n not in self._gone]
            self.agents += [n for n in alive if n not in self.agents]
            if self.agents or len(self._gone) == len(self._place):
                break
            self._act(arrays, {})
        self._is_over |= not self.agents

    def _observations(self, arrays, names):
        out = {}
        for name in names:
            k, parts = self._place[name], {}
            for p in self._chosen:
                a = arrays.obs[p["name"]]
                parts[p["name"]] = (a[0, k] if is_per_agent(p) else a[0]).copy()
            if "sizes" in getattr(self.observation_spaces[name], "spaces", {}):
                parts["sizes"] = arrays.size[0].copy()
            out[name] = next(iter(parts.values())) if self._is_one else parts
        return out

    def _infos(self, arrays, names):
        out = {}
        for name in names:
            k = self._place[name]
            info = out[name] = {}
            if arrays.mask.shape[-1]:
                info["action_mask"] = arrays.mask[0, k].copy()
            if arrays.cost.shape[-1]:
                info["cost"] = arrays.cost[0, k].copy()
            if self._is_over and self.about["metrics"]:
                info["metrics"] = dict(zip(self.about["metrics"], arrays.metric[0].tolist()))
        return out


def parallel_env(env, **options):
    """One instance of an environment of dtrain: pettingzoo.ParallelEnv."""
    return ParallelEnv(env, **options)
