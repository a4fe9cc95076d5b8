#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures simulations: their speed and reproducibility, and the simulated network compared with SimGrid's.

  bench/sim.py BUILD [--rounds N] [--only PART,...]   parts: events twice ring real

events: simulated accesses and steps per CPU second, for tasks on 132 workers and for a ring of 256 ranks. twice: the same for
1,024 ranks, with memory and time, and whether two runs are identical. ring: the simulated time of a ring compared with
SimGrid's model CM02, and the CPU seconds at 1,024 ranks.
real: the same confs on real cores and simulated. The costs of the simulation come from `gpuloom doctor --profile`, from
messages of two sizes, and from ranks that compute concurrently. A rank needs two cores. A figure is the median over the rounds.
Simulated times are the same in each round. The last lines are `bar NAME VALUE >=|<= TARGET ok|short|missing`; the values of all
rounds go to BUILD/bench/sim.json."""
import json, os, re, statistics, subprocess, tempfile, time

from figures import arguments, bar, call, count, finish, ratios, run_parts, settings, worst_of

asked = arguments(__doc__, 6, 'events,twice,ring,real')
build = asked.build
HUGE = 'conf/sim/allreduce-1024.ini'
# SimGrid models only the network, so these costs are 0 or as in its model.
BARE = ['trigger.gputn.sim_trigger=0', 'trigger.sim_overhead=0', 'trigger.sim_gap=0', 'device.sim.stream=0',
        'trigger.sim_hosts_per_leaf=0', 'trigger.sim_latency=800ns', 'device.sim.load_host=50ns',
        'device.sim.load_local=10ns', 'device.sim.fence_sys=0', 'device.sim.atomic_local=10ns']


def play(conf, *own):
    """Returns the result, the events, the CPU seconds of the simulation, and the memory of the command in GiB."""
    with tempfile.TemporaryFile('w+') as out, tempfile.TemporaryFile('w+') as talk:
        job = subprocess.Popen([build + '/gpuloom', 'run', conf, '--samples', '1', '--log', 'info', '--quiet', '--json', '-',
                                *settings(['run.warmup=0', 'run.timeout=10m', *own])], stdout=out, stderr=talk)
        _, job.returncode, used = os.wait4(job.pid, 0)
        out.seek(0), talk.seek(0)
        said = talk.read()
        if job.returncode:
            raise SystemExit(said)
        events, took = re.findall(r'(\d+) events in (\S+) s', said)[-1]
        return json.load(out), int(events), float(took), used.ru_maxrss / 1024 / 1024


def events(rounds):
    jobs = {'tasks': ('conf/sim/h200.ini', 'workload.uts.depth=11'),
            'ring': (HUGE, 'run.ranks=256')}
    for name, (conf, *own) in jobs.items():
        rates = []
        for _ in range(rounds):
            _, n, took, _ = play(conf, *own)
            rates.append(n / took)
        print(f'{name}: {statistics.median(rates) / 1e6:.3g} M events/s')
        bar(f'sim_{name}_events_per_s', rates, '>=', 3e6)


def same(result):
    """Returns the parts of a result that do not depend on the machine."""
    return [result[k] for k in ('status', 'metrics', 'workers')] + [s['seconds'] for s in result['samples']]


def twice(rounds):
    results, rates, whole, gib = [], [], [], []
    for _ in range(max(2, rounds)):
        began = time.monotonic()
        result, n, took, memory = play(HUGE)
        results.append(same(result)), rates.append(n / took), whole.append(time.monotonic() - began), gib.append(memory)
    print(f'1,024 ranks: {statistics.median(whole):.1f} s, {n / 1e6:.1f} M events, {statistics.median(gib):.2f} GiB')
    bar('sim_1024_events_per_s', rates, '>=', 3e6)
    bar('sim_1024_s', whole, '<=', 60)
    bar('sim_1024_gib', gib, '<=', 4)
    count('sim_1024_differences', sum(one != results[0] for one in results[1:]), len(results) - 1, '<=', 0)


def platform(ranks):
    path = f'{build}/bench/ring-{ranks}.xml'
    with open(path, 'w') as out:
        out.write('<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
                  f'<platform version="4.1">\n<cluster id="c" prefix="h" suffix="" radical="0-{ranks - 1}" speed="1Gf" '
                  'bw="12.5GBps" lat="400ns" sharing_policy="SPLITDUPLEX"/>\n</platform>\n')
    return path


def simgrid(ranks, size):
    """Returns the simulated seconds and the CPU seconds."""
    out = call([f'{build}/bench/peers/ring_simgrid', platform(ranks), str(ranks), str(size), '--cfg=network/model:CM02',
                '--cfg=network/TCP-gamma:0', '--cfg=network/crosstraffic:0', '--log=root.thresh:error'])
    return tuple(map(float, out.split()))


def apart(a, b):
    return max(a / b, b / a)


def ring(rounds):
    if not os.access(f'{build}/bench/peers/ring_simgrid', os.X_OK):
        bar('sim_over_simgrid_simulated', [], '<=', 1.1), bar('simgrid_over_sim_real', [], '>=', 20)
        return
    cases, sim, other = {}, [], []
    for _ in range(rounds):
        for ranks, size in ((8, 65536), (64, 65536), (64, 16384)):
            ours = play(HUGE, f'run.ranks={ranks}', f'workload.allreduce.bytes={ranks * size}', *BARE)[0]['samples'][0]['seconds']
            cases.setdefault((ranks, size), []).append((ours, simgrid(ranks, size)[0]))
        sim.append(play(HUGE, *BARE)[2])
        other.append(simgrid(1024, 8192)[1])
    for (ranks, size), pairs in cases.items():
        print(f'{ranks} ranks, {size} B: {pairs[0][0] * 1e6:.1f} us, SimGrid {pairs[0][1] * 1e6:.1f} us')
    print(f'1,024 ranks: {statistics.median(sim):.2f} s, SimGrid {statistics.median(other):.2f} s')
    bar('sim_over_simgrid_simulated', worst_of([apart(a, b) for a, b in pairs] for pairs in cases.values()), '<=', 1.1)
    bar('simgrid_over_sim_real', ratios(other, sim), '>=', 20)


def seconds(conf, *own):
    done = subprocess.run([build + '/gpuloom', 'run', *conf, '--quiet', '--json', '-', *settings(own)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return statistics.median(s['seconds'] for s in json.loads(done.stdout)['samples'] if not s['warmup'])


class Network:
    """Compares a provider on this machine with its simulation."""

    def __init__(self, provider, profile, rounds):
        self.real = [f'trigger.provider={provider}', 'run.samples=7', 'run.warmup=2']
        self.sim = ['run.devices=sim:0', 'run.samples=1', 'run.warmup=0']
        self.profile, self.rounds = profile, rounds
        # Two messages that follow each other at once give the gap. The latency is the time of one message minus the
        # costs of everything but the network. The rate is the cost of bytes.
        self.net = ['trigger.sim_latency=0ns', 'trigger.sim_rate=1e15', 'trigger.sim_gap=1us']
        here, there = (self.least('msgrate', ['workload.msgrate.operation=put', 'workload.msgrate.per=1',
                                               'workload.msgrate.fires=20000'], simulated) for simulated in (False, True))
        self.net[2] = f'trigger.sim_gap={1000 * here / there:.0f}ns'
        free, whole = ([self.one_way(size, simulated) for size in (8, 65536)] for simulated in (True, False))
        self.net[0] = f'trigger.sim_latency={max(whole[0] - free[0], 0) * 1e9:.0f}ns'
        self.net[1] = f'trigger.sim_rate={(65536 - 8) / max(whole[1] - whole[0] - (free[1] - free[0]), 1e-9):.6g}'

    def run(self, conf, ranks, own, simulated, stream=0):
        if simulated:
            return seconds([f'conf/{conf}.ini', self.profile], f'run.ranks={ranks}', f'device.sim.stream={stream:.0f}ns',
                           *self.sim, *self.net, *own)
        return seconds([f'conf/{conf}.ini', '-n', str(ranks)], *self.real, *own)

    def least(self, conf, own, simulated):
        """Returns the smallest of several real times, since other load may affect some runs. The parameters of the simulation
        come from it."""
        return min(self.run(conf, 2, own, simulated) for _ in range(1 if simulated else self.rounds))

    def one_way(self, size, simulated):
        return self.least('pingpong', ['workload.pingpong.rounds=1000', f'workload.pingpong.bytes={size}'], simulated) / 2000


def computing(ranks):
    """Returns the seconds of a rank that only computes while others do the same, because cores share resources. The
    slowest rank counts, since ranks wait for each other."""
    mine = sorted(os.sched_getaffinity(0))
    share = [mine[len(mine) * r // ranks:len(mine) * (r + 1) // ranks] for r in range(ranks)]
    jobs = [subprocess.Popen(['taskset', '-c', ','.join(map(str, cores)), build + '/gpuloom', 'run', 'conf/jacobi2d.ini', '--quiet',
                              '--json', '-', *settings(['workload.jacobi2d.n=128', 'run.samples=60'])], stdout=subprocess.PIPE, text=True)
            for cores in share]
    return max(statistics.median(s['seconds'] for s in json.loads(job.communicate()[0])['samples']) for job in jobs)


def real(rounds):
    cores = len(os.sched_getaffinity(0))
    profile = f'{build}/bench/profile-cpu.ini'
    with open(profile, 'w') as out:
        out.write(call([build + '/gpuloom', 'doctor', '--profile', 'cpu:0', '--set', 'device.cpu.workers=1']))
    jobs = {'jacobi2d': ['workload.jacobi2d.n=256'], 'allreduce': ['workload.allreduce.bytes=64KiB']}
    # The computation of a workload is modelled as streamed memory. One rank without messages gives the amount.
    there = seconds(['conf/jacobi2d.ini', profile], 'workload.jacobi2d.n=128', 'run.samples=1', 'run.devices=sim:0', 'device.sim.stream=100ns')
    stream = {n: 100 * min(computing(n) for _ in range(rounds)) / there for n in (2, 4, 8) if 2 * n <= cores}
    print('1 KiB streamed, by ranks:', {n: f'{ns:.0f} ns' for n, ns in stream.items()})
    for provider in 'shm', 'tcp':
        off = []
        if cores >= 4:
            net = Network(provider, profile, rounds)
            print(f'{provider}: {", ".join(net.net)}')
            points = [('pingpong', 2, [f'workload.pingpong.bytes={size}', 'workload.pingpong.rounds=1000']) for size in (512, 8192)]
            points += [(job, n, own) for job, own in jobs.items() for n in stream]
            there = [net.run(job, n, own, True, stream[n]) for job, n, own in points]
            here = [[net.run(job, n, own, False) for job, n, own in points] for _ in range(rounds)]
            for (job, n, own), simulated, real_ in zip(points, there, zip(*here)):
                print(f'{provider}: {job}, {n} ranks, {own[0].split(".")[-1]}: real {statistics.median(real_) * 1e6:.1f} us, '
                      f'simulated {simulated * 1e6:.1f} us')
            off = [statistics.median(map(apart, row, there)) for row in here]
        bar(f'sim_against_{provider}', off, '<=', 1.2)  # of each round, the median over the points


run_parts(asked, {'events': events, 'twice': twice, 'ring': ring, 'real': real})
finish(f'{build}/bench/sim.json')
