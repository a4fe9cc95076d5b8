#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decode attention by PyTorch and Triton, for `workload = exec`.

    bench/rivals/attention.py HOW LENGTHS [HEADS KV_HEADS]     HOW: padded nested flex triton

LENGTHS is a file with the number of tokens of one sequence per line. Numbers are float16, with 128 per head. Prints
{"seconds": S, "bytes": B}, where S is the median of 20 executions. The result is compared once with that of `padded`."""
import json, statistics, sys

import torch
import torch.nn.functional as F

how, lengths = sys.argv[1], [int(x) for x in open(sys.argv[2]) if x.strip()]
heads, kv = (int(x) for x in (sys.argv[3:5] or ['32', '8']))
dim, batch, longest = 128, len(lengths), max(lengths)
torch.manual_seed(1)
make = lambda *shape: (torch.rand(*shape, device='cuda', dtype=torch.float16) - 0.5)
q, k, v = make(batch, heads, 1, dim), make(batch, kv, longest, dim), make(batch, kv, longest, dim)
count = torch.tensor(lengths, device='cuda')
mask = (torch.arange(longest, device='cuda')[None, :] < count[:, None])[:, None, None, :]


def padded():
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)


def nested():
    pack = lambda x: torch.nested.as_nested_tensor([x[i, :, :n].repeat_interleave(heads // kv, 0).transpose(0, 1).contiguous()
                                                    for i, n in enumerate(lengths)], layout=torch.jagged)
    one = torch.nested.as_nested_tensor([q[i].transpose(0, 1).contiguous() for i in range(batch)], layout=torch.jagged)
    a, b, c = one.transpose(1, 2), pack(k).transpose(1, 2), pack(v).transpose(1, 2)
    return lambda: F.scaled_dot_product_attention(a, b, c).transpose(1, 2)


def flex():
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    inside = lambda b, h, i, j: j < count[b]
    blocks = create_block_mask(inside, batch, None, 1, longest)
    compiled = torch.compile(flex_attention)
    return lambda: compiled(q, k, v, block_mask=blocks, enable_gqa=True)


def triton_split():
    """Runs one program for each sequence, head of keys and split of 512 tokens, and then one that combines the splits."""
    import triton
    import triton.language as tl

    @triton.jit
    def split_kernel(Q, K, V, N, PART, PEAK, SUM, longest, scale, splits, HEADS: tl.constexpr, KV: tl.constexpr,
                     G: tl.constexpr, D: tl.constexpr, SPLIT: tl.constexpr, T: tl.constexpr):
        b, h, s = tl.program_id(0), tl.program_id(1), tl.program_id(2)
        n = tl.load(N + b)
        if s * SPLIT < n:
            g, d = tl.arange(0, 16), tl.arange(0, D)
            query = tl.load(Q + (b * HEADS + h * G + g[:, None]) * D + d[None, :], mask=g[:, None] < G, other=0.)
            peak = tl.full([16], -1e30, tl.float32)
            total = tl.zeros([16], tl.float32)
            sums = tl.zeros([16, D], tl.float32)
            base = (b * KV + h).to(tl.int64) * longest * D
            for at in range(s * SPLIT, min(n, (s + 1) * SPLIT), T):
                t = at + tl.arange(0, T)
                inside = t < n
                keys = tl.load(K + base + t[:, None] * D + d[None, :], mask=inside[:, None], other=0.)
                score = tl.where(inside[None, :], tl.dot(query, tl.trans(keys)) * scale, -1e30)
                top = tl.maximum(peak, tl.max(score, 1))
                weight, by = tl.exp2(score - top[:, None]), tl.exp2(peak - top)
                values = tl.load(V + base + t[:, None] * D + d[None, :], mask=inside[:, None], other=0.)
                sums = sums * by[:, None] + tl.dot(weight.to(tl.float16), values)
                total = total * by + tl.sum(weight, 1)
                peak = top
            out = ((b * KV + h) * splits + s) * 16 + g
            tl.store(PART + out[:, None] * D + d[None, :], sums)
            tl.store(PEAK + out, peak)
            tl.store(SUM + out, total)

    size, G = 512, heads // kv
    splits = (longest + size - 1) // size
    part = torch.empty(batch, kv, splits, 16, dim, device='cuda')
    peak = torch.full((batch, kv, splits, 16), -1e30, device='cuda')
    total = torch.zeros(batch, kv, splits, 16, device='cuda')
    n = count.to(torch.int32)

    def run():
        split_kernel[(batch, kv, splits)](q, k, v, n, part, peak, total, longest, 1.44269504 / dim ** 0.5, splits,
                                          heads, kv, G, dim, size, 64)
        by = torch.exp2(peak - peak.amax(2, keepdim=True))
        above = (torch.nan_to_num(part) * by[..., None]).sum(2)
        return (above / (total * by).sum(2)[..., None])[:, :, :G].reshape(batch, heads, 1, dim).half()
    return run


run = {'padded': lambda: padded, 'nested': nested, 'flex': flex, 'triton': triton_split}[how]()
found = run()
wanted = padded()
if how == 'nested':
    found = torch.stack([x for x in found.unbind()]).reshape(batch, 1, heads, dim).transpose(1, 2)
if not torch.allclose(found, wanted, atol=2e-3):
    sys.exit(f'{how}: differs by {(found - wanted).abs().max().item()}')
graph = torch.cuda.CUDAGraph() if how in ('padded', 'triton') else None
if graph:
    with torch.cuda.graph(graph):
        run()
times = []
for turn in range(25):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    graph.replay() if graph else run()
    end.record()
    torch.cuda.synchronize()
    times.append(begin.elapsed_time(end) * 1e-3)
print(json.dumps({'seconds': statistics.median(times[5:]), 'bytes': sum(lengths) * kv * dim * 4}))
