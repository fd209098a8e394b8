#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Joint steps per second of the original game in Python, random actions, beside env_snakes.

    original.py --original DIR     a checkout of jidiai/Competition_3v3snakes (MIT); needs numpy and Pillow

Its module of spaces asks for gym and uses none of it for a game: an empty one stands in for it.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import time
import types


def load(folder):
    gym, utils = types.ModuleType("gym"), types.ModuleType("gym.utils")
    gym.logger = utils.seeding = None
    gym.utils = utils
    sys.modules.update({"gym": gym, "gym.utils": utils})
    sys.path.insert(0, folder)
    import env.snakes

    with open(os.path.join(folder, "env", "config.json"), encoding="utf-8") as f:
        return env.snakes.SnakeEatBeans(json.load(f)["snakes_3v3"])


def measure(game, seconds):
    steps, begin = 0, time.process_time()
    while time.process_time() - begin < seconds:
        game.reset()
        done = False
        while not done:
            done = game.step(game.encode([random.randrange(4) for _ in range(6)]))[2]
            steps += 1
    return steps / (time.process_time() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--driver", required=True, help="bench_env_snakes")
    parser.add_argument("--original", help="a checkout of the original; without it env_snakes alone is measured")
    parser.add_argument("--seconds", type=float, default=5)
    args = parser.parse_args()
    out = subprocess.run([args.driver], check=True, capture_output=True, text=True).stdout
    print(out, end="")
    if args.original is None:
        print("no --original DIR: its speed is left out")
        return
    random.seed(1)
    rate = measure(load(args.original), args.seconds)
    ours = 1e6 * float(next(line.split()[2] for line in out.splitlines() if line.startswith("value env_snakes/rules ")))
    print(f"the original in Python: {rate:.0f} joint steps/s")
    print(f"ratio env_snakes/original {ours / rate:.0f} target 300")


if __name__ == "__main__":
    main()
