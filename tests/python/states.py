# SPDX-License-Identifier: Apache-2.0
"""Weights of other trainers continue here, and back; runs in an empty folder. PyTorch is used where it is installed."""

import numpy as np

import dtrain

rng = np.random.default_rng(1)
STILL = {"evaluation.baselines": "", "training.eval_interval": 0, "evaluation.seeds": [1], "evaluation.episodes": 1,
         "report.enabled": False, "metrics.tensorboard": False, "training.learning_rate": 1e-12,
         "training.scheduler": "constant", "phase2_ppo.iterations": 1, "phase2_ppo.train_batch": 200,
         "controller_mlp.hidden": 16}


def raises(kind, call, *texts):
    try:
        call()
    except kind as e:
        assert all(t in str(e) for t in texts), e
    else:
        raise AssertionError(f"no {kind.__name__}")


def layer(state, name, outputs, inputs):
    state[name + ".weight"] = rng.normal(size=(outputs, inputs)).astype(np.float32) * 0.5
    state[name + ".bias"] = rng.normal(size=outputs).astype(np.float32) * 0.5


def tower(state, layers, x):
    """Linear layers with tanh between them, as PyTorch computes them."""
    for k, name in enumerate(layers):
        x = state[name + ".weight"] @ x + state[name + ".bias"]
        x = np.tanh(x) if k + 1 < len(layers) else x
    return x


def check(kind, environment, head, policy, critic, inputs, actions, deviation=None):
    state = {}
    for names, outputs in ((policy, actions), (critic, 1)):
        for k, name in enumerate(names):
            layer(state, name, outputs if k + 1 == len(names) else 16, 16 if k else inputs)
    if deviation:
        state[deviation[0]] = np.full(deviation[1], -0.5, np.float32)
    weights = dtrain.from_state_dict(state)
    dtrain.save_weights(weights, kind + ".safetensors")
    run = dtrain.run(plugin="phase2_ppo", options={**STILL, "env.id": environment}, run_dir=f"{kind}-{environment}",
                     init_from=kind + ".safetensors")
    after = run.weights()
    assert set(after) == set(weights) and all(np.allclose(after[n], weights[n], atol=1e-5) for n in weights), kind
    trained = dtrain.Policy.load(run.export(kind + ".policy"))
    for _ in range(5):
        x = rng.normal(size=inputs).astype(np.float32)
        trained.act(x)
        assert np.allclose(trained.output(head).reshape(-1), tower(state, policy, x), atol=1e-4), kind
        assert np.allclose(trained.output("value").reshape(-1), tower(state, critic, x), atol=1e-4), kind
    try:
        import torch
    except ImportError:
        return
    back = dtrain.to_state_dict(weights, kind)
    assert {n: tuple(t.shape) for n, t in back.items()} == {n: a.shape for n, a in state.items()}
    assert all(torch.equal(back[n], torch.from_numpy(state[n])) for n in state)
    again = dtrain.from_state_dict(back)
    assert all(np.array_equal(again[n], weights[n]) for n in weights)


SB3 = (["mlp_extractor.policy_net.0", "mlp_extractor.policy_net.2", "action_net"],
       ["mlp_extractor.value_net.0", "mlp_extractor.value_net.2", "value_net"])
check("stable-baselines3", "cartpole", "logits", *SB3, 4, 2)
check("stable-baselines3", "pendulum", "mean", *SB3, 3, 1, ("log_std", (1,)))
check("cleanrl", "cartpole", "logits", ["actor.0", "actor.2", "actor.4"], ["critic.0", "critic.2", "critic.4"], 4, 2)
check("cleanrl-continuous", "pendulum", "mean", ["actor_mean.0", "actor_mean.2", "actor_mean.4"],
      ["critic.0", "critic.2", "critic.4"], 3, 1, ("actor_logstd", (1, 1)))

state = {}
layer(state, "body", 2, 4)
named = dtrain.from_state_dict(state, {"body.weight": "controller.head.logits.w", "body.bias": "controller.head.logits.b"})
assert named["controller.head.logits.w"].shape == (2, 4)
raises(dtrain.ConfigError, lambda: dtrain.from_state_dict(state), "body.weight", "names")
raises(dtrain.ConfigError, lambda: dtrain.from_state_dict(state, {"body.weight": "a"}), "body.bias")
odd = {"actor.0.weight": np.zeros((2, 4)), "conv.weight": np.zeros(3)}
raises(dtrain.ConfigError, lambda: dtrain.from_state_dict(odd), "conv.weight", "actor.0.bias")
