#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sums of bfloat16 over GPUs of this host by PyTorch's symmetric memory, one-shot and two-shot.

    bench/rivals/sums.py RANKS [MOST]

Starts a process for each of RANKS GPUs; MOST is the largest vector in bytes (64 MiB). The calls are in CUDA graphs of 50 calls,
each launched four times, as in bench/comm.c, and the lines are the same: `version torch CODE`, and `sample comm_WAY_BYTES_us TURN VALUE`, the time of a call
of rank 0 in this turn, on the clock of the host. The two ways take turns with each other; `empty` is a graph of 50 empty kernels.
They cannot take turns with bench/comm.c, because PyTorch needs processes of its own: run this program when no other one uses the
GPUs, and before or after bench/comm.c in the same minutes. one_shot writes its sum to another vector, two_shot to its own input,
which 50 calls would overflow; so the input is zero while the clock runs, and a separate call is checked. Multicast is off:
TORCH_SYMM_MEM_DISABLE_MULTICAST=1."""
import os, socket, sys, time

CALLS, LAUNCHES, TURNS = 50, 4, 20


def rank_of(rank, ranks, most, port):
    import torch
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symm_mem
    os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port))
    torch.cuda.set_device(rank)
    dist.init_process_group('nccl', rank=rank, world_size=ranks, device_id=torch.device('cuda', rank))
    group = dist.group.WORLD.group_name
    memory = symm_mem.empty(most // 2, dtype=torch.bfloat16, device=torch.device('cuda', rank))
    symm_mem.rendezvous(memory, group)
    word = torch.zeros(1, device='cuda')

    def meet():
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()

    def captured(call):
        beside = torch.cuda.Stream()
        with torch.cuda.stream(beside):  # a capture must not be the first call of a library
            call()
        meet()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode='thread_local'):  # NCCL has a thread that asks for events
            for _ in range(CALLS):
                call()
        meet()
        return graph

    size = 8
    while size <= most:
        part, out = memory[:size // 2], torch.empty(size // 2, dtype=torch.bfloat16, device='cuda')
        ways = {'empty': lambda: word.zero_(),
                'torch_one_shot': lambda: torch.ops.symm_mem.one_shot_all_reduce_out(part, 'sum', group, out),
                'torch_two_shot': lambda: torch.ops.symm_mem.two_shot_all_reduce_(part, 'sum', group)}
        whole = torch.arange(size // 2, device='cuda') * 7  # small integers, whose sums are exact
        expected = sum((whole + r * 3) % (256 // ranks) for r in range(ranks))
        graphs = {}
        for name, call in ways.items():
            part.copy_((whole + rank * 3) % (256 // ranks))
            meet()
            try:
                call()
            except RuntimeError as why:  # the same on all ranks
                if rank == 0:
                    print(f'# {name}, {size} bytes: left out: {why}', file=sys.stderr, flush=True)
                continue
            meet()
            found = out if 'one' in name else part
            if name != 'empty' and not torch.equal(found.long(), expected):
                sys.exit(f'{name}, {size} bytes: wrong sum')
            part.zero_()
            meet()
            graphs[name] = captured(call)
        for turn in range(TURNS + 1):  # the first turn is a warm-up
            names = list(graphs)
            for name in names[turn % len(names):] + names[:turn % len(names)]:
                meet()
                begin = time.perf_counter()
                for _ in range(LAUNCHES):
                    graphs[name].replay()
                torch.cuda.synchronize()
                us = (time.perf_counter() - begin) * 1e6 / LAUNCHES / CALLS
                if turn and rank == 0:
                    print(f'sample comm_{name}_{size}_us {turn} {us:.3f}', flush=True)
        size *= 2
    meet()
    dist.destroy_process_group()


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    os.environ.update(TORCH_SYMM_MEM_DISABLE_MULTICAST='1', NCCL_NVLS_ENABLE='0')
    import torch
    import torch.multiprocessing as processes
    major, minor, patch = torch.__version__.split('+')[0].split('.')[:3]
    print(f'version torch {int(major) * 10000 + int(minor) * 100 + int(patch)}', flush=True)
    ranks, most = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 64 << 20
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    processes.spawn(rank_of, args=(ranks, most, port), nprocs=ranks)


if __name__ == '__main__':
    main()
