#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of service requests for a victim, under each policy (docs/qos.md).

  bench/qos.py BUILD [--rounds N] [--ms N] [--part NAME]... [--set KEY=VALUE]...

Parts: pareto (eight combinations of policies), budget, tenants, idle, latency. All variants of a part run in each round, in
random order, so that other load affects all of them. A figure is the median over the rounds, of values or of ratios within a
round. All parts take about twelve minutes. The last lines are `bar NAME VALUE >=|<= TARGET ok|short`; the values of all
rounds go to BUILD/bench/qos.json. conf/qos/pareto.ini draws the front, with throttle and budget."""
import argparse, json, os, random, statistics, subprocess, sys, time

from figures import bar, figure, finish, interval

CORES = os.cpu_count()
SETTLE = 0.02  # seconds of requests before the victim starts
QUIET_US = 100  # the 99.9th percentile of the victim's stalls without requests, on an idle machine
WAITING = 16384  # requests in flight in the part `budget`
LIMITS = {'1%': 0.01, '5%': 0.05, '20%': 0.20}


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else float('nan')


class Bench:
    def __init__(self, o):
        self.o, self.rounds = o, o.rounds
        self.victim = f'{o.build}/bench/qos_victim {",".join(map(str, range(CORES)))} {o.ms}'

    def run(self, use, *sets, victim=True):
        """Returns the metrics of one sample of conf/qos/storm.ini, or None."""
        return self.end(self.begin(use, *sets, victim=victim), use)

    def begin(self, use, *sets, victim=True):
        storm = 'workload.requests_storm.'
        base = [storm + f'settle={SETTLE}s', 'run.warmup=0', 'run.samples=1', f'qos.use={use}', 'device.cpu.cores=0',
                storm + 'outstanding=1024', storm + 'pause=500us']
        base += [storm + 'victim=' + self.victim] if victim else []
        command = [f'{self.o.build}/gpuloom', 'run', 'conf/qos/storm.ini', '--quiet', '--json', '-']
        for one in base + list(sets) + self.o.set:
            command += ['--set', one]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self, p, what):
        out, talk = p.communicate()
        if p.returncode:
            print(f'# {what}: {talk.strip()}', file=sys.stderr)
            return None
        return {k: v['median'] for k, v in json.loads(out)['metrics'].items()}

    def rotate(self, variants):
        """Runs the variants {name: (use, sets)}, and returns {name: list of metrics}, with None for a failed run. If the victim is
        already disturbed before there are requests, other programs use the machine. Then the sample is repeated, for at most half
        of all samples."""
        found = {name: [] for name in variants}
        again = disturbed = 0
        for _ in range(self.rounds):
            for name in random.sample(list(variants), len(variants)):
                m = self.run(*variants[name])
                while m and m.get('victim_alone_stall_p999_us', 0) > QUIET_US:
                    if 2 * again >= len(variants) * self.rounds:
                        disturbed += 1
                        break
                    again += 1
                    m = self.run(*variants[name])
                found[name].append(m)
        print(f'# {again} samples taken again for what else ran, {disturbed} kept all the same')
        return found


def seconds(m):
    return m['requesting'] + SETTLE


def share(m):
    return m['qos_cpu'] / (seconds(m) * 1e9 * CORES) if m.get('requesting') else None


def rate(m):
    """Returns the number of requests served per second. Workers take answers in order, so their counters lag by up to a
    sweep."""
    return m['qos_requests'] / seconds(m)


def peak(m):
    """Returns the peak over any one-second window, as a share of the machine. A shorter sample is one window."""
    return m['qos_cpu_share_peak_1s']


def each(found, name, key):
    """Returns the values of all rounds, with None for those that are missing."""
    return [m and (key(m) if callable(key) else m.get(key)) for m in found[name]]


def of(found, name, key):
    return median(each(found, name, key))


def within(f, *lists):
    """Returns f of the values of each round that has all of them."""
    return [f(*row) for row in zip(*lists) if None not in row]


COMBINATIONS = ['split', 'coalesce split', 'steer split', 'coalesce steer split', 'monolithic',
                'coalesce monolithic', 'steer monolithic', 'coalesce steer monolithic']
PAPER = 'qos.monolithic.worker=yes'  # the paper's monolithic path keeps its worker thread


def pareto(b):
    variants = {c: (c, PAPER) for c in COMBINATIONS}
    found = b.rotate(variants)
    print('# variant | victim speed | requests/s | CPU share | ns/request | interrupts | wake-ups')
    for name in variants:
        row = [of(found, name, k) for k in ('victim_speed', rate, share, 'qos_cpu_per_request',
                                            'qos_interrupts', 'qos_wakeups')]
        print(f'# {name} | {row[0]:.3f} | {row[1]:.0f} | {row[2]:.4f} | {row[3]:.0f} | {row[4]:.0f} | {row[5]:.0f}')
    bar('victim-loss-unthrottled', within(lambda speed: 1 - speed, each(found, 'split', 'victim_speed')), '>=', 0.05)


# ---- a budget: throughput, CPU time, stalls

STORM = 'storm'
# The thread that simulates the accelerator uses core 0. Its cost there is not part of the path's cost.
ELSEWHERE = [f'qos.steer.cores={CORES - 1}']



def in_turns(m):
    """Returns the cost of a request within a burst, without the costs of waking and falling asleep."""
    return m['qos_cpu_rounds'] / m['qos_requests'] if m['qos_requests'] else None


def of_ideal(found, name, text):
    """Returns the throughput of each round relative to the ideal, which is the CPU limit divided by the cost of a request in a
    storm. In each round both runs were within a minute."""
    return within(lambda served, cost: served * cost / (LIMITS[text] * CORES * 1e9), each(found, name, rate),
                  each(found, STORM, 'qos_cpu_per_request'))


def per_burst(m):
    """Returns the CPU time of a burst in us, and the part for waking and falling asleep."""
    n = max(m['qos_naps'], 1)
    return m['qos_cpu'] / n / 1e3, (m['qos_cpu'] - m['qos_cpu_rounds']) / n / 1e3


def explain(found, name, text):
    """Computes the relative throughput from its parts: the share of a burst that is not spent on waking, times the ratio of
    the cost of a request in a storm to its cost here."""
    whole, wake = (median([per_burst(m)[i] for m in found[name] if m]) for i in (0, 1))
    warm, here = of(found, STORM, 'qos_cpu_per_request'), of(found, name, in_turns)
    used = of(found, name, share) / LIMITS[text]
    print(f'#   a burst: {whole:.0f} us, {wake:.1f} of them for waking; a request: {here:.0f} ns, {here - warm:+.0f} against '
          f'the storm; of the budget {used:.3f} used: {used:.3f} x {1 - wake / whole:.3f} x {warm / here:.3f} = '
          f'{used * (1 - wake / whole) * warm / here:.3f}')


def budget(b):
    """Prints the three bars at each limit. Also measures the paper's governor with the same accounting, and requests in the order
    of arrival at the smallest limit. The unthrottled path polls more often, for at most 512 answers each time."""
    waiting = [f'workload.requests.outstanding={WAITING}', 'qos.order=scan']
    variants = {STORM: ('monolithic steer', *ELSEWHERE, *waiting, 'workload.requests.pause=100us')}
    for text in LIMITS:
        variants['budget ' + text] = ('monolithic steer budget', *ELSEWHERE, f'qos.budget.limit={text}', *waiting)
        variants['throttle ' + text] = ('monolithic steer throttle', *ELSEWHERE, f'qos.throttle.limit={text}',
                                        'qos.throttle.charge=path', *waiting)
    use, *sets = variants['budget 1%']
    variants['arrival'] = (use, *sets, 'qos.order=arrival')
    found = b.rotate(variants)
    figure('order_scan_over_arrival', within(lambda own, their: own / their, each(found, 'budget 1%', rate), each(found, 'arrival', rate)))
    print(f'# a request in a storm: {of(found, STORM, "qos_cpu_per_request"):.0f} ns')
    for text, limit in LIMITS.items():
        name, other = 'budget ' + text, 'throttle ' + text
        bar(f'budget-{text}-cpu-over-any-second', within(lambda most: most / limit, each(found, name, peak)), '<=', 1.02)
        bar(f'budget-{text}-throughput-of-ideal', of_ideal(found, name, text), '>=', 0.85)
        bar(f'budget-{text}-stall-p999-us', each(found, name, 'victim_beside_stall_p999_us'), '<=', 200)
        explain(found, name, text)
        print(f'#   {of(found, name, rate):.0f} requests/s; stall alone '
              f'{of(found, name, "victim_alone_stall_p999_us"):.0f} us; victim speed '
              f'{of(found, name, "victim_speed"):.3f}')
        print(f'#   throttle: {of(found, other, rate):.0f}/s at share {of(found, other, share):.4f}')
        if limit < 0.2:
            bar(f'budget-{text}-over-throttle', within(lambda own, their: own / their, each(found, name, rate), each(found, other, rate)),
                '>=', 5)


def tenants(b):
    """Compares a tenant beside a flooding tenant with the same tenant alone, at a limit of 5 %. The tenant sends a
    request every 500 us, which is about half of its share: a request with a wake-up takes 11 us of CPU time. The
    path is in the real-time class. Otherwise both latencies include the time for which a woken thread waits for the
    victim."""
    storm = 'workload.requests_storm.'
    pace = [storm + 'pace=500us', 'qos.budget.limit=5%', storm + 'pause=50us', 'qos.class=fifo']
    two = ['device.cpu.workers=2', storm + 'tenants=2', 'device.cpu.cores=']
    variants = {'alone': ('monolithic budget', *pace, storm + 'outstanding=64'),
                'flooded': ('monolithic budget', *pace, *two, storm + 'outstanding=64'),
                'both flood': ('monolithic budget', *two, 'qos.budget.limit=5%')}
    found = b.rotate(variants)
    for name, p99 in (('alone', 'qos_p99'), ('flooded', 'qos_p99:t01')):
        print(f'# {name}: p99 {sorted(round(m[p99] / 1e3) for m in found[name] if m)} us')

    def over(metric):
        return within(lambda flooded, alone: flooded / alone, each(found, 'flooded', metric + ':t01'), each(found, 'alone', metric))
    bar('tenants-p99-flooded-over-alone', over('qos_p99'), '<=', 2)
    bar('tenants-fair-share', within(lambda *rates: min(rates) / (sum(rates) / 2), *(
        each(found, 'both flood', f'qos_per_s:t0{i}') for i in (0, 1))), '>=', 0.9)
    bar('tenants-paced-throughput', over('qos_per_s'), '>=', 0.9)


def idle_counters():
    ns = entries = 0
    for core in range(CORES):
        state = 0
        while True:
            try:
                folder = f'/sys/devices/system/cpu/cpu{core}/cpuidle/state{state}/'
                ns += int(open(folder + 'time').read()) * 1000
                entries += int(open(folder + 'usage').read())
            except OSError:
                break
            state += 1
    return ns, entries


def wakeups(pid):
    """Returns how often the threads of a process have slept so far, which equals their wake-ups."""
    n = 0
    for task in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{task}/status') as f:
            n += sum(int(line.split()[1]) for line in f if line.startswith('voluntary'))
    return n


def idle_window(seconds, pid=None):
    """Returns the share of time that cores were idle, the idle entries per second, and the wake-ups of a process."""
    begin, woke = idle_counters(), wakeups(pid) if pid else 0
    time.sleep(seconds)
    end = idle_counters()
    return ((end[0] - begin[0]) / seconds / 1e9 / CORES, (end[1] - begin[1]) / seconds,
            (wakeups(pid) - woke) / seconds if pid else 0)


def idle(b):
    """Measures an idle service: pairs of windows without and with the service, in alternating order. Idle entries of
    the machine vary by half from one second to the next, so the bar limits what the process can have added. Each
    wake-up of one of its threads ends at most one idle period of a core."""
    length, pairs = 1, []

    def without():
        return idle_window(length)

    def beside():
        p = b.begin('split', f'workload.requests.duration={length + 1}s', 'workload.requests_storm.pace=10s',
                    'workload.requests.pause=100s', victim=False)
        time.sleep(0.6)
        window = idle_window(length, p.pid)
        m = b.end(p, 'idle')
        time.sleep(0.2)  # the next window must not contain the end of the process
        return window + (m['qos_cpu_share'], m['qos_wakeups']) if m else None

    for i in range(2 * b.rounds):
        first = without() if i % 2 else beside()
        second = beside() if i % 2 else without()
        pairs.append((first, second) if i % 2 else (second, first))
        # Both windows are nearly idle; a busier pair indicates other load, since the service itself uses far less CPU
        # time.
        quiet = [p for p in pairs if p[1] and min(p[0][0], p[1][0]) >= 0.9]
        if len(quiet) == b.rounds:
            break
    print(f'# {len(pairs) - len(quiet)} of {len(pairs)} pairs left out: something else ran in them')
    pairs = quiet or [p for p in pairs if p[1]]
    bar('idle-service-cpu-share', [w[3] for _, w in pairs], '<=', 0.001)
    print(f'# wake-ups of the path in a sample, its start and end included: {median([w[4] for _, w in pairs]):.0f}')
    base = median([p[0][0] for p in pairs])
    if not base >= 0.5:
        print('# the machine itself is not idle: a comparison says nothing')
        pairs = []
    for i, what in ((0, 'residency'), (1, 'entries')):
        off = [w[i] / a[i] - 1 for a, w in pairs]
        low, high = interval(off) or (float('nan'), float('nan'))
        print(f'# {what} with over without, {len(off)} pairs: {median(off):+.4f}, 95 % within {low:+.4f} .. {high:+.4f}')
    bar('idle-residency-off-by', [1 - w[0] / a[0] for a, w in pairs], '<=', 0.02)
    bar('idle-entries-added-at-most', [w[2] / a[1] for a, w in pairs], '<=', 0.02)


def latency(b):
    """Sends one request at a time, on one core, monolithic. The value is relative to the direct call plus the wake-up
    of a thread."""
    found, direct = {'signal': [], 'fault': []}, []
    for _ in range(b.rounds):
        p = subprocess.run([f'{b.o.build}/bench/qos_direct'], capture_output=True, text=True)
        direct.append(json.loads(p.stdout))
        for service in found:
            m = b.run('monolithic steer', 'qos.steer.cores=0', f'workload.requests_storm.service={service}',
                      'workload.requests.outstanding=1', 'workload.requests.pause=0',
                      'workload.requests_storm.requests=20000', 'qos.class=fifo', victim=False)
            found[service].append(m and m['qos_p50'])
    wake = median([d['wake_ns'] for d in direct])
    for service in found:
        alone = median([d[service + '_ns'] for d in direct])
        print(f'# {service}: request {median(found[service]):.0f} ns, direct {alone:.0f} ns, wake {wake:.0f} ns')
        bar(f'latency-{service}-over-direct-and-wake', within(lambda took, d: took / (d[service + '_ns'] + d['wake_ns']),
                                                              found[service], direct), '<=', 2)


PARTS = {'pareto': (pareto, 10), 'budget': (budget, 10), 'tenants': (tenants, 10), 'idle': (idle, 20), 'latency': (latency, 10)}


def main():
    a = argparse.ArgumentParser()
    a.add_argument('build')
    a.add_argument('--rounds', type=int, help='of every part; by default as many as its figures need')
    a.add_argument('--ms', type=int, default=1100)
    a.add_argument('--part', action='append', choices=list(PARTS))
    a.add_argument('--set', action='append', default=[], help='KEY=VALUE for every run')
    a.add_argument('--seed', type=int, default=1)
    o = a.parse_args()
    random.seed(o.seed)
    b = Bench(o)
    print(f'# {CORES} cores, load {os.getloadavg()[0]:.1f} at the start; samples of {o.ms} ms')
    for part in o.part or PARTS:
        run, rounds = PARTS[part]
        b.rounds = o.rounds or rounds
        begin = time.monotonic()
        print(f'# ---- {part}: {b.rounds} rounds', flush=True)
        run(b)
        print(f'# {time.monotonic() - begin:.0f} s', flush=True)
    print(f'# load {os.getloadavg()[0]:.1f} at the end')
    finish(f'{o.build}/bench/qos.json', rounds={part: o.rounds or PARTS[part][1] for part in o.part or PARTS})


main()
