# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel of a small network, whose gradients are averaged by gpuloom. Prints steps/s and the last loss.

    torchrun --nproc-per-node 2 ddp.py [--hook gpuloom|default] [--conf FILE] [--width 1024] [--steps 200]

With GPUs each rank has one, else all ranks use the CPU. The conf of --conf replaces the one below, so that

    gpuloom compare exec.ini --vary workload.exec.command='"torchrun ... --hook gpuloom","torchrun ... --hook default"'

judges two variants. docs/embedding.md has results of two GPUs."""
import argparse
import contextlib
import os
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


def main():
    words = argparse.ArgumentParser()
    words.add_argument("--hook", choices=["gpuloom", "default"], default="gpuloom")
    words.add_argument("--conf")
    words.add_argument("--width", type=int, default=1024)
    words.add_argument("--layers", type=int, default=4)
    words.add_argument("--batch", type=int, default=64)
    words.add_argument("--steps", type=int, default=200)
    given = words.parse_args()
    local, gpu = int(os.environ["LOCAL_RANK"]), torch.cuda.is_available()
    device = torch.device("cuda", local) if gpu else torch.device("cpu")
    if gpu:
        torch.cuda.set_device(local)
    dist.init_process_group("nccl" if gpu else "gloo")
    torch.manual_seed(1)
    parts = []
    for _ in range(given.layers):
        parts += [torch.nn.Linear(given.width, given.width), torch.nn.ReLU()]
    model = DistributedDataParallel(torch.nn.Sequential(*parts, torch.nn.Linear(given.width, 10)).to(device),
                                    device_ids=[local] if gpu else None)
    torch.manual_seed(dist.get_rank())  # each rank has samples of its own
    samples, labels = torch.randn(given.batch, given.width, device=device), torch.randint(10, (given.batch,), device=device)
    descent = torch.optim.SGD(model.parameters(), lr=0.05)
    options = {"run.devices": "cuda:0", "transport.use": "p2p", "device.gpu.gpu": local} if gpu else \
        {"run.devices": "cpu:0", "transport.use": "host"}
    with contextlib.ExitStack() as opened:
        if given.hook == "gpuloom":
            p = opened.enter_context(loom.policy(*([given.conf] if given.conf else []),
                                                 text=None if given.conf else CONF, set=options))
            model.register_comm_hook(p.comm, loom.allreduce_hook)
        for step in range(given.steps + 20):
            if step == 20:  # the first steps are a warm-up
                if gpu:
                    torch.cuda.synchronize()
                begin = time.perf_counter()
            descent.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(samples), labels)
            loss.backward()
            descent.step()
        if gpu:
            torch.cuda.synchronize()
        took = time.perf_counter() - begin
        if given.hook == "gpuloom":
            p.comm.check()
        if dist.get_rank() == 0:
            print("steps_per_s %.2f" % (given.steps / took))
            print("loss %.6f" % loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
