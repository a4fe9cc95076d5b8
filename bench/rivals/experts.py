# SPDX-License-Identifier: Apache-2.0
"""The two products of a layer of routed experts, and the activation between them, by PyTorch, for serve.py.

Keys: experts, tokens, top, dim, hidden, skew, seed as in workload_experts, and lengths. Numbers are bfloat16. Tokens are sorted by
expert before the clock, and their results are not summed: workload_experts does both within its clock. Each result is compared
with products of the experts one by one. bytes_per_s counts the weights of an expert with tokens once; workload_experts counts them
for each of its blocks of tokens, so `seconds` are what can be compared."""
import torch

import gpu, laws

silu = torch.nn.functional.silu


class Experts:
    on_host = False

    def __init__(self, how, o):
        number = lambda key, default: int(o.pop(key, default))
        self.experts, self.tokens, self.top = number('experts', 64), number('tokens', 256), number('top', 2)
        self.dim, self.hidden = number('dim', 1024), number('hidden', 2048)
        self.seed, self.skew = number('seed', 1), o.pop('skew', 'equal')
        self.redrawn = o.get('lengths') == 'redrawn'
        self.slots = self.tokens * self.top
        make = lambda *shape: torch.empty(shape, device='cuda', dtype=torch.bfloat16).uniform_(-0.5, 0.5)
        self.first, self.second = make(self.experts, self.dim, self.hidden), make(self.experts, self.hidden, self.dim)
        self.x = make(self.slots, self.dim) / self.dim**0.5
        self.told = torch.zeros(self.experts, dtype=torch.int32, pin_memory=True)
        self.count = torch.zeros(self.experts, dtype=torch.int32, device='cuda')
        self.ends = torch.zeros(self.experts, dtype=torch.int32, device='cuda')
        self.draw(self.seed)
        RIVALS[how](self)

    def draw(self, seed):
        self.counts = laws.counts(self.skew, self.experts, self.tokens, self.top, seed)
        self.told[:] = torch.tensor(self.counts, dtype=torch.int32)
        self.count.copy_(self.told, non_blocking=True)
        self.expected = None

    def find_ends(self):
        torch.cumsum(self.count, 0, dtype=torch.int32, out=self.ends)

    def bytes(self):
        return sum(n > 0 for n in self.counts) * self.dim * self.hidden * 4

    def wrong(self, out):
        if self.expected is None:
            self.expected = torch.cat([silu(part @ self.first[e]) @ self.second[e]
                                       for e, part in enumerate(self.x.split(self.counts)) if self.counts[e]]).float()
        off = (out.float() - self.expected).abs().max().item() / self.expected.abs().max().item()
        return None if off < 2e-2 else f'a result is off by {off} of the largest'


def grouped(e):
    product = getattr(torch.nn.functional, 'grouped_mm', None) or torch._grouped_mm
    columns = lambda w: w.transpose(-2, -1).contiguous().transpose(-2, -1)  # the same matrices in the other order of memory

    def way(first, second):
        return lambda: product(silu(product(e.x, first, offs=e.ends)), second, offs=e.ends)
    e.plan = e.find_ends
    e.plan()
    e.run = gpu.fastest([way(e.first, e.second), way(columns(e.first), columns(e.second))])


def padded(e):
    most = e.tokens if e.redrawn else max(e.counts)
    room = torch.zeros(e.experts * most, e.dim, device='cuda', dtype=torch.bfloat16)
    slot, place = torch.arange(e.slots, device='cuda'), torch.zeros(e.slots, device='cuda', dtype=torch.int64)

    def plan():
        e.find_ends()
        of = torch.searchsorted(e.ends, slot.to(torch.int32), right=True)
        place.copy_(of * most + slot - (e.ends - e.count)[of])

    def run():
        room.index_copy_(0, place, e.x)
        return (silu(room.view(e.experts, most, e.dim) @ e.first) @ e.second).view(-1, e.dim)[place]
    e.plan, e.run = plan, run
    plan()


RIVALS = {f.__name__: f for f in (grouped, padded)}


def make(how, options):
    if how not in RIVALS:
        raise ValueError(f'experts.{how}: {" ".join(RIVALS)}')
    return gpu.job(Experts(how, options), options)
