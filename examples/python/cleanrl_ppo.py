#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CleanRL's ppo_continuous_action.py, unmodified, drives the automated vehicle of env_traffic.

    git clone https://github.com/vwxyzjn/cleanrl && pip install dtrain-*.whl gymnasium==0.29.1 'numpy<2' torch tensorboard tyro
    python3 cleanrl_ppo.py cleanrl/cleanrl/ppo_continuous_action.py --total-timesteps 50000 --num-envs 4 --num-steps 512

CleanRL needs Gymnasium 0.29. Its scripts create environments by id: this file registers one and starts the script.
"""
import runpy
import sys

import gymnasium

ID = "Traffic-v0"
gymnasium.register(ID, entry_point="dtrain:make", kwargs={"env": "env_traffic", "ports": ["ego"]})
if len(sys.argv) < 2:
    sys.exit("usage: cleanrl_ppo.py cleanrl/cleanrl/ppo_continuous_action.py [OPTIONS]")
sys.argv = [sys.argv[1], "--env-id", ID, *sys.argv[2:]]
runpy.run_path(sys.argv[0], run_name="__main__")
