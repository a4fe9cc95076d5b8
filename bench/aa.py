#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how often `gpuloom compare` reports a difference between equal variants on a loaded machine, and how often it finds
a planted difference.

    bench/aa.py [BUILD] [--for SECONDS] [--spinners N] [--jobs NAME,NAME] [--only same|planted]

Nine jobs of 0.5 ms to 1 s are compared with themselves. Half of these trials use the best sample of each block. Six jobs of
10 ms and longer are compared with 3 % more work, always by the best sample, as docs/compare.md advises for loaded machines.
A trial has 20 blocks, or more for two of the jobs. Meanwhile other programs are busy half of the time, in bursts of up to
0.1 s (none with --spinners 0). Every trial is recorded at once. --for ends the program after the given time, and the next
call continues. --jobs selects jobs, separated by commas. --only same omits the planted differences. On two cores all trials
take two and a half hours, a third of it for the equal variants. The last lines are `bar NAME VALUE RELATION TARGET ok|short`.
"""
import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import time

SPELLS = """
import os, random, time
parent = os.getppid()
while os.getppid() == parent:
    end = time.monotonic() + random.uniform(0, 0.1)
    while time.monotonic() < end: pass
    time.sleep(random.uniform(0, 0.1))
"""
CLAIMS = ('FASTER', 'SLOWER')
BLOCKS = ['--blocks', '20', '--spread', '0']
BEST = ['--per-block', 'best']


def write_conf(path, text):
    with open(path, 'w') as out:
        out.write('[run]\n' + text + '[transport]\nuse = host\n')
    return path


def parts(build, folder):
    turns = write_conf(os.path.join(folder, 'aa-turns.ini'),
                       f'workload = {os.path.abspath(build)}/tests/plugins/workload_planted.so\n'
                       'devices = cpu:0 cpu:1\n[device.cpu]\noversubscribe = yes\n')
    program = write_conf(os.path.join(folder, 'aa-exec.ini'),
                         'workload = exec\ndevices = cpu:0\n[device.cpu]\nworkers = 1\n')
    files = [os.path.join(os.path.abspath(folder), name) for name in ('aa-bytes', 'aa-more-bytes')]
    for name, size in zip(files, (20000000, 20600000)):
        with open(name, 'wb') as out:
            out.write(bytes(size))
    same, few = ['--vary', 'run.title=a,b'], ['--samples-per-block', '2']
    many = ['--samples-per-block', '32']
    digest = ['--vary', 'workload.exec.command=' + ','.join(f'sha1sum {f}' for f in files)]
    # A block of a longer job has few samples, to save time. The number of samples does not affect false claims.
    jobs = {
        'memset_100k': (['conf/memset.ini', '--set', 'workload.memset.tasks=100000'], [], None),
        'memset_1m': (['conf/memset.ini'], [], None),
        # The memory placement of a stack changes times by more than 3 %, so more blocks help more than more samples.
        'memset_2m': (['conf/memset.ini'], None, ['--vary', 'workload.memset.tasks=2000000,2060000', '--blocks', '120',
                                                  '--samples-per-block', '8']),
        'fib': (['conf/fib.ini'], few, None),
        'uts': (['conf/uts.ini'], few, None),
        'contains': (['conf/contains.ini'], few, ['--vary', 'workload.contains.documents=4000,4120']),
        'wic': (['conf/wic.ini'], [], None),
        'trigger': (['conf/msgrate.ini'], few, ['--vary', 'workload.msgrate.fires=300000,309000', *many]),
        # With `split` four threads share the cores, and the best sample of a block varies by 5 to 10 %. `monolithic`
        # has two threads.
        'qos': (['conf/qos/storm.ini'], few, ['--set', 'qos.use=monolithic', '--vary', 'workload.requests_storm.requests=5000,5150',
                                              '--blocks', '60', *many]),
        'exec': ([program, '--set', f'workload.exec.command=sha1sum {files[0]}'], few, digest),
        'turns': ([turns], None, ['--vary', 'workload.planted.turns=6000000,6180000']),
    }
    todo = {}
    for name, (conf, aa, planted) in jobs.items():
        if aa is not None:
            todo['same_' + name] = (40, [*conf, *same, *BLOCKS, *aa])
        if planted:
            conf = [program] if name == 'exec' else conf
            todo['planted_' + name] = (20, [*conf, *BLOCKS, *planted, *BEST])
    todo['planted_wall'] = (20, [turns, '--vary', 'workload.planted.turns=600000,618000', *BLOCKS, *BEST, *many,
                                 '--metric', 'seconds'])
    return todo


def order(parts):
    """Returns all trials. The parts are interleaved evenly, so that partial results cover each part."""
    every = []
    for name, (trials, _) in parts.items():
        every += [((i + 0.5) / trials, name, i) for i in range(trials)]
    return [(name, i) for _, name, i in sorted(every)]


def trial(gpuloom, args, seed, out):
    run = subprocess.run([gpuloom, 'compare', *args, '--seed', str(seed + 1), '--quiet', '--json', out],
                         stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if run.returncode:
        sys.exit(f'gpuloom compare {" ".join(args)}: exit {run.returncode}\n{run.stderr}')
    doc = json.load(open(out))
    return {'verdicts': {c['metric']: c['verdict'] for c in doc['comparisons']},
            'effects': {c['metric']: c['effect'] for c in doc['comparisons']},
            'quiet': doc['quiet']['quiet'], 'seconds': doc['design']['seconds']}


def key_of(gpuloom, spinners, args):
    """Returns the identity of a trial. Recorded trials of another build, load or command have another identity and are ignored."""
    with open(gpuloom, 'rb') as f:
        binary = hashlib.sha256(f.read()).hexdigest()
    return hashlib.sha256(json.dumps([binary, spinners, args]).encode()).hexdigest()


def read_journal(path, key):
    lines = []
    if os.path.exists(path):
        lines = [json.loads(line) for line in open(path) if line.endswith('\n')]
    return [t for t in lines if t['part'] in key and t['key'] == key[t['part']]]


def share_of(trials, words, metrics=None):
    hits = sum(any(v in words for m, v in t['verdicts'].items() if not metrics or m in metrics)
               for t in trials)
    return hits / len(trials) if trials else float('nan')


def bar(figure, value, relation, target):
    ok = value <= target if relation == '<=' else value >= target
    print(f'bar {figure} {value:.4g} {relation} {target:g} {"ok" if ok else "short"}')
    return {'figure': figure, 'value': value, 'relation': relation, 'target': target, 'ok': ok}


def tell(name, trials):
    counts = {}
    for t in trials:
        for metric, verdict in t['verdicts'].items():
            of = counts.setdefault(metric, {})
            of[verdict] = of.get(verdict, 0) + 1
    for metric, of in counts.items():
        print(f'{name}: {metric}: ' + ', '.join(f'{n} {v}' for v, n in sorted(of.items())))
    return counts


def main():
    p = argparse.ArgumentParser()
    p.add_argument('build', nargs='?', default='build')
    p.add_argument('--for', dest='limit', type=float, default=float('inf'))
    p.add_argument('--spinners', type=int, default=2)
    p.add_argument('--jobs', default='')
    p.add_argument('--only', choices=('same', 'planted'))
    a = p.parse_args()
    began = time.monotonic()
    gpuloom, folder = os.path.join(a.build, 'gpuloom'), os.path.join(a.build, 'bench')
    os.makedirs(folder, exist_ok=True)
    todo = parts(a.build, folder)
    if a.jobs:
        todo = {n: part for n, part in todo.items() if n.partition('_')[2] in a.jobs.split(',')}
    if a.only:
        todo = {n: part for n, part in todo.items() if n.startswith(a.only)}
    key = {n: key_of(gpuloom, a.spinners, [args, BEST]) for n, (_, args) in todo.items()}
    journal = os.path.join(folder, 'aa.jsonl')
    done = read_journal(journal, key)
    have = {(t['part'], t['trial']) for t in done}
    wanted = order(todo)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the exit handler stops the spinners
    spinners = [subprocess.Popen([sys.executable, '-c', SPELLS]) for _ in range(a.spinners)]
    try:
        with open(journal, 'a') as out:
            for name, i in wanted:
                if (name, i) in have:
                    continue
                if time.monotonic() - began > a.limit:
                    break
                args = todo[name][1] + (BEST if name.startswith('same') and i % 2 else [])
                result = trial(gpuloom, args, i, os.path.join(folder, 'aa-one.json'))
                done.append({'part': name, 'trial': i, 'key': key[name], **result})
                out.write(json.dumps(done[-1]) + '\n')
                out.flush()
    finally:
        for s in spinners:
            s.kill()
            s.wait()
    by = {name: [t for t in done if t['part'] == name] for name in todo}
    counts = {name: tell(name, trials) for name, trials in by.items()}
    left = len(set(wanted) - {(t['part'], t['trial']) for t in done})
    bars = []
    for name, trials in by.items():
        if trials and name.startswith('same_'):
            bars.append(bar(name.replace('same', 'aa_claims'), share_of(trials, CLAIMS), '<=', 0.05))
        elif trials:
            bars.append(bar(name.replace('planted', 'planted_found'), share_of(trials, ('SLOWER',)), '>=', 0.8))
    found = [b['ok'] for b in bars if b['figure'].startswith('planted')]
    if found:
        bars.append(bar('planted_found_jobs', sum(found) / len(found), '>=', 0.8))
    with open(os.path.join(folder, 'aa.json'), 'w') as out:
        json.dump({'schema': 'gpuloom.bench-aa/1', 'spinners': a.spinners,
                   'trials': {n: len(t) for n, t in by.items()}, 'left': left, 'verdicts': counts,
                   'bars': bars}, out, indent=1)
        out.write('\n')
    if left:
        print(f'{left} of {len(wanted)} trials are left: the same command goes on', file=sys.stderr)


main()
