#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Waiting consumers: what they cost others, the ten applications, overheads, scaling. One interleaved run.

  bench/sync.py BUILD [--rounds N] [--only PART,...]      parts: beside apps latency release overhead scale

Every figure is a median over the rounds of ratios within a round, in which all variants ran in a rotated
order. Closing lines `bar FIGURE VALUE >=|<= TARGET ok|short` are what the project wants to show."""
import argparse, json, math, statistics, subprocess, sys

APPS = {  # sizes with some 100 us of work per message and 16 workers per device, and polling that ends
    'srs': 'size=160 iterations=3', 'cg': 'size=40 iterations=3', 'fe': 'size=20 iterations=3',
    'h3d': 'size=20 iterations=3', 'bfs': 'size=13', 'bs': 'size=8000', 'c2d': 'size=256 iterations=4',
    'stn': 'size=1024 iterations=4', 'gem': 'size=320', 'kmn': 'size=2048 iterations=3'}
SYNCS = ['poll', 'backoff', 'futex', 'wic']
bars = []


def bar(name, value, relation, target):
    ok = value >= target if relation == '>=' else value <= target
    bars.append(f'bar {name} {value:.4g} {relation} {target:g} {"ok" if ok else "short"}')


def geomean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def run(conf, sync, *settings, samples=1, warmup=0):
    command = [build + '/gpuloom', 'run', conf, '--samples', str(samples), '--json', '-', '--set',
               f'run.warmup={warmup}', '--set', f'sync.use={sync}']
    for s in settings:
        command += ['--set', s]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        sys.exit(f'{" ".join(command)}\n{done.stderr}')
    return {k: v['samples'] for k, v in json.loads(done.stdout)['metrics'].items()}


def rotated(items, turn):
    return items[turn % len(items):] + items[:turn % len(items)]


def beside(rounds):
    print('compute beside k waiters on its core: speed relative to k = 0')
    kinds = ['sync_poll', 'sync_backoff how=yield', 'sync_backoff how=sleep', 'sync_futex', 'sync_wic']
    ks, found, share = [1, 2, 4, 8, 16, 64], {}, {}

    def once(kind, k):
        done = subprocess.run([build + '/bench/sync_beside', kind, str(k), '200'], check=True,
                              capture_output=True, text=True)
        return [float(v) for v in done.stdout.split()]
    for turn in range(rounds):
        for kind in rotated(kinds, turn):
            for k in ks:
                # The base on both sides: the machine's speed drifts.
                before, with_k, after = once(kind, 0), once(kind, k), once(kind, 0)
                found.setdefault((kind, k), []).append(with_k[0] / ((before[0] + after[0]) / 2))
                share.setdefault((kind, k), []).append(with_k[1])
    print('| k |', ' | '.join(kinds), '|')
    print('|---' * (len(kinds) + 1) + '|')
    for k in ks:
        print(f'| {k} |', ' | '.join(f'{statistics.median(found[kind, k]):.3f}' for kind in kinds), '|')
    print('\nshare of the processor time that the computation got')
    print('| k |', ' | '.join(kinds), '|')
    print('|---' * (len(kinds) + 1) + '|')
    for k in ks:
        print(f'| {k} |', ' | '.join(f'{statistics.median(share[kind, k]):.3f}' for kind in kinds), '|')
    for kind in ('sync_wic', 'sync_futex'):
        bar(f'beside_{kind}_share', min(statistics.median(share[kind, k]) for k in ks), '>=', 0.93)
        bar(f'beside_{kind}', min(statistics.median(found[kind, k]) for k in ks), '>=', 0.93)


def apps(rounds):
    print('\nthe ten applications, 16 workers per device: seconds (median), ratios within rounds, overlap')
    seconds, overlap = {}, {}
    for turn in range(rounds):
        for app, own in APPS.items():
            for sync in rotated(SYNCS, turn):
                m = run(f'conf/wic/{app}.ini', sync, *[f'workload.{app}.{s}' for s in own.split()])
                seconds.setdefault((app, sync), []).append(m['seconds'][0])
                overlap.setdefault((app, sync), []).append(m.get('overlap', [float('nan')])[0])
    print('| application |', ' | '.join(SYNCS), '| poll/wic | futex/wic | overlap poll | futex | wic |')
    print('|---' * (len(SYNCS) + 6) + '|')
    over_poll, over_futex = {}, {}
    for app in APPS:
        def ratio(a, b):
            return statistics.median(x / y for x, y in zip(seconds[app, a], seconds[app, b]))
        over_poll[app], over_futex[app] = ratio('poll', 'wic'), ratio('futex', 'wic')
        print(f'| {app} |', ' | '.join(f'{statistics.median(seconds[app, s]):.4f}' for s in SYNCS),
              f'| {over_poll[app]:.2f} | {over_futex[app]:.3f} |',
              ' | '.join(f'{statistics.median(overlap[app, s]):.2f}' for s in ('poll', 'futex', 'wic')), '|')
    bar('apps_wic_over_poll_geomean', geomean(over_poll.values()), '>=', 1.0)
    bar('apps_wic_over_poll_least', min(over_poll.values()), '>=', 0.97)
    bar('apps_wic_over_futex_geomean', geomean(over_futex.values()), '>=', 0.97)
    known = [v for v in (statistics.median(overlap[a, 'wic']) for a in APPS) if not math.isnan(v)]
    bar('apps_overlap_wic', statistics.fmean(known), '>=', 0.8)


def latency(rounds):
    """A ping-pong of two workers on one core: a resume each way, with no idle core to wake."""
    n, one_way = 2000, {'futex': [], 'wic': []}
    for turn in range(rounds):
        for sync in rotated(['futex', 'wic'], turn):
            m = run('conf/wic/pattern.ini', sync, 'workload.pattern.model=alternating', 'workload.pattern.size=1',
                    f'workload.pattern.iterations={n}', 'device.cpu.workers=1', 'device.cpu.cores=0')
            one_way[sync].append(m['seconds'][0] / (2 * n) * 1e6)
    more = [w - f for w, f in zip(one_way['wic'], one_way['futex'])]
    print(f'\nresume on one core, us one way: futex {statistics.median(one_way["futex"]):.2f}, '
          f'wic {statistics.median(one_way["wic"]):.2f}')
    bar('latency_wic_more_than_futex_us', statistics.median(more), '<=', 2.5)


def release(rounds):
    """Publishing to one of many who wait: the producer's cost per item."""
    cost = {16: [], 4096: []}
    for turn in range(rounds):
        for workers in rotated([16, 4096], turn):
            m = run('conf/wic/pattern.ini', 'wic', 'workload.pattern.size=1', 'workload.pattern.tp=0',
                    'workload.pattern.iterations=4', f'device.cpu.1.workers={workers}',
                    f'device.cpu.0.workers={workers}', 'sync.wic.pages=65536')
            cost[workers].append(m['sync_transfer_ns'][0] / m['sync_publishes'][0] / 1e3)
    print(f'\nrelease, us per item: 16 waiters {statistics.median(cost[16]):.2f}, '
          f'4096 waiters {statistics.median(cost[4096]):.2f}')
    bar('release_4096_over_16', statistics.median(a / b for a, b in zip(cost[4096], cost[16])), '<=', 1.2)


def overhead(rounds):
    print("\noverhead of WIC's parts, share of the workers' time (paper, figure 15)")
    print('| application | Interrupter | Activator: transfer | recycling | faults | us per stalled load |')
    print('|---|---|---|---|---|---|')
    for app, own in APPS.items():
        m = run(f'conf/wic/{app}.ini', 'wic', *[f'workload.{app}.{s}' for s in own.split()], samples=rounds)
        def per(name):
            return statistics.median(v / (32e9 * s) for v, s in zip(m[name], m['seconds']))
        faults = statistics.median(m['sync_faults'])
        print(f'| {app} | {per("sync_alloc_ns"):.4%} | {per("sync_transfer_ns"):.3%} | '
              f'{per("sync_recycle_ns"):.3%} | {faults:.0f} | '
              f'{statistics.median(m["sync_fault_ns"]) / max(faults, 1) / 1e3:.0f} |')


def scale(rounds):
    print('\nscaling: workers that wait, seconds (every message is checked)')
    print('| workers | futex | wic | futex/wic |')
    print('|---|---|---|---|')
    for workers in (64, 256, 1024, 4096, 8192):
        devices = 2 if workers <= 4096 else 4
        found = {'futex': [], 'wic': []}
        for turn in range(rounds):
            for sync in rotated(['futex', 'wic'], turn):
                # Half of each pair waits: twice as many workers as waiters.
                m = run('conf/wic/pattern.ini', sync, 'workload.pattern.iterations=3',
                        'run.devices=' + ' '.join(f'cpu:{d}' for d in range(devices)), 'workload.pattern.tp=5',
                        f'device.cpu.workers={2 * workers // devices}', 'sync.wic.pages=65536')
                found[sync].append(m['seconds'][0])
                assert m['messages'][0] == 3 * workers
        ratio = statistics.median(f / w for f, w in zip(found['futex'], found['wic']))
        print(f'| {workers} | {statistics.median(found["futex"]):.4f} | {statistics.median(found["wic"]):.4f} | '
              f'{ratio:.3f} |')


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument('build')
parser.add_argument('--rounds', type=int, default=5)
parser.add_argument('--only', default='beside,apps,latency,release,overhead,scale')
arguments = parser.parse_args()
build = arguments.build
for part in arguments.only.split(','):
    {'beside': beside, 'apps': apps, 'latency': latency, 'release': release, 'overhead': overhead,
     'scale': scale}[part](arguments.rounds)
    sys.stdout.flush()
print()
print('\n'.join(bars))
