#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Waiting consumers: what they cost others, the ten applications, overheads, scaling. One interleaved run.

  bench/sync.py BUILD [--rounds N] [--only PART,...]      parts: beside apps parked fine latency release overhead scale

Every figure is a median over the rounds of ratios within a round, in which all variants ran in a rotated
order. Closing lines `bar FIGURE VALUE >=|<= TARGET ok|short` are what the project wants to show."""
import argparse, json, math, statistics, subprocess, sys

# With some 100 us of work per message (bfs: 10, whose graph would have to be far larger; a panel of gem, 770, has
# 16 readers): polling still ends.
APPS = {
    'srs': 'size=160 iterations=3', 'cg': 'size=80 iterations=3', 'fe': 'size=24 iterations=3',
    'h3d': 'size=48 iterations=3', 'bfs': 'size=17', 'bs': 'size=16000', 'c2d': 'size=400 iterations=4',
    'stn': 'size=2560 iterations=4', 'gem': 'size=480', 'kmn': 'size=8192 iterations=3'}
FINE = {  # 2 to 50 us of work per message: what a resumption costs shows
    'cg': 'size=40 iterations=3', 'fe': 'size=20 iterations=8', 'h3d': 'size=20 iterations=3', 'bfs': 'size=13',
    'bs': 'size=8000', 'c2d': 'size=256 iterations=4', 'stn': 'size=1024 iterations=4',
    'kmn': 'size=2048 iterations=3'}
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


def compare(table, syncs, rounds):
    """Seconds, overlap and work per message of each application under each sync."""
    seconds, overlap, work = {}, {}, {}
    for turn in range(rounds):
        for app, own in table.items():
            for sync in rotated(syncs, turn):
                m = run(f'conf/wic/{app}.ini', sync, *[f'workload.{app}.{s}' for s in own.split()])
                seconds.setdefault((app, sync), []).append(m['seconds'][0])
                overlap.setdefault((app, sync), []).append(m.get('overlap', [float('nan')])[0])
                work.setdefault(app, []).append(m['work_s'][0] / m['sync_publishes'][0] * 1e6)

    def ratio(app, a, b):
        return statistics.median(x / y for x, y in zip(seconds[app, a], seconds[app, b]))
    return seconds, overlap, work, ratio


def apps(rounds):
    print('\nthe ten applications, 16 workers per device: seconds (median), ratios within rounds, overlap')
    seconds, overlap, work, ratio = compare(APPS, SYNCS, rounds)
    print('| application | us per message |', ' | '.join(SYNCS),
          '| poll/wic | overlap poll | wic |')
    print('|---' * (len(SYNCS) + 5) + '|')
    over_poll = {app: ratio(app, 'poll', 'wic') for app in APPS}
    for app in APPS:
        print(f'| {app} | {statistics.median(work[app]):.0f} |',
              ' | '.join(f'{statistics.median(seconds[app, s]):.4f}' for s in SYNCS),
              f'| {over_poll[app]:.2f} |',
              ' | '.join(f'{statistics.median(overlap[app, s]):.2f}' for s in ('poll', 'wic')), '|')
    bar('apps_wic_over_poll_geomean', geomean(over_poll.values()), '>=', 1.0)
    bar('apps_wic_over_poll_least', min(over_poll.values()), '>=', 0.97)
    bar('apps_overlap_poll', mean_overlap(overlap, APPS, 'poll'), '<=', 0.2)


def mean_overlap(overlap, table, sync):
    medians = (statistics.median(overlap[app, sync]) for app in table)
    return statistics.fmean(v for v in medians if not math.isnan(v))


def beside_futex(table, rounds):
    """What parks differs by percents, and is over soon: three times as many rounds. The mean ratio, and overlap."""
    _, overlap, work, ratio = compare(table, ['futex', 'wic'], 3 * rounds)
    print('| application | us per message | futex/wic | overlap futex | wic |\n|---|---|---|---|---|')
    found = {app: ratio(app, 'futex', 'wic') for app in table}
    for app, value in found.items():
        print(f'| {app} | {statistics.median(work[app]):.0f} | {value:.3f} |',
              ' | '.join(f'{statistics.median(overlap[app, s]):.2f}' for s in ('futex', 'wic')), '|')
    return geomean(found.values()), mean_overlap(overlap, table, 'wic')


def parked(rounds):
    print('\nthe ten applications: wic beside futex')
    ratio, overlap = beside_futex(APPS, rounds)
    bar('apps_wic_over_futex_geomean', ratio, '>=', 0.97)
    bar('apps_overlap_wic', overlap, '>=', 0.8)


def fine(rounds):
    print('\nfine grain: wic beside futex')
    ratio, overlap = beside_futex(FINE, rounds)
    print(f'geometric mean {ratio:.3f}, overlap {overlap:.2f}')


def latency(rounds):
    """Ping-pongs of two threads on one core, a resumption each way: what the kernel asks for alone, and ours."""
    n, found = 2000, {}
    for turn in range(rounds):
        for kind in rotated(['futex', 'copy', 'continue'], turn):
            done = subprocess.run([build + '/bench/sync_floor', kind, str(n)], check=True, capture_output=True,
                                  text=True)
            found.setdefault('floor ' + kind, []).append(float(done.stdout))
        for sync in rotated(['futex', 'wic'], turn):
            m = run('conf/wic/pattern.ini', sync, 'workload.pattern.model=alternating', 'workload.pattern.size=1',
                    f'workload.pattern.iterations={n}', 'device.cpu.workers=1', 'device.cpu.cores=0')
            stalls = m['sync_faults'][0] / (2 * n) if sync == 'wic' else 1
            found.setdefault(sync, []).append(m['seconds'][0] / (2 * n) * 1e6)
            found.setdefault(sync + ' stalls', []).append(stalls)
    print('\nresumption on one core, us one way:',
          ', '.join(f'{k} {statistics.median(v):.2f}' for k, v in found.items()))
    # Not every message of a ping-pong is waited for: the difference is that of the stalls.
    more = [(w - f) / s for w, f, s in zip(found['wic'], found['futex'], found['wic stalls'])]
    bar('latency_wic_more_than_futex_us', statistics.median(more), '<=', 2.5)


def release(rounds):
    """Publishing to one of many who stall: on another core what it costs the producer, on its own core all of it."""
    found = {}
    for turn in range(rounds):
        for kind in rotated(['sync_futex', 'sync_wic'], turn):
            for waiters in rotated([16, 4096], turn):
                for core in (0, 1):
                    done = subprocess.run([build + '/bench/sync_release', kind, str(waiters), str(core)],
                                          check=True, capture_output=True, text=True)
                    found.setdefault((kind, core, waiters), []).append([float(v) for v in done.stdout.split()])
    print('\nrelease of one of many who stall, us: publish(), until its consumer is back, until both are through')
    print('| waits | core | 16 waiters | 4096 waiters | ratio (another: of publish(); the same: of all) |')
    print('|---|---|---|---|---|')
    for kind in ('sync_futex', 'sync_wic'):
        for core in (0, 1):
            few, many = found[kind, core, 16], found[kind, core, 4096]
            cells = [' / '.join(f'{statistics.median(v[i] for v in list_):.2f}' for i in range(3))
                     for list_ in (few, many)]
            what = 0 if core else 2
            ratio = statistics.median(m[what] / f[what] for m, f in zip(many, few))
            print(f'| {kind} | {"the same" if core == 0 else "another"} |', ' | '.join(cells), f'| {ratio:.2f} |')
            if kind == 'sync_wic':
                bar(f'release_4096_over_16_{"another" if core else "same"}_core', ratio, '<=', 1.2)


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
    print('\nscaling: workers, all of which wait in turn; seconds, every message is checked')
    print('| workers | futex | wic | futex/wic |')
    print('|---|---|---|---|')
    for workers in (64, 256, 1024, 4096, 16384):
        found, devices = {'futex': [], 'wic': []}, max(2, workers // 4096)
        for turn in range(rounds):
            for sync in rotated(['futex', 'wic'], turn):
                m = run('conf/wic/pattern.ini', sync, 'workload.pattern.iterations=3', 'workload.pattern.tp=5',
                        'workload.pattern.model=alternating', f'device.cpu.workers={workers // devices}',
                        'run.devices=' + ' '.join(f'cpu:{d}' for d in range(devices)), 'sync.wic.pages=65536')
                found[sync].append(m['seconds'][0])
                assert m['messages'][0] == 3 * workers
        ratio = statistics.median(f / w for f, w in zip(found['futex'], found['wic']))
        print(f'| {workers} | {statistics.median(found["futex"]):.4f} | {statistics.median(found["wic"]):.4f} | '
              f'{ratio:.3f} |')
        sys.stdout.flush()


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument('build')
parser.add_argument('--rounds', type=int, default=5)
parser.add_argument('--only', default='beside,apps,parked,fine,latency,release,overhead,scale')
arguments = parser.parse_args()
build = arguments.build
for part in arguments.only.split(','):
    {'beside': beside, 'apps': apps, 'parked': parked, 'fine': fine, 'latency': latency, 'release': release, 'overhead': overhead,
     'scale': scale}[part](arguments.rounds)
    sys.stdout.flush()
print()
print('\n'.join(bars))
