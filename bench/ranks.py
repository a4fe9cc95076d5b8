#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks that share tasks, compared with workers of one rank and with MPI: conf/uts-ranks.ini, conf/contains-ranks.ini.

  bench/ranks.py BUILD [--rounds N] [--only PART,...] [--counts N,...]   parts: T1 T3 contains

T1, T3: each round runs one rank with N workers, N ranks with one worker each that access each other's memory, N ranks that
steal over tcp, and the peer in bench/peers, which steals by MPI messages. The peer runs twice. `mpi` uses shared memory and is
compared with ranks that access each other's memory. `mpi_tcp` uses tcp and is compared with ranks that steal over tcp. N is 2,
4, 8 etc. up to the number of cores, or as --counts lists. contains: compares two ranks with one rank, with one worker each. A figure is
the median over the rounds of ratios within a round. The last lines are `bar NAME VALUE >= TARGET ok|short|missing`; all values go
to BUILD/bench/ranks.json."""
import json, os, shutil, statistics

from figures import arguments, bar, call, finish, ratios, rotated, run_parts, settings

asked = arguments(__doc__, 10, 'T1,T3,contains', counts='')
build = asked.build
cores = len(os.sched_getaffinity(0))
counts = [int(n) for n in asked.counts.split(',') if n] or [n for n in (2, 4, 8, 16, 32, 64, 128) if n <= cores]
PEER = f'{build}/bench/peers/mpi'
TCP = ['trigger.use=gputn', 'trigger.provider=tcp', 'trigger.wait=nap']
times = {}


def ours(conf, ranks, workers, *own):
    command = [build + '/gpuloom', 'run', '-n', str(ranks), conf, '--samples', '5', '--quiet', '--json', '-']
    result = json.loads(call(command + settings([f'device.cpu.workers={workers}', *own])))
    return result['metrics']['seconds']['median']


def peer(tree, ranks, *own):
    out = call(['mpirun', '--allow-run-as-root', '--oversubscribe', '--bind-to', 'core', *own, '-n', str(ranks), PEER, 'uts', '-t', tree])
    return json.loads(out)['seconds']


def compare(tree, rounds):
    for n in counts:
        ways = {'workers': lambda: ours('conf/uts-ranks.ini', 1, n, f'workload.uts.tree={tree}'),
                'ranks': lambda: ours('conf/uts-ranks.ini', n, 1, f'workload.uts.tree={tree}'),
                'tcp': lambda: ours('conf/uts-ranks.ini', n, 1, f'workload.uts.tree={tree}', *TCP)}
        if os.access(PEER, os.X_OK) and shutil.which('mpirun'):
            ways['mpi'] = lambda: peer(tree, n)
            ways['mpi_tcp'] = lambda: peer(tree, n, '--mca', 'pml', 'ob1', '--mca', 'btl', 'tcp,self')
        took = {way: [] for way in ways}
        for turn in range(rounds):
            for way in rotated(list(ways), turn):
                took[way].append(ways[way]())
        times[f'{tree}_{n}'] = took
        print(f'{tree}, {n}: ' + ', '.join(f'{way} {statistics.median(s) * 1e3:.1f} ms' for way, s in took.items()), flush=True)
        for way, least, mpi in ('ranks', 0.95 if n == 2 else 0.9, 'mpi'), ('tcp', 0.9, 'mpi_tcp'):
            bar(f'{way}_{tree}_{n}_over_workers', ratios(took['workers'], took[way]), '>=', least)
            bar(f'{way}_{tree}_{n}_over_mpi', ratios(took.get(mpi, []), took[way]), '>=', 1)


def contains(rounds):
    took = {1: [], 2: []}
    for turn in range(rounds):
        for ranks in rotated([1, 2], turn):
            took[ranks].append(ours('conf/contains-ranks.ini', ranks, 1))
    times['contains'] = took
    print(f'contains: 1 rank {statistics.median(took[1]) * 1e3:.1f} ms, 2 ranks {statistics.median(took[2]) * 1e3:.1f} ms')
    bar('ranks_contains_two', ratios(took[1], took[2]), '>=', 1.8)


run_parts(asked, {**{tree: lambda rounds, tree=tree: compare(tree, rounds) for tree in ('T1', 'T3')}, 'contains': contains})
finish(f'{build}/bench/ranks.json', seconds=times, cores=cores)
