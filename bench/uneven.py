#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures uneven work on two CPU cores: the tasks of ragged and experts under gpuloom's schedulers, and the same task functions
in loops of OpenMP and oneTBB.

    bench/uneven.py BUILD [--rounds N] [--only ragged,experts]

A round runs each variant of a case once, in rotated order; its time is the median of three samples. A figure is the median over
the rounds of the ratio to the loop whose median is the lowest. Ends with `bar NAME VALUE RELATION TARGET ok|short`, and writes BUILD/bench/uneven.json."""
import json, os, statistics, sys

from figures import arguments, bar, call, figure, finish, ratios, rotated, run_parts, worst_of

SCHEDULERS = ['static', 'counter', 'mgws', 'plan']
DYNAMIC = [1, 4, 16]
SAMPLES = 3
asked = arguments(__doc__, 10, 'ragged,experts')
folder = os.path.join(asked.build, 'bench')
table = {}


def own(scheduler, workload, options):
    words = [os.path.join(asked.build, 'gpuloom'), 'run', f'conf/{workload}.ini', '--samples', str(SAMPLES), '--json', '-',
             '--set', f'scheduler.use={scheduler}', '--set', 'run.seed=1']
    for option in options.split():
        words += ['--set', f'workload.{workload}.{option}']
    result = json.loads(call(words))
    return result['metrics']['seconds']['samples']


def other(program, schedule, workload, options):
    out = call([os.path.join(folder, program), f'workload_{workload}', options, schedule, str(SAMPLES)],
               OMP_WAIT_POLICY='active', OMP_PROC_BIND='true')
    return json.loads(out)['seconds']


def case(name, workload, options, rounds):
    variants = {s: lambda s=s: own(s, workload, options) for s in SCHEDULERS}
    loops = [('uneven_omp', 'omp', s) for s in ['static', 'guided'] + [f'dynamic,{n}' for n in DYNAMIC]]
    loops += [('uneven_tbb', 'tbb', s) for s in ['auto', 'simple']]
    for program, short, schedule in loops:
        if os.access(os.path.join(folder, program), os.X_OK):
            variants[f'{short}-{schedule}'] = lambda p=program, s=schedule: other(p, s, workload, options)
    seconds = {v: [] for v in variants}
    for turn in range(rounds):
        for variant in rotated(list(variants), turn):
            seconds[variant].append(statistics.median(variants[variant]()))
    median = {v: statistics.median(s) for v, s in seconds.items()}
    best = min(median.values())
    table[name] = seconds
    print(f'\n{name}: {workload} {options}')
    for v in sorted(median, key=median.get):
        print(f'  {v:14} {median[v] * 1e3:9.3f} ms  {best / median[v]:6.3f} of the best')
    for peer in ['omp', 'tbb']:
        times = worst_of((t for v, t in seconds.items() if v.startswith(peer + '-')), min)
        for s in ['mgws', 'plan']:
            if peer == 'omp':
                bar(f'{name}_{s}_to_{peer}', ratios(times, seconds[s]), '>=', 0.97)
            elif times:
                figure(f'{name}_{s}_to_{peer}', ratios(times, seconds[s]))
    sys.stdout.flush()


def ragged(rounds):
    for law in ['equal', 'uniform', 'zipf', 'two']:
        for chunk in [64, 512, 8388608]:
            options = f'sequences=64 length=1024 law={law} chunk={chunk}'
            case(f'ragged_{law}_{"whole" if chunk > 100000 else chunk}', 'ragged', options, rounds)


def experts(rounds):
    for skew in ['equal', 'zipf', 'hot_eighth', 'hot_one', 'hot_top']:
        case(f'experts_{skew}', 'experts', f'tokens=128 dim=256 hidden=512 skew={skew} rows=32', rounds)


run_parts(asked, {'ragged': ragged, 'experts': experts})
finish(os.path.join(folder, 'uneven.json'), seconds=table)
