# SPDX-License-Identifier: Apache-2.0
"""Ids of Gymnasium, registered by importing this: gymnasium.make("dtrain.gym:dtrain/env_cartpole")."""

import glob
import os

from gymnasium.envs.registration import register, registry

from ._native import PLUGINS

for _path in sorted(glob.glob(os.path.join(PLUGINS, "env_*.so"))):
    _name = os.path.basename(_path)[:-3]
    if "dtrain/" + _name not in registry:
        register(id="dtrain/" + _name, entry_point="dtrain.envs:Env", vector_entry_point="dtrain.envs:VectorEnv",
                 kwargs={"env": _name})
