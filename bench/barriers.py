#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Barriers on the CPU compared with other libraries, and work that overlaps a wait.

  bench/barriers.py BUILD [--rounds N] [--only PART,...]   parts: two many overlap

All variants of a part run once in each round, in a rotated order. A figure is the median over the rounds, of times or of
ratios within a round. The last lines are `bar NAME VALUE >=|<= TARGET ok|short|missing` for the targets of the project; the
values of all rounds go to BUILD/bench/barriers.json."""
import json, os, statistics, sys

from figures import arguments, bar, call, figure, finish, ratios, rotated, run_parts, settings, worst_of

OURS = ['central', 'release', 'tree', 'dissemination', 'flags']
PEERS = ['pthread', 'gomp', 'libomp', 'std']
ENV = {'OMP_WAIT_POLICY': 'active', 'OMP_DYNAMIC': 'false'}


def ours(barrier, workers, few, difference, parts, *own):
    set_ = [f'barrier.use={barrier}', f'device.cpu.workers={workers}', f'workload.barrier.few={few}',
            f'workload.barrier.difference={difference}', f'workload.barrier.parts={parts}',
            'workload.barrier.checked=50', 'run.warmup=0', *own]
    out = call([build + '/gpuloom', 'run', 'conf/barrier.ini', '--samples', '1', '--json', '-',
                *settings(set_)])
    return {k: v['samples'][0] for k, v in json.loads(out)['metrics'].items()}


def peer(name, workers, few, difference, parts):
    return float(call([f'{build}/bench/peers/barrier_{name}', *map(str, (workers, few, difference, parts))], **ENV))


def there(name):
    return os.access(f'{build}/bench/peers/barrier_{name}', os.X_OK)


def interleaved(rounds, runs):
    """Returns the results of `runs` {name: function} for each round. The order of the functions rotates."""
    found, names = {name: [] for name in runs}, list(runs)
    for turn in range(rounds):
        for name in rotated(names, turn):
            found[name].append(runs[name]())
    return found


def table(title, name, found, unit):
    print(f'\n{title}\n| barrier | {unit} | least | most |\n|---|---|---|---|')
    for one, values in found.items():
        print(f'| {one} | {statistics.median(values):.4g} | {min(values):.4g} | {max(values):.4g} |')
        figure(f'{name}_{one}', values)
    sys.stdout.flush()


def beside(title, name, workers, count, peers, target, rounds, each, *own):
    """Compares the best barrier, and each barrier, with the best peer in the same round."""
    runs = {b: (lambda b=b: ours(b, workers, *count, *own)['latency']) for b in each}
    runs.update({p: (lambda p=p: peer(p, workers, *count)) for p in peers if there(p)})
    found = interleaved(rounds, runs)
    table(title, f'barrier_{workers}_workers_ns', found, 'ns')
    others = [p for p in peers if p in found]
    best = [min(times) for times in zip(*(found[p] for p in others))]
    ratio = {b: ratios(found[b], best) for b in each}
    for b in each:
        figure(f'{name}_{b}', ratio[b])
    if best:
        print('ratio to the best of', ', '.join(others), 'in the same round:',
              ', '.join(f'{b} {statistics.median(r):.3f}' for b, r in ratio.items()))
    bar(name, worst_of(ratio.values(), min), '<=', target)
    for p in peers:
        if p not in found:
            bar(f'{name}_to_{p}', [], '<=', target)


def two(rounds):
    beside('2 workers: ns per barrier', 'two_workers_to_best_peer', 2, (512, 5120, 5), PEERS, 1.1, rounds, OURS)


def many(rounds):
    """The threads are not pinned, like those of pthread."""
    beside('64 workers: ns per barrier', 'many_workers_to_pthread', 64, (20, 200, 3), ['pthread'], 1.5, rounds,
           ['central', 'release', 'tree', 'flags'], 'device.cpu.pin=no')


def overlap(rounds):
    """Each worker works for about 2 us between arrive and await. Every second worker arrives late by the same time."""
    runs = {b: (lambda b=b: ours(b, 2, 5000, 1, 5, 'workload.barrier.work=2000').get('overlap', 0)) for b in OURS}
    found = interleaved(rounds, runs)
    table('share of what waiting adds that split rounds hide', 'overlap', found, 'share')
    bar('overlap', worst_of(found.values(), max), '>=', 0.9)


PARTS = {'two': two, 'many': many, 'overlap': overlap}
asked = arguments(__doc__, 11, 'two,many,overlap')
build = asked.build
run_parts(asked, PARTS)
finish(build + '/bench/barriers.json')
