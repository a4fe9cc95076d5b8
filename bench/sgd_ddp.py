# SPDX-License-Identifier: Apache-2.0
"""Runs the network of workload sgd in PyTorch, with the same batch. Prints `step_ns N`, the time of a rank's step.
sgd_ddp.py RANKS INPUTS WIDTH LAYERS CLASSES BATCH STEPS [graph|graph-tf32]
By default DistributedDataParallel does the steps, and N is the median. With graph, a CUDA graph has the whole step: forward,
backward, an allreduce of all gradients by NCCL, and the update. N is then the mean of steps that follow each other without a
pause. With graph-tf32, matrices are multiplied in TF32. Each rank uses a GPU if there are enough GPUs; a graph needs them."""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

RATE = 0.1


def timed_steps(model, samples, labels, steps, gpu):
    descent = torch.optim.SGD(model.parameters(), lr=RATE)
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
    return statistics.median(took)


def timed_graph(model, samples, labels, steps, ranks):
    """All weights are in one tensor, and all gradients in another: one allreduce and one update serve them all."""
    parameters = list(model.parameters())
    weights = torch.cat([p.detach().reshape(-1) for p in parameters])
    gradients = torch.zeros_like(weights)
    at = 0
    for p in parameters:
        p.data = weights[at:at + p.numel()].view_as(p)
        p.grad = gradients[at:at + p.numel()].view_as(p)
        at += p.numel()

    def step():
        gradients.zero_()
        torch.nn.functional.cross_entropy(model(samples), labels).backward()
        dist.all_reduce(gradients)
        weights.add_(gradients, alpha=-RATE / ranks)

    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):  # a capture must not be the first call of a library
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    took = 0
    for n in (20, max(steps, 200)):  # the first steps warm up
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        begin = time.perf_counter_ns()
        for _ in range(n):
            graph.replay()
        torch.cuda.synchronize()
        took = (time.perf_counter_ns() - begin) / n
    return took


def rank(me, ranks, inputs, width, layers, classes, batch, steps, how):
    gpu = torch.cuda.is_available() and torch.cuda.device_count() >= ranks
    device = torch.device("cuda", me) if gpu else torch.device("cpu")
    torch.set_num_threads(1)
    if gpu:
        torch.cuda.set_device(me)
    if how and not gpu:
        sys.exit(f"{how} needs {ranks} GPUs")
    torch.backends.cuda.matmul.allow_tf32 = how == "graph-tf32"
    dist.init_process_group("nccl" if gpu else "gloo", rank=me, world_size=ranks)
    torch.manual_seed(1)
    sizes = [inputs] + [width] * layers + [classes]
    parts = []
    for a, b in zip(sizes, sizes[1:]):
        parts += [torch.nn.Linear(a, b), torch.nn.ReLU()]
    model = torch.nn.Sequential(*parts[:-1]).to(device)
    samples, labels = torch.randn(batch, inputs, device=device), torch.randint(classes, (batch,), device=device)
    if how:
        took = timed_graph(model, samples, labels, steps, ranks)
    else:
        model = DistributedDataParallel(model, device_ids=[me] if gpu else None)
        took = timed_steps(model, samples, labels, steps, gpu)
    if me == 0:
        print("step_ns", took, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29541")
    numbers, how_ = [int(a) for a in sys.argv[1:8]], (sys.argv[8] if len(sys.argv) > 8 else "")
    mp.spawn(rank, args=(*numbers, how_), nprocs=numbers[0])
