#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stable-Baselines3's PPO on a problem of rl_speed.py, timed; prints JSON. Run by rl_speed.py in the peers' environment.

    sb3.py THREADS SEED '{"id": "CartPole-v1", "steps": 100000, "envs": 8, ...}'
"""
import json
import sys
import time


def main():
    threads, seed, problem = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env

    torch.set_num_threads(threads)

    class Watch(BaseCallback):
        episodes = []

        def _on_step(self):
            for info in self.locals["infos"]:
                if "episode" in info:
                    self.episodes.append([self.num_timesteps, time.time() - begin, float(info["episode"]["r"])])
            return True

    rate = problem["rate"]
    model = PPO("MlpPolicy", make_vec_env(problem["id"], problem["envs"], seed=seed), n_steps=problem["fragment"],
                batch_size=problem["minibatch"], n_epochs=problem["epochs"], gamma=problem["gamma"],
                gae_lambda=problem["lambda"], ent_coef=0.0, learning_rate=lambda left: left * rate, clip_range=0.2,
                seed=seed, device="cpu")
    watch = Watch()
    begin, cpu = time.time(), time.process_time()
    model.learn(problem["steps"], callback=watch)
    print(json.dumps({"seconds": time.time() - begin, "cpu": time.process_time() - cpu,
                      "steps": model.num_timesteps, "episodes": watch.episodes}))


if __name__ == "__main__":
    main()
