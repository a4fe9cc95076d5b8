#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the time of a sample that the schedule lab (conf/uneven/lab.ini) predicts with the measured time, for uneven tasks.

    bench/predict.py BUILD [--rounds N] [--only ragged] [--device cuda:0]

First measures what memory accesses of the device cost (`gpuloom doctor --profile`), and for each case what each task costs, as
the median over all rounds.
The lab then runs each scheduler with these costs, in virtual time. A case counts as predicted if the times of all schedulers
are within 15 % of the measured ones. The figures are shares of the cases. Ends with `bar NAME VALUE RELATION TARGET ok|short`, and writes
BUILD/bench/predict.json."""
import json, os, statistics, tempfile

from figures import arguments, call, count, finish, rotated, run_parts, settings

SCHEDULERS = ['static', 'counter', 'mgws', 'plan']
WITHIN = 0.15
asked = arguments(__doc__, 5, 'ragged', device='cpu:0')
gpu = not asked.device.startswith('cpu')
program = os.path.join(asked.build, 'gpuloom')
table = {}


def run(words):
    return json.loads(call([program, 'run', *words, '--json', '-']))


def profile(folder):
    """Returns the path of a conf with the costs of memory accesses."""
    path = os.path.join(folder, 'profile.ini')
    with open(path, 'w') as out:
        out.write(call([program, 'doctor', '--profile', asked.device]))
    return path


def case(name, sizes, folder, costs, rounds):
    options = [f'workload.ragged.{s}' for s in sizes.split()] + [f'run.devices={asked.device}', 'run.warmup=2', 'run.seed=1']
    if gpu:
        options += ['transport.use=p2p', 'device.cuda.lanes=128']
    else:
        options += ['device.cpu.workers=2']
    trace = os.path.join(folder, name + '.json')
    measure = ['conf/ragged.ini', '--samples', '1', *settings(
        options + ['scheduler.use=plan', 'scheduler.plan.costs=measured', f'scheduler.plan.save={trace}'])]
    costs_of, measured = [], {s: [] for s in SCHEDULERS}
    for turn in range(rounds):
        workers = len(run(measure)['workers'])
        with open(trace) as f:
            costs_of.append([task['cost'] for task in json.load(f)['tasks']])
        for s in rotated(SCHEDULERS, turn):
            # The lab's plan follows from measured costs, so the measured plan does, too.
            chosen = [f'scheduler.use={s}'] + (['scheduler.plan.costs=measured'] if s == 'plan' else [])
            measured[s] += run(['conf/ragged.ini', '--samples', '5', *settings(options + chosen)])['metrics']['seconds']['samples']
    with open(trace, 'w') as f:
        json.dump({'format': 'gpuloom-costs', 'tasks': [{'id': i, 'cost': statistics.median_low(c)}
                                                        for i, c in enumerate(zip(*costs_of))]}, f)
    lab = ['conf/uneven/lab.ini', costs, *settings([f'device.sim.workers={workers}', 'workload.makespan.law=trace',
                                                    f'workload.makespan.trace={trace}', 'run.seed=1'])]
    print(f'\n{name}: {workers} workers, {sizes}')
    table[name] = {}
    for s in SCHEDULERS:
        metrics = run(lab + settings([f'scheduler.use={s}']))['metrics']
        predicted, real = metrics['seconds']['median'], statistics.median(measured[s])
        table[name][s] = {'predicted': predicted, 'measured': real, 'samples': measured[s]}
        print(f'  {s:8} predicted {predicted * 1e3:9.3f} ms, measured {real * 1e3:9.3f} ms: {predicted / real:6.3f}; over the '
              f'lower bound {metrics["over_bound"]["median"]:.3f}', flush=True)


def ragged(rounds):
    length = 2048 if gpu else 1024
    with tempfile.TemporaryDirectory() as folder:
        costs = profile(folder)
        for law in ['equal', 'uniform', 'zipf', 'two']:
            for chunk in [256, 1024, 1 << 23] if gpu else [64, 512, 1 << 23]:
                case(f'ragged_{law}_{"whole" if chunk > 100000 else chunk}',
                     f'sequences=64 length={length} law={law} chunk={chunk}', folder, costs, rounds)


run_parts(asked, {'ragged': ragged})
ratios = {c: {s: t['predicted'] / t['measured'] for s, t in row.items()} for c, row in table.items()}
within = {s: sum(abs(row[s] - 1) <= WITHIN for row in ratios.values()) for s in SCHEDULERS}
on = '_gpu' if gpu else ''
for s in SCHEDULERS:
    count(f'predicted_{s}{on}', within[s], len(table))
count(f'predicted_cases{on}', sum(all(abs(r - 1) <= WITHIN for r in row.values()) for row in ratios.values()), len(table), '>=', 10 / 12)
# cases in which the scheduler that the lab finds fastest is within 3 % of the fastest one
count(f'predicted_best{on}', sum(
    row[min(row, key=lambda s: row[s]['predicted'])]['measured'] <= 1.03 * min(t['measured'] for t in row.values())
    for row in table.values()), len(table))
finish(os.path.join(asked.build, 'bench', 'predict.json'), seconds=table)
