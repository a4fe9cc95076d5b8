#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Virtual time: how fast it goes, the same twice, and the network beside SimGrid's.

  bench/sim.py BUILD [--rounds N] [--only PART,...]   parts: events twice ring

events: what one core plays in a second, tasks on 132 workers and a ring of 256 ranks. twice: 1,024 ranks, their memory and
time, and whether two runs give the same. ring: simulated time of a ring beside SimGrid's model CM02, and real time at 1,024
ranks. Closing lines `bar FIGURE VALUE >=|<= TARGET ok|short|missing`; all figures go to BUILD/bench/sim.json."""
import json, os, re, resource, statistics, subprocess, time

from figures import arguments, bar, call, finish, run_parts, settings

asked = arguments(__doc__, 3, 'events,twice,ring')
build = asked.build
HUGE = 'conf/sim/allreduce-1024.ini'
# Costs that a model of a network alone does not have.
BARE = ['trigger.gputn.sim_trigger=0', 'trigger.gputn.sim_overhead=0', 'trigger.gputn.sim_gap=0', 'device.sim.stream=0',
        'trigger.gputn.sim_hosts_per_leaf=0', 'trigger.gputn.sim_latency=800ns', 'device.sim.load_far=50ns',
        'device.sim.load_near=10ns', 'device.sim.fence_sys=0', 'device.sim.atomic_near=10ns']


def play(conf, *own):
    """The result, the events, and the seconds that the world took to play them."""
    done = subprocess.run([build + '/gpuloom', 'run', conf, '--samples', '1', '--log', 'info', '--quiet', '--json', '-',
                           *settings(['run.warmup=0', 'run.timeout=10m', *own])], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    events, took = re.findall(r'(\d+) events in (\S+) s', done.stderr)[-1]
    return json.loads(done.stdout), int(events), float(took)


def events(rounds):
    jobs = {'tasks': ('conf/sim/h200.ini', 'workload.uts.depth=11'),
            'ring': (HUGE, 'run.ranks=256')}
    for name, (conf, *own) in jobs.items():
        rates = []
        for _ in range(rounds):
            _, n, took = play(conf, *own)
            rates.append(n / took)
        print(f'{name}: {statistics.median(rates) / 1e6:.3g} M events/s')
        bar(f'sim_{name}_events_per_s', statistics.median(rates), '>=', 3e6)


def same(result):
    """What does not depend on the machine."""
    return [result[k] for k in ('status', 'metrics', 'workers')] + [s['seconds'] for s in result['samples']]


def twice(_):
    began = time.monotonic()
    one, n, took = play(HUGE)
    whole = time.monotonic() - began
    two = play(HUGE)[0]
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024 / 1024
    print(f'1,024 ranks: {whole:.1f} s, of which {took:.1f} s for {n / 1e6:.1f} M events, {most:.2f} GiB')
    bar('sim_1024_s', whole, '<=', 60)
    bar('sim_1024_gib', most, '<=', 4)
    bar('sim_1024_differences', int(same(one) != same(two)), '<=', 0)


def platform(ranks):
    path = f'{build}/bench/ring-{ranks}.xml'
    with open(path, 'w') as out:
        out.write('<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
                  f'<platform version="4.1">\n<cluster id="c" prefix="h" suffix="" radical="0-{ranks - 1}" speed="1Gf" '
                  'bw="12.5GBps" lat="400ns" sharing_policy="SPLITDUPLEX"/>\n</platform>\n')
    return path


def simgrid(ranks, size):
    out = call([f'{build}/bench/peers/ring_simgrid', platform(ranks), str(ranks), str(size), '--cfg=network/model:CM02',
                '--cfg=network/TCP-gamma:0', '--log=root.thresh:error'])
    return tuple(map(float, out.split()))


def ring(_):
    if not os.access(f'{build}/bench/peers/ring_simgrid', os.X_OK):
        bar('sim_over_simgrid_simulated', None, '<=', 1.1)
        bar('simgrid_over_sim_real', None, '>=', 20)
        return
    ratios = []
    for ranks, size in ((8, 65536), (64, 65536), (64, 16384)):
        ours = play(HUGE, f'run.ranks={ranks}', f'workload.allreduce.bytes={ranks * size}', *BARE)[0]['samples'][0]['seconds']
        theirs = simgrid(ranks, size)[0]
        ratios.append(max(ours / theirs, theirs / ours))
        print(f'{ranks} ranks, {size} B: {ours * 1e6:.1f} us, SimGrid {theirs * 1e6:.1f} us')
    bar('sim_over_simgrid_simulated', max(ratios), '<=', 1.1)
    took, theirs = play(HUGE, *BARE)[2], simgrid(1024, 8192)[1]
    print(f'1,024 ranks: {took:.2f} s, SimGrid {theirs:.2f} s')
    bar('simgrid_over_sim_real', theirs / took, '>=', 20)


run_parts(asked, {'events': events, 'twice': twice, 'ring': ring})
finish(f'{build}/bench/sim.json')
