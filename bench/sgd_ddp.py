# SPDX-License-Identifier: Apache-2.0
"""Runs the network of workload sgd in PyTorch's DistributedDataParallel, with the same batch. Prints `step_ns N`, the
median of a rank's steps.
sgd_ddp.py RANKS INPUTS WIDTH LAYERS CLASSES BATCH STEPS
Each rank uses a GPU if there are enough GPUs."""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def rank(me, ranks, inputs, width, layers, classes, batch, steps):
    gpu = torch.cuda.is_available() and torch.cuda.device_count() >= ranks
    device = torch.device("cuda", me) if gpu else torch.device("cpu")
    torch.set_num_threads(1)
    if gpu:
        torch.cuda.set_device(me)
    dist.init_process_group("nccl" if gpu else "gloo", rank=me, world_size=ranks)
    torch.manual_seed(1)
    sizes = [inputs] + [width] * layers + [classes]
    parts = []
    for a, b in zip(sizes, sizes[1:]):
        parts += [torch.nn.Linear(a, b), torch.nn.ReLU()]
    model = DistributedDataParallel(torch.nn.Sequential(*parts[:-1]).to(device), device_ids=[me] if gpu else None)
    descent = torch.optim.SGD(model.parameters(), lr=0.1)
    samples, labels = torch.randn(batch, inputs, device=device), torch.randint(classes, (batch,), device=device)
    took = []
    for step in range(steps + 20):
        if gpu:
            torch.cuda.synchronize()
        begin = time.perf_counter_ns()
        descent.zero_grad()
        torch.nn.functional.cross_entropy(model(samples), labels).backward()
        descent.step()
        if gpu:
            torch.cuda.synchronize()
        if step >= 20:
            took.append(time.perf_counter_ns() - begin)
    if me == 0:
        print("step_ns", statistics.median(took))
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29541")
    numbers = [int(a) for a in sys.argv[1:]]
    mp.spawn(rank, args=tuple(numbers), nprocs=numbers[0])
