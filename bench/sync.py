#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Waiting consumers: their cost for other threads, the ten applications, overheads, scaling.

  bench/sync.py BUILD [--rounds N] [--only PART,...]   parts: beside parked apps fine latency release scale

Applications go through `gpuloom compare`: interleaved blocks after a warm-up, until the interval of the ratio is
narrow. Elsewhere a value is a median over rounds of ratios within a round, in which all variants ran in a
rotated order. The last lines are `bar NAME VALUE >=|<= TARGET ok|short` for the targets of the project; all
values go to BUILD/bench/sync.json."""
import json, math, statistics, sys, tempfile

from figures import arguments, bar, call, figures, finish, rotated, run_parts, settings

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
NARROW = 0.012  # the half-width of the 95 % interval at which a comparison ends
PASSES = 4      # the maximum number of comparisons of an application
foreign = []


def geomean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def run(conf, sync, *own, samples=1, warmup=0):
    out = call([build + '/gpuloom', 'run', conf, '--samples', str(samples), '--json', '-',
                *settings([f'run.warmup={warmup}', f'sync.use={sync}', *own])])
    return {k: v['samples'] for k, v in json.loads(out)['metrics'].items()}


# ---- a computation next to waiters

def beside(rounds):
    """Measures a computing thread beside waiters. Rivals without a bar get one round, because their ratios are far from 1."""
    rounds = min(rounds, 3)
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
    for kind in ('sync_wic', 'sync_futex'):
        bar(f'beside_{kind}_share', min(statistics.median(share[kind, k]) for k in ks), '>=', 0.93)
        bar(f'beside_{kind}', min(statistics.median(found[kind, k]) for k in ks), '>=', 0.93)


# ---- the applications

def interval(ratios):
    """Returns the median and the half-width of its 95 % interval by order statistics, as a share of the median."""
    s, n = sorted(ratios), len(ratios)
    reach = math.ceil(0.98 * math.sqrt(n))  # 1.96 standard deviations of a binomial of n / 2
    low, high = s[max(0, n // 2 - reach)], s[min(n - 1, (n - 1) // 2 + reach)]
    middle = statistics.median(s)
    return middle, (high - low) / 2 / middle


class App:
    """Runs one application under several syncs. Returns samples of each metric, and ratios of blocks to the first
    sync."""

    def __init__(self, name, own, syncs):
        self.name, self.own, self.syncs = name, own, syncs
        self.metrics = {s: {} for s in syncs}
        self.ratios = {s: [] for s in syncs[1:]}

    def more(self, blocks, samples):
        with tempfile.NamedTemporaryFile(suffix='.json') as f:
            call([build + '/gpuloom', 'compare', 'conf/wic.ini', '--set', f'run.workload={self.name}', '--vary',
                  'sync.use=' + ','.join(self.syncs), '--metric', 'seconds', '--blocks', str(blocks),
                  '--samples-per-block', str(samples), '--spread', '1ms', '--json', f.name, '--quiet',
                  *settings(f'workload.{self.name}.{s}' for s in self.own.split())])
            found = json.load(open(f.name))
        for sync, v in zip(self.syncs, found['variants']):
            for name, m in v['result']['metrics'].items():
                self.metrics[sync].setdefault(name, []).extend(m['samples'])
        for sync, c in zip(self.syncs[1:], found['comparisons']):
            self.ratios[sync] += c['ratios']
        before, after = (found['variants'][0]['result']['environment'][t] for t in ('before', 'after'))
        busy, own, idle = (after[k] - before[k] for k in ('cpu_busy_s', 'own_cpu_s', 'cpu_idle_s'))
        foreign.append(max(0, (busy - own) / max(busy + idle, 1e-3)))

    def until_narrow(self, blocks, samples, passes):
        for _ in range(passes):
            self.more(blocks, samples)
            if max(interval(r)[1] for r in self.ratios.values()) <= NARROW:
                break
        return self

    def median(self, sync, metric):
        return statistics.median(self.metrics[sync].get(metric) or [float('nan')])

    def per_message(self, sync):
        return self.median(sync, 'work_s') / self.median(sync, 'sync_publishes') * 1e6


def mean_overlap(apps_, sync):
    medians = (a.median(sync, 'overlap') for a in apps_)
    return statistics.fmean(v for v in medians if not math.isnan(v))


def apps(rounds):
    """Measures the ten applications. Two blocks suffice, because polling is several times slower than parking."""
    print('\nthe ten applications, 16 workers per device: seconds (median), ratio within blocks, overlap')
    all_ = [App(app, own, ['wic', 'futex', 'backoff', 'poll']) for app, own in APPS.items()]
    print('| application | us per message | wic | futex | backoff | poll | poll/wic | overlap poll | wic |')
    print('|---' * 9 + '|')
    for a in all_:
        a.more(max(1, rounds // 4), 2)
        print(f'| {a.name} | {a.per_message("wic"):.0f} |',
              ' | '.join(f'{a.median(s, "seconds"):.4f}' for s in a.syncs),
              f'| {interval(a.ratios["poll"])[0]:.2f} |',
              ' | '.join(f'{a.median(s, "overlap"):.2f}' for s in ('poll', 'wic')), '|')
        sys.stdout.flush()
    over = [interval(a.ratios['poll'])[0] for a in all_]
    bar('apps_wic_over_poll_geomean', geomean(over), '>=', 1.0)
    bar('apps_wic_over_poll_least', min(over), '>=', 0.97)
    bar('apps_overlap_poll', mean_overlap(all_, 'poll'), '<=', 0.2)


def beside_futex(table, passes):
    """Compares the ways of parking, which differ by a few percent. Returns the geometric mean of the ratios, its half-width, and the
    applications."""
    all_, found = [], []
    print('| application | us per message | futex/wic | +- | blocks | stalls | overlap futex | wic |')
    print('|---' * 8 + '|')
    for app, own in table.items():
        a = App(app, own, ['futex', 'wic']).until_narrow(8, 2, passes)
        middle, half = interval(a.ratios['wic'])
        all_.append(a)
        found.append((1 / middle, half))
        figures[f'{app}_{own.replace(" ", "_")}_futex_over_wic'] = 1 / middle
        print(f'| {app} | {a.per_message("wic"):.0f} | {1 / middle:.3f} | {half:.3f} | {len(a.ratios["wic"])} | '
              f'{a.median("wic", "sync_faults"):.0f} |',
              ' | '.join(f'{a.median(s, "overlap"):.2f}' for s in a.syncs), '|')
        sys.stdout.flush()
    half = math.sqrt(sum(h * h for _, h in found)) / len(found)
    print(f'geometric mean {geomean(r for r, _ in found):.4f} +- {half:.4f}')
    return geomean(r for r, _ in found), all_


def parked(rounds):
    print('\nthe ten applications: wic beside futex')
    ratio, all_ = beside_futex(APPS, min(rounds, PASSES))
    bar('apps_wic_over_futex_geomean', ratio, '>=', 0.97)
    bar('apps_overlap_wic', mean_overlap(all_, 'wic'), '>=', 0.8)
    overhead_of(all_)


def fine(rounds):
    print('\nfine granularity: wic beside futex')
    figures['apps_wic_over_futex_fine'], _ = beside_futex(FINE, min(rounds, 2))


def overhead_of(all_):
    print("\noverhead of WIC's parts, share of the workers' time (paper, figure 15)")
    print('| application | Interrupter | Activator: transfer | recycling | faults | us per stalled load |')
    print('|---' * 6 + '|')
    sums = []
    for a in all_:
        m = a.metrics['wic']

        def per(name):
            return statistics.median(v / (32e9 * s) for v, s in zip(m[name], m['seconds']))
        parts = [per(n) for n in ('sync_alloc_ns', 'sync_transfer_ns', 'sync_recycle_ns')]
        faults = statistics.median(m['sync_faults'])
        sums.append(sum(parts))
        print(f'| {a.name} | {parts[0]:.4%} | {parts[1]:.3%} | {parts[2]:.3%} | {faults:.0f} | '
              f'{statistics.median(m["sync_fault_ns"]) / max(faults, 1) / 1e3:.0f} |')
    print(f'mean of the sums {statistics.fmean(sums):.2%}')
    figures['overhead_mean'] = statistics.fmean(sums)


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
    bar('latency_wic_more_than_futex_us', statistics.median(more), '<=', 2.5)


def release(rounds):
    """Publishes to one of many stalled consumers. If they are on another core, the value is the cost for the producer. If
    they are on its own core, the value is the total cost."""
    found, rounds = {}, min(rounds, 4)
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
            ratio = statistics.median(m[what] / f[what] for m, f in zip(many, few))
            print(f'| {kind} | {"the same" if core == 0 else "another"} |', ' | '.join(cells), f'| {ratio:.2f} |')
            if kind == 'sync_wic':
                bar(f'release_4096_over_16_{"another" if core else "same"}_core', ratio, '<=', 1.2)


def scale(rounds):
    print('\nscaling: workers, all of which wait in turn; seconds, every message is checked')
    print('| workers | futex | wic | futex/wic |')
    print('|---|---|---|---|')
    for workers in (64, 256, 1024, 4096, 16384):
        found, devices = {'futex': [], 'wic': []}, max(2, workers // 4096)
        for turn in range(min(rounds, 3 if workers < 4096 else 2)):
            for sync in rotated(['futex', 'wic'], turn):
                m = run('conf/wic.ini', sync, 'run.workload=pattern', 'workload.pattern.iterations=3', 'workload.exchange.tp=5',
                        'workload.pattern.model=alternating', f'device.cpu.workers={workers // devices}',
                        'run.devices=' + ' '.join(f'cpu:{d}' for d in range(devices)), 'sync.wic.pages=65536')
                found[sync].append(m['seconds'][0])
                assert m['messages'][0] == 3 * workers
        ratio = statistics.median(f / w for f, w in zip(found['futex'], found['wic']))
        print(f'| {workers} | {statistics.median(found["futex"]):.4f} | {statistics.median(found["wic"]):.4f} | '
              f'{ratio:.3f} |')
        sys.stdout.flush()


PARTS = {'beside': beside, 'parked': parked, 'apps': apps, 'fine': fine, 'latency': latency, 'release': release,
         'scale': scale}
asked = arguments(__doc__, 5, 'beside,parked,apps,fine,latency,release,scale')
build = asked.build
run_parts(asked, PARTS)
if foreign:
    print(f'\nother programs used {statistics.median(foreign):.1%} of the processor time beside the applications, '
          f'{max(foreign):.1%} at most')
finish(build + '/bench/sync.json', foreign_cpu=foreign)
