# SPDX-License-Identifier: Apache-2.0
"""One rank of PyTorch DDP over gloo: phase 1's model, its own half of every batch, laid out before the clock starts.

Told "step K" on standard input, rank 0 answers with [seconds, loss] of each of K steps; the others follow. The loss is
the mean over ranks, as DDP's gradients are.
"""
import argparse
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from safetensors.torch import load_file

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "phase1_step"))
import batch as layout  # noqa: E402
import model  # noqa: E402


class Phase1(torch.nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.names = list(weights)
        self.p = torch.nn.ParameterList([torch.nn.Parameter(weights[n].clone()) for n in self.names])

    def forward(self, b):
        return model.loss(dict(zip(self.names, self.p)), b, True)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--folder", required=True)
    a.add_argument("--batches", type=int, required=True)
    a.add_argument("--lr", type=float, required=True)
    a.add_argument("--weight-decay", type=float, required=True)
    a.add_argument("--clip", type=float, required=True)
    a = a.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    raws = [layout.load(os.path.join(a.folder, "%03d" % i)) for i in range(a.batches * size)]
    cap = layout.capacity(raws)
    batches = [layout.prepare(raws[i * size + rank], cap, 0.2, False) for i in range(a.batches)]
    ddp = torch.nn.parallel.DistributedDataParallel(Phase1(load_file(os.path.join(a.folder, "model.safetensors"))),
                                                    gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=a.lr, weight_decay=a.weight_decay, fused=True)
    at = 0
    while True:
        want = torch.zeros(1, dtype=torch.int64)
        if rank == 0:
            line = sys.stdin.readline()
            want[0] = int(line.split()[1]) if line else 0
        dist.broadcast(want, 0)
        if want.item() == 0:
            break
        out = []
        for _ in range(int(want.item())):
            begin = time.perf_counter()
            loss = ddp(batches[at % len(batches)])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(ddp.parameters(), a.clip)
            optimizer.step()
            out.append([time.perf_counter() - begin, loss.item()])
            at += 1
        told = torch.tensor([x[1] for x in out])
        dist.all_reduce(told)
        if rank == 0:
            print(json.dumps([[x[0], float(v) / size] for x, v in zip(out, told)]), flush=True)
    dist.destroy_process_group()


main()
