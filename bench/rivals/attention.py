# SPDX-License-Identifier: Apache-2.0
"""One decode step of attention over sequences of different lengths, by PyTorch, Triton and FlashInfer, for serve.py.

Keys: law, length, sequences, seed as in workload_ragged, or trace=FILE with a length a line; heads, kv_heads, lengths. Numbers
are float16, 128 a head. README.md says what each rival does. Each result is compared with float sums, sequence by sequence."""
import inspect

import torch
import torch._dynamo
import torch.nn.attention
import torch.nn.functional as F

import gpu, laws

DIM = 128
PAGE = 16
kept = {}  # keys and values, which jobs of one shape share


def numbers(*shape):
    if shape not in kept:
        kept[shape] = torch.empty(shape, device='cuda', dtype=torch.float16).uniform_(-0.5, 0.5)
    return kept[shape]


class Attention:
    on_host = False

    def __init__(self, how, o):
        self.heads, self.kv = int(o.pop('heads', 32)), int(o.pop('kv_heads', 8))
        self.law, self.mean, self.seed = o.pop('law', 'trace'), int(o.pop('length', 2048)), int(o.pop('seed', 1))
        self.trace = [int(x) for x in open(o.pop('trace')) if x.strip()] if self.law == 'trace' else None
        self.n = len(self.trace) if self.trace else int(o.pop('sequences', 64))
        self.group = self.heads // self.kv
        self.told = torch.zeros(self.n, dtype=torch.int32, pin_memory=True)
        self.count = torch.zeros(self.n, dtype=torch.int32, device='cuda')
        self.draw(self.seed)
        # What any lengths of this law need, so that shapes and graphs do not depend on the lengths.
        uniform = self.law == 'uniform' and o.get('lengths') == 'redrawn'
        self.longest = 2 * self.mean if uniform else max(self.length)
        self.most_tokens = self.n * self.longest if uniform else sum(self.length)
        self.room = -(-self.longest // 128) * 128  # tokens of a sequence in padded memory
        # Queries are larger than keys, so that weights differ and a token that is left out shows.
        self.q = torch.empty(self.n, self.heads, DIM, device='cuda', dtype=torch.float16).uniform_(-8, 8)
        RIVALS[how](self)

    def draw(self, seed):
        self.length = self.trace or laws.lengths(self.law, self.mean, self.n, seed)
        self.expected = None
        self.told[:] = torch.tensor(self.length, dtype=torch.int32)
        self.count.copy_(self.told, non_blocking=True)

    def bytes(self):
        return sum(self.length) * self.kv * DIM * 4

    # ---- where keys and values are ----

    def padded(self):
        k, v = numbers(2, self.n, self.kv, self.room, DIM)
        self.sequence = lambda i: (k[i, :, :self.length[i]], v[i, :, :self.length[i]])
        return k, v

    def packed(self):
        k, v = numbers(2, self.most_tokens, self.kv, DIM)

        def sequence(i):
            at = sum(self.length[:i])
            return tuple(x[at:at + self.length[i]].transpose(0, 1) for x in (k, v))
        self.sequence = sequence
        return k, v

    # ---- the check ----

    def expect(self):
        q = self.q.view(self.n, self.kv, self.group, DIM).float()
        out = []
        for i in range(self.n):
            k, v = (x.float() for x in self.sequence(i))
            out.append((q[i] @ k.transpose(1, 2) / DIM**0.5).softmax(-1) @ v)
        return torch.stack(out).view(self.n, self.heads, DIM)

    def wrong(self, out):
        if self.expected is None:
            self.expected = self.expect()
        if out.shape[0] == self.n * self.group:  # the queries of a head of keys as tokens
            out = out.view(self.n, self.group, self.kv, DIM).transpose(1, 2)
        off = (out.reshape(self.n, self.heads, DIM).float() - self.expected).abs().max().item()
        return None if off < 1e-3 else f'a result is off by {off}'


def by_rows(a):
    """Returns the queries as `group` tokens of a sequence with a head for each head of keys: no head is repeated, and results
    are the same, as no token is masked from another."""
    return a.q.view(a.n, a.kv, a.group, DIM)


def padded(a, backend=None):
    k, v = a.padded()
    whole = a.law == 'equal' and a.room == a.longest  # then there is nothing to mask
    mask = None if whole else torch.zeros(a.n, 1, 1, a.room, device='cuda', dtype=torch.float16)
    slot = torch.arange(a.room, device='cuda')
    none, out = (torch.tensor(x, device='cuda', dtype=torch.float16) for x in (0, float('-inf')))

    def plan():
        if mask is not None:
            mask[:, 0, 0] = torch.where(slot < a.count[:, None], none, out)

    def way(q, gqa):
        def run():
            if backend is None:
                return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=gqa)
            with torch.nn.attention.sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=gqa)
        return run
    a.plan = plan
    plan()
    a.run = gpu.fastest([way(by_rows(a), False), way(a.q[:, :, None], True)])


def cudnn(a):
    padded(a, torch.nn.attention.SDPBackend.CUDNN_ATTENTION)


def flex(a):
    from torch.nn.attention.flex_attention import BlockMask, flex_attention
    torch._dynamo.config.recompile_limit = 256  # each job has a shape of its own
    k, v = a.padded()
    size, count, q = 128, a.count, a.q[:, :, None]
    index = torch.arange(a.room // size, device='cuda', dtype=torch.int32)
    row = lambda: torch.zeros(a.n, 1, 1, device='cuda', dtype=torch.int32)
    whole, part = row(), row()
    order = index.expand(a.n, 1, 1, -1).contiguous()
    part_at = order.clone()
    blocks = BlockMask.from_kv_blocks(part, part_at, whole, order, BLOCK_SIZE=(size, size),
                                      mask_mod=lambda b, h, i, j: j < count[b], seq_lengths=(1, a.room), compute_q_blocks=False)

    def plan():
        whole[:, 0, 0] = count // size
        part[:, 0, 0] = (count % size > 0).to(torch.int32)
        part_at[:, 0, 0, 0] = (count // size).clamp(max=a.room // size - 1)
    compiled = torch.compile(flex_attention, dynamic=False, mode='max-autotune-no-cudagraphs')
    a.plan, a.run = plan, lambda: compiled(q, k, v, block_mask=blocks, enable_gqa=True)


def offsets(a, kind):
    """Returns the first token of each sequence in packed memory, and a plan that computes them."""
    first = torch.zeros(a.n + 1, device='cuda', dtype=kind)

    def plan():
        torch.cumsum(a.count, 0, dtype=kind, out=first[1:])
    return first, plan


def nested(a):
    k, v = a.packed()
    first, a.plan = offsets(a, torch.int64)
    nest = lambda x, at, most: torch.nested.nested_tensor_from_jagged(x, offsets=at, min_seqlen=1, max_seqlen=most).transpose(1, 2)
    rows = by_rows(a).transpose(1, 2).reshape(a.n * a.group, a.kv, DIM)
    a.plan()
    q = nest(rows, torch.arange(a.n + 1, device='cuda') * a.group, a.group)
    keys, values = nest(k, first, a.longest), nest(v, first, a.longest)
    a.run = lambda: F.scaled_dot_product_attention(q, keys, values).transpose(1, 2).values()


def varlen(a, impl=None):
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        raise RuntimeError(f'PyTorch {torch.__version__} has no torch.nn.attention.varlen')
    if impl:
        torch.nn.attention.activate_flash_attention_impl(impl)
    k, v = a.packed()
    first, a.plan = offsets(a, torch.int32)
    gqa = {'enable_gqa': True} if 'enable_gqa' in inspect.signature(varlen_attn).parameters else {}

    def way(q, each, more):
        at = torch.arange(a.n + 1, device='cuda', dtype=torch.int32) * each
        return lambda: varlen_attn(q, k, v, at, first, each, a.longest, **more)
    a.plan()
    rows = by_rows(a).transpose(1, 2).reshape(a.n * a.group, a.kv, DIM)
    a.run = gpu.fastest([way(a.q, 1, gqa), way(rows, a.group, {})])


def fa3(a):
    """Never run: no machine of this project has FlashAttention-3."""
    varlen(a, 'FA3')


def triton(a):
    import split as s
    k, v = a.padded()
    out = torch.empty(a.n, a.heads, DIM, device='cuda', dtype=torch.float16)
    wide = 1 << (a.n - 1).bit_length()

    def way(split, tile, warps, stages):
        most = a.most_tokens // split + a.n
        if a.most_tokens == sum(a.length):  # the lengths of other samples are a permutation of these
            most = sum(-(-x // split) for x in a.length)
        words = lambda n: torch.zeros(n, device='cuda', dtype=torch.int32)
        order, first, last, entries = words(most), words(a.n), words(a.n), words(1)
        part = torch.empty(most * a.heads, DIM, device='cuda')
        peak, total = torch.empty(2, most * a.heads, device='cuda')

        def plan():
            s.plan_kernel[(a.n,)](a.count, order, first, last, entries, a.n, wide, split, num_warps=4)

        def run():
            s.split_kernel[(most * a.kv,)](a.q, k, v, a.count, order, entries, part, peak, total, a.room, 1.44269504 / DIM**0.5,
                                           a.kv, a.group, DIM, split, tile, num_warps=warps, num_stages=stages)
            s.combine_kernel[(a.n, a.heads)](a.count, first, last, part, peak, total, out, a.kv, a.group, DIM, split, 16)
            return out
        plan()
        run.plan = plan
        return run
    a.run = gpu.fastest([way(*c) for c in [(256, 64, 4, 3), (512, 64, 4, 3), (512, 128, 4, 2), (1024, 64, 4, 3), (1024, 64, 4, 4),
                                           (1024, 128, 8, 3), (1024, 32, 4, 4), (2048, 64, 4, 3)]])
    a.plan = a.run.plan


def flashinfer(a):
    """Never run: no machine of this project has FlashInfer. Its plan is made on the host, so it is not in the graph."""
    from flashinfer import BatchDecodeWithPagedKVCacheWrapper as Wrapper
    pages = -(-a.most_tokens // PAGE) + a.n
    memory = numbers(pages, 2, PAGE, a.kv, DIM)
    words = lambda n: torch.zeros(n, device='cuda', dtype=torch.int32)
    shuffled = torch.randperm(pages, dtype=torch.int32)
    wrapper = Wrapper(torch.empty(256 << 20, dtype=torch.uint8, device='cuda'), 'NHD', use_cuda_graph=True, use_tensor_cores=True,
                      paged_kv_indptr_buffer=words(a.n + 1), paged_kv_indices_buffer=words(pages),
                      paged_kv_last_page_len_buffer=words(a.n))

    def first_pages():
        each = [-(-x // PAGE) for x in a.length]
        return [sum(each[:i]) for i in range(a.n + 1)]

    def plan():
        at = first_pages()
        last = torch.tensor([(x - 1) % PAGE + 1 for x in a.length], dtype=torch.int32)
        wrapper.plan(torch.tensor(at, dtype=torch.int32), shuffled[:at[-1]].cuda(), last, a.heads, a.kv, DIM, PAGE,
                     q_data_type=torch.float16, kv_data_type=torch.float16)

    def sequence(i):
        at = first_pages()
        of = memory[shuffled[at[i]:at[i + 1]].long().cuda()]
        return tuple(of[:, part].reshape(-1, a.kv, DIM)[:a.length[i]].transpose(0, 1) for part in (0, 1))
    a.on_host, a.sequence, a.plan, a.run = True, sequence, plan, lambda: wrapper.run(a.q, memory)


RIVALS = {f.__name__: f for f in (padded, cudnn, flex, nested, varlen, fa3, triton, flashinfer)}


def make(how, options):
    if how not in RIVALS:
        raise ValueError(f'attention.{how}: {" ".join(RIVALS)}')
    return gpu.job(Attention(how, options), options)
