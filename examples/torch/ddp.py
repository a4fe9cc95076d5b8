# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel of a small network, whose gradients are averaged by gpuloom. Prints steps/s and the last loss.

    torchrun --nproc-per-node 2 ddp.py [--hook gpuloom default] [--conf FILE] [--width 1024] [--steps 200] [--turns 1]

With GPUs each rank has one, else all ranks use the CPU. The conf of --conf replaces the one below. Several hooks take turns of
--steps steps, each on a model of its own. A line `sample NAME TURN VALUE` for each turn is what bench/gpu.sh reads.
docs/embedding.md has results of two GPUs."""
import argparse
import contextlib
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import gpuloom.torch as loom

CONF = """[device.cpu]
workers = 2
oversubscribe = yes
[scheduler]
use = mgws
[termination]
use = counter
"""


def network(given, device):
    torch.manual_seed(1)
    parts = []
    for _ in range(given.layers):
        parts += [torch.nn.Linear(given.width, given.width), torch.nn.ReLU()]
    return DistributedDataParallel(torch.nn.Sequential(*parts, torch.nn.Linear(given.width, 10)).to(device),
                                   device_ids=[device.index] if device.type == "cuda" else None)


def report(job, steps, took):
    for hook, times in took.items():
        for turn, seconds in enumerate(times):
            print("sample %s_%s %d %.2f" % (job, hook, turn, steps / seconds))
    for turn, (own, default) in enumerate(zip(took.get("gpuloom", []), took.get("default", []))):
        print("sample %s_to_default %d %.4f" % (job, turn, default / own))
    for hook, times in took.items():
        print("%s_steps_per_s %.2f" % (hook, steps / statistics.median(times)))


def main():
    words = argparse.ArgumentParser()
    words.add_argument("--hook", nargs="+", choices=["gpuloom", "default"], default=["gpuloom"])
    words.add_argument("--conf")
    words.add_argument("--width", type=int, default=1024)
    words.add_argument("--layers", type=int, default=4)
    words.add_argument("--batch", type=int, default=64)
    words.add_argument("--steps", type=int, default=200)
    words.add_argument("--turns", type=int, default=1)
    given = words.parse_args()
    local, gpu = int(os.environ["LOCAL_RANK"]), torch.cuda.is_available()
    device = torch.device("cuda", local) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(local)
    dist.init_process_group("nccl" if gpu else "gloo")
    torch.manual_seed(100 + dist.get_rank())  # each rank has samples of its own
    samples, labels = torch.randn(given.batch, given.width, device=device), torch.randint(10, (given.batch,), device=device)
    options = {"run.devices": "cuda:0", "transport.use": "p2p", "device.gpu.gpu": local} if gpu else \
        {"run.devices": "cpu:0", "transport.use": "host"}
    took = {hook: [] for hook in given.hook}
    with contextlib.ExitStack() as opened:
        models = {hook: network(given, device) for hook in given.hook}
        if "gpuloom" in models:
            p = opened.enter_context(loom.policy(*([given.conf] if given.conf else []),
                                                 text=None if given.conf else CONF, set=options))
            models["gpuloom"].register_comm_hook(p.comm, loom.allreduce_hook)
        descent = {hook: torch.optim.SGD(model.parameters(), lr=0.05) for hook, model in models.items()}
        loss = {}
        for turn in range(given.turns + 1):  # the first turn is a warm-up
            for hook in given.hook[::-1] if turn % 2 else given.hook:
                dist.barrier()
                if gpu:
                    torch.cuda.synchronize()
                begin = time.perf_counter()
                for _ in range(given.steps if turn else 20):
                    descent[hook].zero_grad()
                    loss[hook] = torch.nn.functional.cross_entropy(models[hook](samples), labels)
                    loss[hook].backward()
                    descent[hook].step()
                if gpu:
                    torch.cuda.synchronize()
                if turn:
                    took[hook].append(time.perf_counter() - begin)
        if "gpuloom" in models:
            p.comm.check()
        if dist.get_rank() == 0:
            report("ddp%d" % dist.get_world_size(), given.steps, took)
            for hook in given.hook:
                print("%s_loss %.6f" % (hook, loss[hook].item()))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
