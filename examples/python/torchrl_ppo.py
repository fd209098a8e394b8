#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PPO of TorchRL drives the automated vehicle of env_traffic.

    pip install dtrain-*.whl torchrl
    python3 torchrl_ppo.py [STEPS]
"""
import sys

import dtrain
import torch
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, ReplayBuffer, SamplerWithoutReplacement
from torchrl.envs import Compose, DoubleToFloat, GymWrapper, RewardSum, TransformedEnv, VecNormV2
from torchrl.modules import MLP, NormalParamExtractor, ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.trainers.algorithms import PPOTrainer

BATCH = 2048
steps = int(sys.argv[1]) if len(sys.argv) > 1 else 25 * BATCH
torch.manual_seed(1)
vehicle = GymWrapper(dtrain.make("env_traffic", ports=["ego"], seed=1))
env = TransformedEnv(vehicle, Compose(DoubleToFloat(), RewardSum(), VecNormV2(in_keys=["observation"])))
n = env.observation_spec["observation"].shape[-1]
net = torch.nn.Sequential(MLP(n, 2, num_cells=[64, 64], activation_class=torch.nn.Tanh), NormalParamExtractor())
actor = ProbabilisticActor(
    TensorDictModule(net, ["observation"], ["loc", "scale"]), in_keys=["loc", "scale"], spec=env.action_spec,
    distribution_class=TanhNormal, return_log_prob=True,
    distribution_kwargs={"low": env.action_spec.space.low, "high": env.action_spec.space.high})
critic = ValueOperator(MLP(n, 1, num_cells=[64, 64], activation_class=torch.nn.Tanh), in_keys=["observation"])
loss = ClipPPOLoss(actor, critic, entropy_coeff=0.0)
trainer = PPOTrainer(
    collector=Collector(env, actor, frames_per_batch=BATCH, total_frames=steps), total_frames=steps, frame_skip=1,
    loss_module=loss, optimizer=torch.optim.Adam(loss.parameters(), 3e-4), optim_steps_per_batch=BATCH // 64,
    replay_buffer=ReplayBuffer(storage=LazyTensorStorage(BATCH), sampler=SamplerWithoutReplacement(), batch_size=64),
    clip_norm=0.5, progress_bar=False, enable_logging=False)
returns = []


def record(batch):
    after = batch["next"]
    returns.append(after["episode_reward"][after["done"]].mean().item())
    print(f"return {returns[-1]:.1f} of the episodes that ended in batch {len(returns)}", flush=True)
    return batch


trainer.register_op("batch_process", record)
trainer.train()
