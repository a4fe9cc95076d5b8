#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dispatch and combine of routed experts over GPUs of this host, by NCCL: torch.distributed.all_to_all_single of rows, which is
grouped sends and receives. A rival of workload_dispatch in `gpuloom compare` (workload = exec).

    bench/rivals/dispatch.py RANKS [TOKENS [DIM [EXPERTS [TOP]]]]

Starts a process for each of RANKS GPUs. Each rank has TOKENS (128) tokens, rows of DIM (7168) bfloat16. A token chooses TOP (8) of
EXPERTS (64) experts, each with equal probability, and its row goes once to each rank that has one of them. Prints a JSON object with
dispatch_ns and combine_ns, the medians of 50 turns of the time on the slowest rank, and nccl_rows, the most rows that a rank got.

The clock is that of the GPU around a CUDA graph of one call, which the GPU begins after all ranks have met, and includes the start
of its kernel. Rows that go to a rank are in order beforehand, their numbers are known to both sides, and the results that
come back are not added: all of this is in the clock of workload_dispatch. The first calls are checked. A rank sends its own rows
by the same call. Multicast of NVLink is off: NCCL_NVLS_ENABLE=0."""
import json, os, random, socket, statistics, sys

TURNS = 50


def routed(ranks, tokens, experts, top):
    """Returns for each rank and target the tokens that go there."""
    draw = random.Random(1)
    to = [[[] for _ in range(ranks)] for _ in range(ranks)]
    for rank in range(ranks):
        for token in range(tokens):
            for target in {((e + 1) * ranks - 1) // experts for e in draw.sample(range(experts), top)}:
                to[rank][target].append(token)
    return to


def rank_of(rank, ranks, tokens, dim, experts, top, port):
    import torch
    import torch.distributed as dist
    os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port))
    torch.cuda.set_device(rank)
    dist.init_process_group('nccl', rank=rank, world_size=ranks, device_id=torch.device('cuda', rank))
    to = routed(ranks, tokens, experts, top)
    sends, gets = [len(t) for t in to[rank]], [len(to[r][rank]) for r in range(ranks)]

    def row_of(r, token):
        return (torch.arange(dim, device='cuda') * 7 + r * 3 + token) % 61

    def rows(pairs):
        return torch.stack([row_of(r, token) for r, token in pairs]).to(torch.bfloat16)

    out = rows([(rank, token) for t in to[rank] for token in t])
    arrived = torch.empty(sum(gets), dim, dtype=torch.bfloat16, device='cuda')
    back = torch.empty_like(out)
    calls = {'dispatch_ns': lambda: dist.all_to_all_single(arrived, out, gets, sends),
             'combine_ns': lambda: dist.all_to_all_single(back, arrived, sends, gets)}

    def meet():
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()

    graphs = {}
    for name, call in calls.items():
        for _ in range(3):
            call()
        meet()
        graphs[name] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graphs[name], capture_error_mode='thread_local'):  # NCCL has a thread that asks for events
            call()
        meet()
    if not torch.equal(arrived, rows([(r, token) for r in range(ranks) for token in to[r][rank]])) or not torch.equal(back, out):
        sys.exit('dispatch: wrong rows')
    word, found = torch.zeros(1, device='cuda'), {name: [] for name in calls}
    for turn in range(TURNS + 5):
        for name, graph in graphs.items():
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            meet()
            torch.cuda._sleep(1000000)  # longer than the host needs to queue all
            dist.all_reduce(word)  # the GPUs meet
            begin.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            took = torch.tensor([begin.elapsed_time(end)], device='cuda')
            dist.all_reduce(took, dist.ReduceOp.MAX)
            if turn >= 5:
                found[name].append(float(took) * 1e6)
    if rank == 0:
        metrics = {name: {'value': statistics.median(values), 'unit': 'ns', 'better': 'less'} for name, values in found.items()}
        metrics['nccl_rows'] = {'value': max(sum(len(to[r][q]) for r in range(ranks)) for q in range(ranks)), 'unit': 'rows'}
        major, minor, patch = torch.cuda.nccl.version()[:3]
        metrics['version_nccl'] = {'value': major * 10000 + minor * 100 + patch, 'unit': 'version'}
        print(json.dumps(metrics), flush=True)
    meet()
    dist.destroy_process_group()


def main():
    if not 2 <= len(sys.argv) <= 6:
        sys.exit(__doc__)
    given = [int(a) for a in sys.argv[1:]]
    ranks, tokens, dim, experts, top = given + [1, 128, 7168, 64, 8][len(given):]
    os.environ.update(NCCL_NVLS_ENABLE='0')
    import torch.multiprocessing as processes
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    processes.spawn(rank_of, args=(ranks, tokens, dim, experts, top, port), nprocs=ranks)


if __name__ == '__main__':
    main()
