#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often does `gpuloom compare` claim a difference where there is none, on a machine that other
programs load? And how often does it find one that was planted?

    bench/aa.py [BUILD] [--for SECONDS] [--share PERCENT] [--spinners N]

The default conf runs against itself, and against the same with documents added that take 3 % more time, 20
blocks each, while programs beside it are busy half of the time, in spells of up to 0.1 s. Every trial is written down at
once: --for ends after that long, and the next call goes on. The whole takes about 20 minutes. The last lines
are `bar FIGURE VALUE RELATION TARGET ok|short`.
"""
import argparse
import glob
import gzip
import hashlib
import json
import os
import shutil
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
DOCUMENTS = '/usr/share/man/de'  # what conf/contains.ini searches
CLAIMS = ('FASTER', 'SLOWER')
BLOCKS = ['--blocks', '20', '--spread', '0']


def plant_documents(folder):
    """base: the documents; more: with copies of some of them. Both paths and the share in bytes. One of 36
    is 2.8 %, which takes 3 % more time: a document costs more than its bytes (measured on a quiet machine)."""
    base, more = os.path.join(folder, 'base'), os.path.join(folder, 'more')
    share = os.path.join(folder, 'share')
    if os.path.exists(share):
        return base, more, float(open(share).read())
    shutil.rmtree(folder, ignore_errors=True)
    files = sorted(f for f in glob.glob(DOCUMENTS + '/**/*.gz', recursive=True) if os.path.isfile(f))
    if not files:
        sys.exit(f'no documents in {DOCUMENTS}: install manpages-de')
    size = [len(gzip.open(f).read()) for f in files]
    best = min(range(36), key=lambda r: abs(sum(size[r::36]) / sum(size) - 1 / 36))
    for target in (base, more):
        os.makedirs(target)
        for i, f in enumerate(files):
            shutil.copy(f, os.path.join(target, f'{i:05d}.gz'))
            if target == more and i % 36 == best:
                # Far from the first: what has just been inflated is inflated faster again.
                shutil.copy(f, os.path.join(target, f'{(i + len(files) // 2) % len(files):05d}-again.gz'))
    value = sum(size[best::36]) / sum(size)
    with open(share, 'w') as out:
        out.write(f'{value}\n')
    return base, more, value


def plant_turns(path, build):
    """A conf whose samples are short: a generator turned so many times by each worker."""
    with open(path, 'w') as out:
        out.write(f'[run]\nworkload = {os.path.abspath(build)}/tests/plugins/workload_planted.so\n'
                  'devices = cpu:0 cpu:1\n[device.cpu]\noversubscribe = yes\n[transport]\nuse = host\n')
    return path


def parts(build, folder):
    conf = os.environ.get('CONF', 'conf/contains.ini')
    base, more, share = plant_documents(os.path.join(folder, 'aa-documents'))
    short = plant_turns(os.path.join(folder, 'aa-turns.ini'), build)
    # The default settings find what is planted. For false claims a block has few samples, for the sake of
    # time: how many there are makes no difference to them.
    return {
        'same': (200, [conf, '--vary', 'run.title=a,b', *BLOCKS, '--samples-per-block', '2']),
        'planted': (40, [conf, '--vary', f'workload.contains.path={base},{more}', *BLOCKS]),
        'planted_wall': (40, [short, '--vary', 'workload.planted.turns=600000,618000', *BLOCKS, '--metric',
                              'seconds', '--per-block', 'best', '--samples-per-block', '32']),
    }, share


def order(parts, share):
    """All trials, each part evenly over the whole, so that what is there so far says something of each."""
    every = []
    for name, (trials, _) in parts.items():
        n = max(1, round(trials * share / 100))
        every += [((i + 0.5) / n, name, i) for i in range(n)]
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
    """What a trial is of: trials of another build, load or command are none of this benchmark's."""
    with open(gpuloom, 'rb') as f:
        binary = hashlib.sha256(f.read()).hexdigest()
    return hashlib.sha256(json.dumps([binary, spinners, args]).encode()).hexdigest()


def read_journal(path, key):
    lines = []
    if os.path.exists(path):
        lines = [json.loads(line) for line in open(path) if line.endswith('\n')]
    done = [t for t in lines if t['part'] in key and t['key'] == key[t['part']]]
    with open(path, 'w') as out:
        out.writelines(json.dumps(t) + '\n' for t in done)
    return done


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
    p.add_argument('--share', type=float, default=100)
    p.add_argument('--spinners', type=int, default=2)
    a = p.parse_args()
    began = time.monotonic()
    gpuloom, folder = os.path.join(a.build, 'gpuloom'), os.path.join(a.build, 'bench')
    os.makedirs(folder, exist_ok=True)
    todo, share = parts(a.build, folder)
    key = {n: key_of(gpuloom, a.spinners, args) for n, (_, args) in todo.items()}
    journal = os.path.join(folder, 'aa.jsonl')
    done = read_journal(journal, key)
    have = {(t['part'], t['trial']) for t in done}
    wanted = order(todo, a.share)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no spinner is left
    spinners = [subprocess.Popen([sys.executable, '-c', SPELLS]) for _ in range(a.spinners)]
    try:
        with open(journal, 'a') as out:
            for name, i in wanted:
                if (name, i) in have:
                    continue
                if time.monotonic() - began > a.limit:
                    break
                result = trial(gpuloom, todo[name][1], i, os.path.join(folder, 'aa-one.json'))
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
    bars = [bar('aa_claims', share_of(by['same'], CLAIMS), '<=', 0.05),
            bar('planted_found', share_of(by['planted'], ('SLOWER',)), '>=', 0.8),
            bar('planted_found_wall', share_of(by['planted_wall'], ('SLOWER',)), '>=', 0.8)]
    with open(os.path.join(folder, 'aa.json'), 'w') as out:
        json.dump({'schema': 'gpuloom.bench-aa/1', 'spinners': a.spinners, 'planted_share': share,
                   'trials': {n: len(t) for n, t in by.items()}, 'left': left, 'verdicts': counts,
                   'bars': bars}, out, indent=1)
        out.write('\n')
    if left:
        print(f'{left} of {len(wanted)} trials are left: the same command goes on', file=sys.stderr)


main()
