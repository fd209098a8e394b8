# SPDX-License-Identifier: Apache-2.0
"""Trainings and policies through the Python package; runs in an empty folder."""

import os

import numpy as np

import dtrain

SMALL = {"env.id": "cartpole", "phase2_ppo.iterations": 12, "evaluation.seeds": [1], "evaluation.episodes": 1,
         "evaluation.baselines": "", "training.eval_interval": 0, "report.enabled": False,
         "metrics.tensorboard": False}


def raises(kind, call, *texts):
    try:
        call()
    except kind as e:
        assert all(t in str(e) for t in texts), e
    else:
        raise AssertionError(f"no {kind.__name__}")


rows = []
run = dtrain.run(plugin="phase2_ppo", options=SMALL, run_dir="one", progress=rows.append, arguments=["--threads", 1])
metrics = run.metrics()
assert len(rows) == len(metrics["step"]) == len(run.rows()) > 0
assert metrics["loss"].dtype == np.float64 and metrics["phase"][0] == "phase2_ppo"
weights = run.weights()
assert weights["controller.policy.0.w"].shape == (64, 4) and weights["controller.policy.0.w"].dtype == np.float32

# the exported policy is what its weights are
policy = dtrain.Policy.load(run.export("policy.safetensors"))
assert policy.environment == "env_cartpole" and policy.choices == [2] and policy.ports["obs"][0] == (4,)
env = dtrain.make("env_cartpole")
o, infos = env.reset(seed=3)
steps = 0
while True:
    a = policy.act(o, mask=infos["action_mask"])
    assert a == policy.output("logits").argmax() and env.action_space.contains(a)
    o, _, terminated, truncated, infos = env.step(a)
    steps += 1
    if terminated or truncated:
        break
assert steps > 40, steps  # a random one has about 20
assert policy.act({"obs": o, "other": 0}) == policy.act(o) == policy.act(o[None])[0]
policy.reset()
raises(dtrain.ConfigError, lambda: policy.act(o[:3]), "shape")
raises(dtrain.ConfigError, lambda: policy.act(np.array(["a"] * 4)), "float32")
raises(dtrain.ConfigError, lambda: policy.act({"other": o}), "obs")
raises(dtrain.ConfigError, lambda: policy.act(np.zeros((5, 4))), "1")
raises(dtrain.ConfigError, lambda: policy.act(o, mask=[1]), "mask")
raises(dtrain.NotFound, lambda: dtrain.Policy.load("nothing.safetensors"), "nothing")
with open("damaged", "wb") as f:
    f.write(b"no policy")
raises(dtrain.Error, lambda: dtrain.Policy.load("damaged"))
raises(dtrain.Error, lambda: dtrain.load_weights("damaged"), "damaged")

# weights go out and back
dtrain.save_weights({k: v for k, v in weights.items()}, "own.safetensors")
again = dtrain.load_weights("own.safetensors")
assert set(again) == set(weights) and all(np.array_equal(again[k], weights[k]) for k in weights)
still = {**SMALL, "training.learning_rate": 1e-12, "training.scheduler": "constant"}
second = dtrain.run(plugin="phase2_ppo", options=still, run_dir="two", init_from="own.safetensors",
                    arguments=["--max-steps", "1"])
assert all(np.allclose(second.weights()[k], weights[k], atol=1e-6) for k in weights)
dtrain.run(plugin="phase2_ppo", options=still, run_dir="two", resume=True, arguments=["--max-steps", "40"])
assert len(second.checkpoints()) >= 1

# a graph of vehicles: rows in use are those of the observation
cars = {**SMALL, "env.id": "traffic", "env_traffic.episode_s": 20, "phase2_ppo.iterations": 1}
traffic = dtrain.run(plugin="phase2_ppo", options=cars, run_dir="cars")
policy = dtrain.Policy.load(traffic.export("cars.safetensors"))
env = dtrain.make("env_traffic", options={"episode_s": 20})
o, _ = env.reset(seed=1)
for _ in range(5):
    a = policy.act(o)
    assert a.shape == (1,) and env.action_space.contains(a)
    o, *_ = env.step(a)

# errors
raises(dtrain.ConfigError, lambda: dtrain.run(plugin="phase2_ppo", options={"env.idd": 1}, run_dir="x"), "idd")
raises(dtrain.ConfigError, lambda: dtrain.run("nothing.cfg", run_dir="x"), "nothing.cfg")
raises(dtrain.NotFound, lambda: dtrain.load_run("nothing"), "nothing")
assert not os.path.exists("x/checkpoints")


class Stop(Exception):
    pass


def stop(row):
    raise Stop


raises(Stop, lambda: dtrain.run(plugin="phase2_ppo", options={**SMALL, "phase2_ppo.iterations": 100000}, run_dir="three",
                                progress=stop))
assert dtrain.load_run("three").weights()  # saved when it was interrupted
