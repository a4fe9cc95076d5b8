#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Waiting consumers: their cost for other threads, the ten applications, overheads, scaling.

  bench/sync.py BUILD [--rounds N] [--only PART,...]   parts: beside parked apps fine latency release scale

Applications go through `gpuloom compare`: interleaved blocks after a warm-up. Elsewhere all variants run once in each
round, in a rotated order. A figure is a median over blocks or rounds, of values or of ratios within one. A mean over the
applications is computed for each block. The last lines are `bar NAME VALUE >=|<= TARGET ok|short` for the targets of the
project; the values of all rounds go to BUILD/bench/sync.json."""
import json, statistics, sys, tempfile

from figures import arguments, bar, call, figure, finish, geomeans, interval, ratios, rotated, run_parts, settings, worst_of

# Each message comes with about 100 us of work, so that polling still ends in time. bfs has only 10 us, since its graph is small.
# gem has 770 us, because a panel has 16 readers.
APPS = {
    'srs': 'size=160 iterations=3', 'cg': 'size=80 iterations=3', 'fe': 'size=24 iterations=3',
    'h3d': 'size=48 iterations=3', 'bfs': 'size=17', 'bs': 'size=16000', 'c2d': 'size=400 iterations=4',
    'stn': 'size=2560 iterations=4', 'gem': 'size=480', 'kmn': 'size=8192 iterations=3'}
FINE = {  # with 2 to 50 us of work per message, the cost of a resumption is visible
    'cg': 'size=40 iterations=3', 'fe': 'size=20 iterations=8', 'h3d': 'size=20 iterations=3', 'bfs': 'size=13',
    'bs': 'size=8000', 'c2d': 'size=256 iterations=4', 'stn': 'size=1024 iterations=4',
    'kmn': 'size=2048 iterations=3'}
foreign = []


def run(conf, sync, *own, samples=1, warmup=0):
    out = call([build + '/gpuloom', 'run', conf, '--samples', str(samples), '--json', '-',
                *settings([f'run.warmup={warmup}', f'sync.use={sync}', *own])])
    return {k: v['samples'] for k, v in json.loads(out)['metrics'].items()}


# ---- a computation next to waiters

def beside(rounds):
    """Measures a computing thread beside waiters. Rivals without a bar get one round, because their ratios are far from 1."""
    print('compute beside k waiters on its core: speed relative to k = 0 (share of the processor time)')
    kinds = ['sync_poll', 'sync_backoff wait=yield', 'sync_backoff wait=nap', 'sync_futex', 'sync_wic']
    ks, found, share = [1, 2, 4, 8, 16, 64], {}, {}

    def once(kind, k):
        return [float(v) for v in call([build + '/bench/sync_beside', kind, str(k), '150']).split()]
    for turn in range(rounds):
        for kind in rotated(kinds if turn == 0 else kinds[3:], turn):
            before = once(kind, 0)
            for k in ks:  # the baseline runs on both sides, since the machine's speed drifts
                with_k, after = once(kind, k), once(kind, 0)
                found.setdefault((kind, k), []).append(with_k[0] / ((before[0] + after[0]) / 2))
                share.setdefault((kind, k), []).append(with_k[1])
                before = after
    print('| k |', ' | '.join(kinds), '|')
    print('|---' * (len(kinds) + 1) + '|')
    for k in ks:
        print(f'| {k} |', ' | '.join(f'{statistics.median(found[kind, k]):.3f} '
                                     f'({statistics.median(share[kind, k]):.3f})' for kind in kinds), '|')
    for kind in ('wic', 'futex'):
        bar(f'beside_{kind}_share', worst_of((share['sync_' + kind, k] for k in ks), min), '>=', 0.93)
        bar(f'beside_{kind}', worst_of((found['sync_' + kind, k] for k in ks), min), '>=', 0.93)


# ---- the applications

class App:
    """Runs one application under two syncs. Has the samples of each metric, and the ratios of blocks: the time under the first
    sync over that under the second one."""

    def __init__(self, name, own, syncs, blocks, samples):
        self.name, self.own, self.syncs, self.metrics = name, own, syncs, {}
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            call([build + '/gpuloom', 'compare', 'conf/wic.ini', '--set', f'run.workload={self.name}', '--vary',
                  'sync.use=' + ','.join(syncs), '--metric', 'seconds', '--blocks', str(blocks),
                  '--samples-per-block', str(samples), '--order', 'random' if samples == 1 else 'abba', '--spread', '1ms',
                  '--json', f.name, '--quiet', *settings(f'workload.{self.name}.{s}' for s in self.own.split())])
            found = json.load(open(f.name))
        for sync, v in zip(syncs, found['variants']):
            self.metrics[sync] = {name: m['samples'] for name, m in v['result']['metrics'].items()}
        self.ratios = [1 / r for r in found['comparisons'][0]['ratios']]
        before, after = (found['variants'][0]['result']['environment'][t] for t in ('before', 'after'))
        busy, own, idle = (after[k] - before[k] for k in ('cpu_busy_s', 'own_cpu_s', 'cpu_idle_s'))
        foreign.append(max(0, (busy - own) / max(busy + idle, 1e-3)))

    def median(self, sync, metric):
        return statistics.median(self.metrics[sync].get(metric) or [float('nan')])

    def per_message(self, sync):
        return self.median(sync, 'work_s') / self.median(sync, 'sync_publishes') * 1e6


def means(lists):
    """Returns the mean over the applications for each sample."""
    return [statistics.fmean(row) for row in zip(*lists)]


def mean_overlap(apps_, sync):
    return means(a.metrics[sync]['overlap'] for a in apps_ if 'overlap' in a.metrics[sync])


def compared(table, syncs, blocks, samples):
    """Measures the applications of a table under two syncs."""
    apps_ = []
    print(f'| application | us per message | {syncs[0]}/{syncs[1]} | 95 % | stalls | overlap {syncs[0]} | {syncs[1]} |')
    print('|---' * 7 + '|')
    for app, own in table.items():
        a = App(app, own, syncs, blocks, samples)
        ends = interval(a.ratios)
        apps_.append(a)
        figure(f'{app}_{own.replace(" ", "_")}_{syncs[0]}_over_{syncs[1]}', a.ratios)
        print(f'| {app} | {a.per_message("wic"):.0f} | {statistics.median(a.ratios):.3f} | '
              f'{"%.3f to %.3f" % ends if ends else "-"} | '
              f'{a.median("wic", "sync_faults"):.0f} |', ' | '.join(f'{a.median(s, "overlap"):.2f}' for s in syncs), '|')
        sys.stdout.flush()
    return apps_


def apps(rounds):
    """Measures the ten applications. Polling is several times slower than parking, so single samples suffice."""
    print('\nthe ten applications, 16 workers per device: polling beside wic')
    all_ = compared(APPS, ['poll', 'wic'], rounds, 1)
    bar('apps_wic_over_poll_geomean', geomeans(a.ratios for a in all_), '>=', 1.0)
    bar('apps_wic_over_poll_least', worst_of((a.ratios for a in all_), min), '>=', 0.97)
    bar('apps_overlap_poll', mean_overlap(all_, 'poll'), '<=', 0.2)


def parked(rounds):
    """Compares the ways of parking, which differ by a few percent, so there are more blocks."""
    print('\nthe ten applications: wic beside futex')
    all_ = compared(APPS, ['futex', 'wic'], 2 * rounds, 2)
    bar('apps_wic_over_futex_geomean', geomeans(a.ratios for a in all_), '>=', 0.97)
    bar('apps_overlap_wic', mean_overlap(all_, 'wic'), '>=', 0.8)
    overhead_of(all_)


def fine(rounds):
    print('\nfine granularity: wic beside futex')
    figure('apps_wic_over_futex_fine', geomeans(a.ratios for a in compared(FINE, ['futex', 'wic'], rounds, 2)))


def overhead_of(all_):
    print("\noverhead of WIC's parts, share of the workers' time (paper, figure 15)")
    print('| application | Interrupter | Activator: transfer | recycling | faults | us per stalled load |')
    print('|---' * 6 + '|')
    sums = []
    for a in all_:
        m = a.metrics['wic']
        parts = [[v / (32e9 * s) for v, s in zip(m[n], m['seconds'])] for n in ('sync_alloc_ns', 'sync_transfer_ns', 'sync_recycle_ns')]
        faults, (alloc, transfer, recycle) = a.median('wic', 'sync_faults'), map(statistics.median, parts)
        sums.append(list(map(sum, zip(*parts))))
        print(f'| {a.name} | {alloc:.4%} | {transfer:.3%} | {recycle:.3%} | {faults:.0f} | '
              f'{a.median("wic", "sync_fault_ns") / max(faults, 1) / 1e3:.0f} |')
    figure('overhead_mean', means(sums))


# ---- single resumptions, and many waiters

def latency(rounds):
    """Runs ping-pongs of two threads on one core, with one resumption each way: by the kernel alone, and by the sync
    plug-ins."""
    n, found = 2000, {}
    for turn in range(rounds):
        for kind in rotated(['futex', 'copy', 'continue'], turn):
            found.setdefault('floor ' + kind, []).append(float(call([build + '/bench/sync_floor', kind, str(n)])))
        for sync in rotated(['futex', 'wic'], turn):
            m = run('conf/wic.ini', sync, 'run.workload=pattern', 'workload.pattern.model=alternating', 'workload.pattern.size=1',
                    f'workload.pattern.iterations={n}', 'device.cpu.workers=1', 'device.cpu.cores=0')
            stalls = m['sync_faults'][0] / (2 * n) if sync == 'wic' else 1
            found.setdefault(sync, []).append(m['seconds'][0] / (2 * n) * 1e6)
            found.setdefault(sync + ' stalls', []).append(stalls)
    print('\nresumption on one core, us one way:',
          ', '.join(f'{k} {statistics.median(v):.2f}' for k, v in found.items()))
    # Not every message of a ping-pong causes a wait, so times are divided by the number of stalls.
    more = [(w - f) / s for w, f, s in zip(found['wic'], found['futex'], found['wic stalls'])]
    bar('latency_wic_more_than_futex_us', more, '<=', 2.5)


def release(rounds):
    """Publishes to one of many stalled consumers. If they are on another core, the value is the cost for the producer. If
    they are on its own core, the value is the total cost."""
    found = {}
    for turn in range(rounds):
        for kind in rotated(['sync_futex', 'sync_wic'], turn):
            for waiters in rotated([16, 4096], turn):
                for core in (0, 1):
                    out = call([build + '/bench/sync_release', kind, str(waiters), str(core)])
                    found.setdefault((kind, core, waiters), []).append([float(v) for v in out.split()])
    print('\nrelease of one of many who stall, us: publish(), until its consumer is back, until both are through')
    print('| waits | core | 16 waiters | 4096 waiters | ratio (another: of publish(); the same: of all) |')
    print('|---|---|---|---|---|')
    for kind in ('sync_futex', 'sync_wic'):
        for core in (0, 1):
            few, many = found[kind, core, 16], found[kind, core, 4096]
            cells = [' / '.join(f'{statistics.median(v[i] for v in list_):.2f}' for i in range(3))
                     for list_ in (few, many)]
            what = 0 if core else 2
            ratio = [m[what] / f[what] for m, f in zip(many, few)]
            print(f'| {kind} | {"the same" if core == 0 else "another"} |', ' | '.join(cells), f'| {statistics.median(ratio):.2f} |')
            if kind == 'sync_wic':
                bar(f'release_4096_over_16_{"another" if core else "same"}_core', ratio, '<=', 1.2)


def scale(rounds):
    print('\nscaling: workers, all of which wait in turn; seconds, every message is checked')
    print('| workers | futex | wic | futex/wic |')
    print('|---|---|---|---|')
    for workers in (64, 1024, 4096):
        found = {'futex': [], 'wic': []}
        for turn in range(rounds):
            for sync in rotated(['futex', 'wic'], turn):
                m = run('conf/wic.ini', sync, 'run.workload=pattern', 'workload.pattern.iterations=3', 'workload.exchange.tp=5',
                        'workload.pattern.model=alternating', f'device.cpu.workers={workers // 2}', 'run.devices=cpu:0 cpu:1',
                        'sync.wic.pages=65536')
                found[sync].append(m['seconds'][0])
                assert m['messages'][0] == 3 * workers
        ratio = ratios(found['futex'], found['wic'])
        figure(f'scale_{workers}_futex_over_wic', ratio)
        print(f'| {workers} | {statistics.median(found["futex"]):.4f} | {statistics.median(found["wic"]):.4f} | '
              f'{statistics.median(ratio):.3f} |')
        sys.stdout.flush()


PARTS = {'beside': beside, 'parked': parked, 'apps': apps, 'fine': fine, 'latency': latency, 'release': release,
         'scale': scale}
asked = arguments(__doc__, 10, 'beside,parked,apps,fine,latency,release,scale')
build = asked.build
run_parts(asked, PARTS)
if foreign:
    print(f'\nother programs used {statistics.median(foreign):.1%} of the processor time beside the applications, '
          f'{max(foreign):.1%} at most')
finish(build + '/bench/sync.json', foreign_cpu=foreign)
