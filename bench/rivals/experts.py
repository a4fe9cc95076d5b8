#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A layer of routed experts by PyTorch, for `workload = exec`.

    bench/rivals/experts.py HOW COUNTS [DIM HIDDEN]     HOW: loop padded grouped

COUNTS is a file with the number of tokens of one expert per line. Numbers are bfloat16. Prints {"seconds": S, "bytes": B}, where S
is the median of 20 executions in a CUDA graph. The result is compared once with that of `loop`."""
import json, statistics, sys

import torch

how, counts = sys.argv[1], [int(x) for x in open(sys.argv[2]) if x.strip()]
dim, hidden = (int(x) for x in (sys.argv[3:5] or ['1024', '2048']))
experts, slots, most = len(counts), sum(counts), max(counts)
torch.manual_seed(1)
make = lambda *shape: (torch.rand(*shape, device='cuda') - 0.5).to(torch.bfloat16)
first, second, x = make(experts, dim, hidden), make(experts, hidden, dim), make(slots, dim) / dim ** 0.5
ends = torch.tensor(counts, device='cuda').cumsum(0).to(torch.int32)
silu = torch.nn.functional.silu


def loop():
    return torch.cat([silu(part @ first[e]) @ second[e] for e, part in enumerate(x.split(counts)) if counts[e]])


def padded():
    place = torch.cat([torch.arange(n, device='cuda') + e * most for e, n in enumerate(counts)])
    room = torch.zeros(experts * most, dim, device='cuda', dtype=torch.bfloat16)

    def run():
        room.index_copy_(0, place, x)
        return (silu(room.view(experts, most, dim) @ first) @ second).view(-1, dim)[place]
    return run


def grouped():
    return lambda: torch._grouped_mm(silu(torch._grouped_mm(x, first, offs=ends)), second, offs=ends)


run = {'loop': lambda: loop, 'padded': padded, 'grouped': grouped}[how]()
if not torch.allclose(run().float(), loop().float(), atol=2e-2, rtol=2e-2):
    sys.exit(f'{how}: differs')
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    run()
times = []
for turn in range(25):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    times.append(begin.elapsed_time(end) * 1e-3)
print(json.dumps({'seconds': statistics.median(times[5:]), 'bytes': sum(n > 0 for n in counts) * dim * hidden * 4}))
