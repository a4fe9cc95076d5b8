# SPDX-License-Identifier: Apache-2.0
"""A decode step of a language model that is divided among GPUs (tensor parallel), in a CUDA graph. Prints tokens/s.

    torchrun --nproc-per-node 2 decode.py [--model 1B|8B] [--by gpuloom nccl windows] [--batch 1] [--context 1024]

The shapes are those of Llama 3 with 1 and 8 billion parameters; the weights are random. Each rank has a part of the heads
and of the hidden units, so a layer has two allreduces of batch * width numbers in bfloat16. `windows` is NCCL on memory of
ncclMemAlloc that is registered as a window, which its fastest kernels need. All ways take turns, and their outputs are
compared. A line `sample NAME TURN VALUE` for each turn is what bench/gpu.sh reads; the last lines are medians.
docs/embedding.md has results of two GPUs."""
import argparse
import contextlib
import os
import statistics
import time

os.environ.setdefault("NCCL_NVLS_ENABLE", "0")

import torch
import torch.distributed as dist
import torch.nn.functional as F

import gpuloom.torch as loom

CONF = """[run]
devices = cuda:0
[transport]
use = p2p
[scheduler]
use = mgws
[termination]
use = counter
"""
SHAPES = {"1B": dict(width=2048, hidden=8192, layers=16, heads=32, kv=8, head=64),
          "8B": dict(width=4096, hidden=14336, layers=32, heads=32, kv=8, head=128)}


class Layer:
    def __init__(self, s, ranks, batch, context):
        def weight(rows, columns):
            return torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16) / rows ** 0.5
        self.heads, self.kv, self.head = s["heads"] // ranks, s["kv"] // ranks, s["head"]
        self.qkv = weight(s["width"], (self.heads + 2 * self.kv) * self.head)
        self.out = weight(self.heads * self.head, s["width"])
        self.gate_up = weight(s["width"], 2 * s["hidden"] // ranks)
        self.down = weight(s["hidden"] // ranks, s["width"])
        self.keys = torch.randn(batch, self.kv, context, self.head, device="cuda", dtype=torch.bfloat16)
        self.values = torch.randn_like(self.keys)

    def step(self, x, product):
        batch = x.shape[0]
        q, k, v = (F.rms_norm(x, x.shape[-1:]) @ self.qkv).split(
            [self.heads * self.head, self.kv * self.head, self.kv * self.head], dim=-1)
        self.keys[:, :, -1], self.values[:, :, -1] = k.view(batch, self.kv, -1), v.view(batch, self.kv, -1)
        seen = F.scaled_dot_product_attention(q.view(batch, self.heads, 1, self.head), self.keys, self.values,
                                              enable_gqa=True)
        x = x + product(seen.reshape(batch, -1), self.out)
        gate, up = (F.rms_norm(x, x.shape[-1:]) @ self.gate_up).chunk(2, dim=-1)
        return x + product(F.silu(gate) * up, self.down)


def by_gpuloom(a, b):
    """Returns the sum of a @ b over all ranks, as the other ways do."""
    return loom.all_reduce(a @ b)


def by_nccl(a, b):
    part = a @ b
    dist.all_reduce(part)
    return part


def by_windows(x):
    backend = dist.group.WORLD._get_backend(x.device)
    pool = torch.cuda.MemPool(backend.mem_allocator)
    with torch.cuda.use_mem_pool(pool):
        part = torch.empty_like(x)
    backend.register_mem_pool(pool, symm=True)

    def product(a, b, pool=pool):  # the pool lives as long as the tensor
        torch.mm(a, b, out=part)
        dist.all_reduce(part)
        return part
    return product


def captured(layers, x, product):
    def step():
        y = x
        for layer in layers:
            y = layer.step(y, product)
        return y
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):  # the first steps allocate and compile, which a capture must not
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = step()
    return graph, y


def report(job, batch, took, outputs):
    for name, times in took.items():
        for turn, seconds in enumerate(times):
            print("sample %s_%s %d %.1f" % (job, name, turn, batch / seconds))
            if name != "gpuloom" and "gpuloom" in took:
                print("sample %s_to_%s %d %.4f" % (job, name, turn, seconds / took["gpuloom"][turn]))
    for name, times in took.items():
        print("%s_tokens_per_s %.1f" % (name, batch / statistics.median(times)))
        if name != "gpuloom" and "gpuloom" in took:
            a, b = outputs["gpuloom"], outputs[name]
            print("largest difference to %s %.3g of %.3g" % (name, (a - b).abs().max(), b.abs().max()))
            print("ratio to %s %.3f" % (name, statistics.median(times) / statistics.median(took["gpuloom"])))


def main():
    words = argparse.ArgumentParser()
    words.add_argument("--model", choices=SHAPES, default="1B")
    words.add_argument("--by", nargs="+", choices=["gpuloom", "nccl", "windows"], default=["gpuloom", "nccl", "windows"])
    words.add_argument("--batch", type=int, default=1)
    words.add_argument("--context", type=int, default=1024)
    words.add_argument("--steps", type=int, default=200)
    words.add_argument("--turns", type=int, default=7)
    given = words.parse_args()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    shape = SHAPES[given.model]
    layers = [Layer(shape, ranks, given.batch, given.context) for _ in range(shape["layers"])]
    torch.manual_seed(1000)  # the input is the same on all ranks
    x = torch.randn(given.batch, shape["width"], device="cuda", dtype=torch.bfloat16)

    with contextlib.ExitStack() as opened, torch.no_grad():
        made = {}
        for name in given.by:
            if name == "gpuloom":
                p = opened.enter_context(loom.policy(text=CONF, set={"device.gpu.gpu": torch.cuda.current_device()}))
            way = {"gpuloom": lambda: by_gpuloom, "nccl": lambda: by_nccl, "windows": lambda: by_windows(x)}[name]()
            made[name] = captured(layers, x, way)
        took, outputs = {name: [] for name in made}, {}
        for turn in range(given.turns + 1):  # the first turn is a warm-up
            names = list(made)
            for name in names[turn % len(names):] + names[:turn % len(names)]:
                graph, y = made[name]
                dist.barrier()
                torch.cuda.synchronize()
                begin = time.perf_counter()
                for _ in range(given.steps):
                    graph.replay()
                torch.cuda.synchronize()
                if turn:
                    took[name].append((time.perf_counter() - begin) / given.steps)
                outputs[name] = y.float().clone()
        if "gpuloom" in made:
            p.comm.check()
        if rank == 0:
            report("decode%d_%s" % (ranks, given.model), given.batch, took, outputs)
        torch.cuda.synchronize()
        # NCCL's communicator waits at its end until no graph uses it.
        del graph, y
        made.clear()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
