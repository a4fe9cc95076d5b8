#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how often `gpuloom compare` reports a difference between equal variants on a loaded machine, and how often it finds
a planted difference.

    bench/aa.py [BUILD] [--for SECONDS] [--spinners N] [--jobs NAME,NAME] [--only same|planted]
    bench/aa.py [BUILD] --rules [--pairs N] [--planted PERCENT,...] [--for SECONDS] [--spinners N]
    bench/aa.py [BUILD] --device DEVICE [--pairs N] [--planted PERCENT,...] [--for SECONDS]
    bench/aa.py [BUILD] --quick

Nine jobs of 0.5 ms to 1 s are compared with themselves. Half of these trials use the best sample of each block. Six jobs of
10 ms and longer are compared with 3 % more work, always by the best sample, as docs/compare.md advises for loaded machines.
A trial has 20 blocks, or more for two of the jobs. Meanwhile other programs are busy half of the time, in bursts of up to
0.1 s (none with --spinners 0). Every trial is recorded at once. --for ends the program after the given time, and the next
call continues. --jobs selects jobs, separated by commas. --only same omits the planted differences. On two cores all trials
take two and a half hours, a third of it for the equal variants. The last lines are `bar NAME VALUE RELATION TARGET ok|short`. The counts go to
BUILD/bench/aa.json.

--rules judges the same samples by several rules: that of gpuloom, Welch's t-test as in hyperfine's scripts/welch_ttest.py
(p < 0.05), and that of nvbench's nvbench_compare.py (the means differ by more than the smaller relative standard deviation).
N pairs (200) are interleaved by `gpuloom compare`, and N pairs are run one after the other by `gpuloom run`, as the other two
programs do. They are equal pairs, of which every claim is false, and N of each --planted difference: the second variant has
1, 2 or 3 percent more work. The rule `best of each block` has samples of its own (--per-block best). The output has the number of
false claims, and of the pairs that are judged as slower. Pairs are recorded with their samples in BUILD/bench/aa-rules.jsonl,
and the counts go to BUILD/bench/aa-rules.json.

--device is --rules with one job, whose stores the workers of a GPU such as cuda:0 make, without background load. Pairs are
interleaved, and only the default rule of gpuloom judges them beside the other two. The counts go to BUILD/bench/aa-device.json.

--quick is --rules with 100 pairs of one job of 1.5 ms, without background load. It ends within ten minutes, and the next call
continues if pairs are left.
"""
import argparse
import hashlib
import json
import math
import os
import statistics
import signal
import subprocess
import sys
import time

from figures import count, finish

SPELLS = """
import os, random, time
parent = os.getppid()
while os.getppid() == parent:
    end = time.monotonic() + random.uniform(0, 0.1)
    while time.monotonic() < end: pass
    time.sleep(random.uniform(0, 0.1))
"""
CLAIMS = ('FASTER', 'SLOWER')
RULES = {('interleaved', 'gpuloom, interleaved'): 'turns_gpuloom', ('interleaved', 'gpuloom, best of each block'): 'turns_best',
         ('interleaved', 'gpuloom, from files'): 'files_gpuloom',
         ('interleaved', 'Welch'): 'turns_welch', ('interleaved', 'nvbench_compare'): 'turns_nvbench',
         ('one after the other', 'gpuloom, from files'): 'after_gpuloom', ('one after the other', 'Welch'): 'after_welch',
         ('one after the other', 'nvbench_compare'): 'after_nvbench'}
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


def hits(trials, words):
    return sum(any(v in words for v in t['verdicts'].values()) for t in trials)


def tell(name, trials):
    counts = {}
    for t in trials:
        for metric, verdict in t['verdicts'].items():
            of = counts.setdefault(metric, {})
            of[verdict] = of.get(verdict, 0) + 1
    for metric, of in counts.items():
        print(f'{name}: {metric}: ' + ', '.join(f'{n} {v}' for v, n in sorted(of.items())))
    return counts


# ---- several rules on the same samples --------------------------------------------------------------

RULE_JOBS = {  # a conf, a setting that is proportional to the work, and its value
    'memset': (['conf/memset.ini'], 'workload.memset.tasks', 100000),
    'contains': (['conf/contains.ini'], 'workload.contains.documents', 400),
    'turns': (None, 'workload.planted.turns', 600000),
}
DESIGNS = 'interleaved', 'one after the other'


def incomplete_beta(a, b, x):
    """Returns the regularized incomplete beta function, by Lentz's continued fraction (Numerical Recipes, 6.4)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    tiny, f, c, d = 1e-300, 1.0, 1.0, 0.0
    for i in range(300):
        m = i // 2
        if i == 0:
            n = 1.0
        elif i % 2 == 0:
            n = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            n = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / ((1 + n * d) or tiny)
        c = (1 + n / c) or tiny
        f *= c * d
        if abs(1 - c * d) < 1e-12:
            break
    return front * (f - 1)


def welch_p(x, y):
    """Returns the two-sided p of Welch's t-test, as scipy.stats.ttest_ind(x, y, equal_var=False) does."""
    u, v = statistics.variance(x) / len(x), statistics.variance(y) / len(y)
    if u + v == 0:
        return float(statistics.mean(x) == statistics.mean(y))
    t = (statistics.mean(x) - statistics.mean(y)) / math.sqrt(u + v)
    df = (u + v) ** 2 / (u * u / (len(x) - 1) + v * v / (len(y) - 1))
    return incomplete_beta(df / 2, 0.5, df / (df + t * t))


def by_welch(x, y):
    if welch_p(x, y) >= 0.05:
        return 'SAME'
    return 'SLOWER' if statistics.mean(y) > statistics.mean(x) else 'FASTER'


def by_nvbench(x, y):
    mean = statistics.mean(x), statistics.mean(y)
    noise = min(statistics.stdev(x) / mean[0], statistics.stdev(y) / mean[1])
    change = (mean[1] - mean[0]) / mean[0]
    return 'SAME' if abs(change) <= noise else 'SLOWER' if change > 0 else 'FASTER'


def by_files(gpuloom, folder, results, setting):
    """Returns gpuloom's verdict of two results, which may differ in a setting."""
    paths = [os.path.join(folder, name) for name in ('aa-first.json', 'aa-second.json')]
    for path, result in zip(paths, results):
        with open(path, 'w') as out:
            json.dump(result, out)
    return measure(gpuloom, ['compare', *paths, f'--allow-mismatch={setting}', '--metric', 'seconds'])['comparisons'][0]['verdict']


def measure(gpuloom, args):
    """Runs the command, and returns its document. On a machine that is very busy, a time limit may end a run; it is repeated."""
    for _ in range(3):
        run = subprocess.run([gpuloom, *args, '--quiet', '--json', '-'], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if run.returncode != 124:
            break
    if run.returncode:
        sys.exit(f'gpuloom {" ".join(args)}: exit {run.returncode}\n{run.stderr}')
    return json.loads(run.stdout)


def pair(gpuloom, folder, job, design, percent, seed, both):
    """Measures a pair, the second of which has this much more work, and returns what each rule says. both: also by the best sample
    of each block, and from files."""
    conf, setting, work = job
    works, verdicts = [round(work * (1 + share / 100)) for share in (0, percent)], {}
    if design == DESIGNS[0]:
        vary = f'{setting}={works[0]},{works[1]}' if percent else 'run.title=a,b'
        turns = ['compare', *conf, '--set', f'{setting}={work}', '--vary', vary, *BLOCKS, '--samples-per-block', '2',
                 '--metric', 'seconds', '--seed', str(seed + 1)]
        doc = measure(gpuloom, turns)
        verdicts['gpuloom, interleaved'] = doc['comparisons'][0]['verdict']
        if both:
            verdicts['gpuloom, best of each block'] = measure(gpuloom, turns + BEST)['comparisons'][0]['verdict']
        results = [v['result'] for v in doc['variants']]
    else:
        results = [measure(gpuloom, ['run', *conf, '--samples', '40', '--set', 'run.warmup=2', '--set', f'{setting}={n}']) for n in works]
    x, y = (r['metrics']['seconds']['samples'] for r in results)
    if both:
        verdicts['gpuloom, from files'] = by_files(gpuloom, folder, results, setting)
    verdicts['Welch'], verdicts['nvbench_compare'] = by_welch(x, y), by_nvbench(x, y)
    return {'samples': [x, y], 'verdicts': verdicts}


def study(a, gpuloom, folder):
    parts(a.build, folder)  # writes aa-turns.ini
    jobs = {**RULE_JOBS, 'turns': ([os.path.join(folder, 'aa-turns.ini')], *RULE_JOBS['turns'][1:])}
    designs, what = DESIGNS, 'device' if a.device else 'rules'
    if a.device:
        text = f'workload = memset_loop\ndevices = {a.device}\n[scheduler]\nuse = static\n[termination]\nuse = counter\n'
        conf = write_conf(os.path.join(folder, 'aa-device.ini'), text)
        jobs = {'loop': ([conf, '--set', 'transport.use=p2p'], 'workload.memset_loop.tasks', 4000000)}
        designs = DESIGNS[:1]
    names, planted = ['turns'] if a.quick else list(jobs), [0.0, *map(float, a.planted.split(','))]
    journal, began = os.path.join(folder, f'aa-{what}.jsonl'), time.monotonic()
    key = key_of(gpuloom, a.spinners, [jobs, names, BLOCKS])
    done = [json.loads(line) for line in open(journal) if line.endswith('\n')] if os.path.exists(journal) else []
    done = [t for t in done if t['key'] == key and t['percent'] in planted]
    have = {(t['design'], t['percent'], t['number']) for t in done}
    with open(journal, 'a') as out:
        for i in range(a.pairs):
            for design in designs:
                for percent in planted:
                    if (design, percent, i) in have or time.monotonic() - began > a.limit:
                        continue
                    name = names[i % len(names)]
                    one = pair(gpuloom, folder, jobs[name], design, percent, i, not a.device)
                    done.append({'key': key, 'design': design, 'percent': percent, 'number': i, 'job': name, **one})
                    out.write(json.dumps(done[-1]) + '\n')
                    out.flush()
    tell_rules(done, planted, what)
    finish(os.path.join(folder, f'aa-{what}.json'), spinners=a.spinners, jobs=names, journal=os.path.basename(journal),
           pairs=[{k: t[k] for k in ('design', 'percent', 'number', 'job', 'verdicts')} for t in done])


def tell_rules(done, planted, what):
    print('| design | rule | pairs | false claims |', ' | '.join(f'+{p:g} % found' for p in planted[1:]), '|')
    print('|---' * (4 + len(planted) - 1) + '|')
    for (design, rule), name in RULES.items():
        cells = []
        if not any(t['design'] == design and rule in t['verdicts'] for t in done):
            continue
        for percent in planted:
            verdicts = [t['verdicts'][rule] for t in done if t['design'] == design and t['percent'] == percent]
            hits = sum(v == 'SLOWER' if percent else v in CLAIMS for v in verdicts)
            targets = {0.0: ('<=', 0.01), 2.0: ('>=', 0.9)} if name in ('turns_gpuloom', 'turns_best') else {}
            count(f'{what}_{name}_' + (f'found_{percent:g}' if percent else 'false'), hits, len(verdicts), *targets.get(percent, ()))
            cells.append(f'{hits} of {len(verdicts)}')
        print(f'| {design} | {rule} | {cells[0].split()[-1]} |', ' | '.join(c.split()[0] for c in cells), '|')


def with_spinners(n, work):
    """Calls work() while n programs load the machine."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the exit handler stops the spinners
    spinners = [subprocess.Popen([sys.executable, '-c', SPELLS]) for _ in range(n)]
    try:
        work()
    finally:
        for s in spinners:
            s.kill()
            s.wait()


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--rules', action='store_true')
    p.add_argument('--quick', action='store_true')
    p.add_argument('--pairs', type=int)
    p.add_argument('--planted', default='1,2,3')
    p.add_argument('build', nargs='?', default='build')
    p.add_argument('--for', dest='limit', type=float)
    p.add_argument('--spinners', type=int)
    p.add_argument('--jobs', default='')
    p.add_argument('--device')
    p.add_argument('--only', choices=('same', 'planted'))
    a = p.parse_args()
    for name, quick, default in ('pairs', 100, 200), ('limit', 580, float('inf')), ('spinners', 0, 2):
        if getattr(a, name) is None:
            setattr(a, name, quick if a.quick or a.device and name == 'spinners' else default)
    began = time.monotonic()
    gpuloom, folder = os.path.join(a.build, 'gpuloom'), os.path.join(a.build, 'bench')
    os.makedirs(folder, exist_ok=True)
    if not os.path.exists(os.path.join(a.build, 'tests/plugins/workload_planted.so')):
        sys.exit('aa: the plug-in with a known amount of work is missing: make tests')
    if a.rules or a.quick or a.device:
        return with_spinners(a.spinners, lambda: study(a, gpuloom, folder))
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

    def trials():
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

    with_spinners(a.spinners, trials)
    by = {name: [t for t in done if t['part'] == name] for name in todo}
    counts = {name: tell(name, trials) for name, trials in by.items()}
    left = len(set(wanted) - {(t['part'], t['trial']) for t in done})
    found = []
    for name, trials in by.items():
        if trials and name.startswith('same_'):
            count(name.replace('same', 'aa_claims'), hits(trials, CLAIMS), len(trials), '<=', 0.05)
        elif trials:
            found.append(hits(trials, ('SLOWER',)) >= 0.8 * len(trials))
            count(name.replace('planted', 'planted_found'), hits(trials, ('SLOWER',)), len(trials), '>=', 0.8)
    same = [t for name, trials in by.items() if name.startswith('same_') for t in trials]
    if same:
        count('aa_claims' if a.spinners else 'aa_claims_quiet', hits(same, CLAIMS), len(same), '<=', 0.05)
    if found:
        count('planted_found_jobs', sum(found), len(found), '>=', 0.8)
    finish(os.path.join(folder, 'aa.json'), spinners=a.spinners, trials={n: len(t) for n, t in by.items()}, left=left, verdicts=counts)
    if left:
        print(f'{left} of {len(wanted)} trials are left: the same command goes on', file=sys.stderr)


if __name__ == '__main__':
    main()
