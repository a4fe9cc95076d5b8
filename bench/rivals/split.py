# SPDX-License-Identifier: Apache-2.0
"""Split keys in Triton: decode attention as FlashDecoding does it, for sequences of different lengths.

A program of the first kernel reads up to SPLIT tokens of a sequence, for one head of keys and the G heads of queries that share it.
Its entry of a flat list names the sequence and the split; there are entries for splits that exist alone, whole ones first, and of the
shorter ones the longest first. One more kernel combines the splits of each sequence and head. plan_kernel makes the list on the GPU."""
import triton
import triton.language as tl


@triton.jit
def plan_kernel(N, LIST, FIRST, LAST, ENTRIES, n, B: tl.constexpr, SPLIT: tl.constexpr):
    """A program for each sequence. Its whole splits are entries FIRST, FIRST + 1 and so on; the shorter one is entry LAST."""
    b = tl.program_id(0)
    j = tl.arange(0, B)
    length = tl.load(N + j, mask=j < n, other=0)
    mine = tl.load(N + b)
    whole, rest = length // SPLIT, length % SPLIT
    my_whole, my_rest = mine // SPLIT, mine % SPLIT
    all_whole = tl.sum(whole, 0)
    first = tl.sum(tl.where((length > mine) | ((length == mine) & (j < b)), whole, 0), 0)
    longer = (rest > my_rest) | ((rest == my_rest) & (j < b))
    last = all_whole + tl.sum(tl.where(longer & (rest > 0), 1, 0), 0)
    for s in range(0, my_whole, 128):
        i = s + tl.arange(0, 128)
        tl.store(LIST + first + i, b * 65536 + i, mask=i < my_whole)
    if my_rest > 0:
        tl.store(LIST + last, b * 65536 + my_whole)
    tl.store(FIRST + b, first)
    tl.store(LAST + b, last)
    if b == 0:
        tl.store(ENTRIES, all_whole + tl.sum(tl.where(rest > 0, 1, 0), 0))


@triton.jit
def split_kernel(Q, K, V, N, LIST, ENTRIES, SUMS, PEAK, TOTAL, room, scale, KV: tl.constexpr, G: tl.constexpr, D: tl.constexpr,
                 SPLIT: tl.constexpr, T: tl.constexpr):
    at, h = tl.program_id(0) // KV, tl.program_id(0) % KV
    if at < tl.load(ENTRIES):
        entry = tl.load(LIST + at)
        b, s = entry // 65536, entry % 65536
        n = tl.load(N + b)
        g, d = tl.arange(0, 16), tl.arange(0, D)  # a product has at least 16 rows
        query = tl.load(Q + ((b * KV + h) * G + g[:, None]) * D + d[None, :], mask=g[:, None] < G, other=0.)
        peak = tl.full([16], -1e30, tl.float32)
        total = tl.zeros([16], tl.float32)
        sums = tl.zeros([16, D], tl.float32)
        base = (b * KV + h).to(tl.int64) * room * D
        for t0 in range(s * SPLIT, tl.minimum(n, (s + 1) * SPLIT), T):
            t = t0 + tl.arange(0, T)
            inside = t < n
            keys = tl.load(K + base + t[:, None] * D + d[None, :], mask=inside[:, None], other=0.)
            values = tl.load(V + base + t[:, None] * D + d[None, :], mask=inside[:, None], other=0.)
            score = tl.where(inside[None, :], tl.dot(query, tl.trans(keys)) * scale, -1e30)
            top = tl.maximum(peak, tl.max(score, 1))
            weight, by = tl.exp2(score - top[:, None]), tl.exp2(peak - top)
            sums = sums * by[:, None] + tl.dot(weight.to(tl.float16), values)
            total = total * by + tl.sum(weight, 1)
            peak = top
        row = (at * KV + h) * G + g
        tl.store(SUMS + row[:, None] * D + d[None, :], sums, mask=g[:, None] < G)
        tl.store(PEAK + row, peak, mask=g < G)
        tl.store(TOTAL + row, total, mask=g < G)


@triton.jit
def combine_kernel(N, FIRST, LAST, SUMS, PEAK, TOTAL, OUT, KV: tl.constexpr, G: tl.constexpr, D: tl.constexpr, SPLIT: tl.constexpr,
                   WIDE: tl.constexpr):
    b, h, g = tl.program_id(0), tl.program_id(1) // G, tl.program_id(1) % G
    n, first, last = tl.load(N + b), tl.load(FIRST + b), tl.load(LAST + b)
    whole = n // SPLIT
    splits = (n + SPLIT - 1) // SPLIT
    d = tl.arange(0, D)
    peak = -1e30
    below = 0.0
    above = tl.zeros([D], tl.float32)
    for s in range(0, splits, WIDE):
        i = s + tl.arange(0, WIDE)
        there = i < splits
        row = (tl.where(i < whole, first + i, last) * KV + h) * G + g
        peaks = tl.load(PEAK + row, mask=there, other=-1e30)
        top = tl.maximum(peak, tl.max(peaks, 0))
        scale, by = tl.exp2(peaks - top), tl.exp2(peak - top)
        sums = tl.load(SUMS + row[:, None] * D + d[None, :], mask=there[:, None], other=0.)
        above = above * by + tl.sum(sums * scale[:, None], 0)
        below = below * by + tl.sum(tl.load(TOTAL + row, mask=there, other=0.) * scale, 0)
        peak = top
    tl.store(OUT + (b * KV * G + h * G + g) * D + d, (above / below).to(tl.float16))
