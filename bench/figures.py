# SPDX-License-Identifier: Apache-2.0
"""The benchmarks share this code: figures with the values of all rounds, their intervals, targets, commands, and the selection
of parts on the command line.

  bench/figures.py BUILD NAME [FIGURE RELATION TARGET]... <OUTPUT     for programs that take turns themselves

The second form reads lines `sample FIGURE [ROUND] VALUE` and `version LIBRARY CODE` of such a program, writes BUILD/bench/NAME.json,
and prints the bars. BENCH_GPUS are the
devices that it has measured, as in 'cuda:0 cuda:1'."""
import argparse, json, math, os, statistics, subprocess, sys, time

LEAST = 6  # with fewer values there is no interval of 95 %
bars = []
began, load = time.gmtime(), os.getloadavg()[0]


def interval(values):
    """Returns the ends of the 95 % interval of the median by order statistics, which assume no distribution, or None for too
    few values."""
    values, n = sorted(values), len(values)
    if n < LEAST:
        return None
    below, k = 0.0, 0
    while below + math.comb(n, k) / 2 ** n <= 0.025:
        below += math.comb(n, k) / 2 ** n
        k += 1
    return values[k - 1], values[n - k]


def share_interval(k, n):
    """Returns the 95 % interval of a share of which k of n were counted (Clopper and Pearson 1934)."""
    def at_most(k, p):
        return sum(math.comb(n, i) * p ** i * (1 - p) ** (n - i) for i in range(k + 1))

    def where(below):
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if below(middle) else (low, middle)
        return low
    return (0.0 if k == 0 else where(lambda p: 1 - at_most(k - 1, p) <= 0.025),
            1.0 if k == n else where(lambda p: at_most(k, p) > 0.025))


def figure(name, values, relation=None, target=None):
    """Records a figure: one value for each round, all of which took turns with what they are compared with. The figure is their
    median. No values: something that the figure needs is missing."""
    values = [v for v in values if v is not None and math.isfinite(v)]
    one = {'figure': name, 'values': values}
    if relation:
        one.update(relation=relation, target=target)
    judge(one, statistics.median(values) if values else None, interval(values))


def count(name, k, n, relation=None, target=None):
    """Records a share: k of n. Prints and judges k / n."""
    one = {'figure': name, 'count': [k, n]}
    if relation:
        one.update(relation=relation, target=target)
    judge(one, k / n if n else None, share_interval(k, n) if n else None)


def judge(one, value, ends):
    one['value'], (one['low'], one['high']) = value, ends or (None, None)
    bars.append(one)
    if value is None:
        one['line'] = f'bar {one["figure"]} - {one.get("relation", "-")} {one.get("target", "-")} missing'
    elif 'relation' in one:
        one['met'] = value >= one['target'] if one['relation'] == '>=' else value <= one['target']
        one['line'] = f'bar {one["figure"]} {value:.4g} {one["relation"]} {one["target"]:g} {"ok" if one["met"] else "short"}'
    else:
        one['line'] = f'figure {one["figure"]} {value:.6g}'


def bar(name, values, relation, target):
    figure(name, values, relation, target)


def ratios(a, b):
    """Returns the ratios of the values of rounds that took turns."""
    return [x / y for x, y in zip(a, b)]


def worst_of(cases, most=max):
    """Of several lists of values, returns the one whose median is the largest, or the smallest if `most` is min."""
    return most((c for c in cases if c), key=statistics.median, default=[])


def geomeans(cases):
    """Returns the geometric mean over all cases for each round."""
    return [math.exp(statistics.fmean(map(math.log, row))) for row in zip(*cases)]


def call(command, **env):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **env})
    if done.returncode:
        sys.exit(f'{" ".join(command)}\n{done.stderr}')
    return done.stdout


def settings(list_):
    return [word for s in list_ for word in ('--set', s)]


def rotated(items, turn):
    return items[turn % len(items):] + items[:turn % len(items)]


def arguments(doc, rounds, parts, **more):
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build')
    parser.add_argument('--rounds', type=int, default=rounds)
    parser.add_argument('--only', default=parts)
    for name, default in more.items():
        parser.add_argument('--' + name, default=default)
    return parser.parse_args()


def run_parts(asked, parts):
    for part in asked.only.split(','):
        began = time.monotonic()
        parts[part](asked.rounds)
        print(f'({part}: {time.monotonic() - began:.0f} s)', flush=True)


def facts(build, command):
    """Returns what bench/keep records beside values: command, date, revision, machine."""
    on = ['run.devices=' + os.environ['BENCH_GPUS'], 'transport.use=p2p'] if os.environ.get('BENCH_GPUS') else []
    result = json.loads(call([build + '/gpuloom', 'run', 'memset', '--samples', '1', '--quiet', '--json', '-', *settings(on)]))
    return {'schema': 'gpuloom.bench/1', 'command': command, 'started': time.strftime('%Y-%m-%dT%H:%M:%SZ', began),
            'gpuloom': result['gpuloom'], 'environment': {**result['environment'], 'before': {**result['environment']['before'], 'load_1m': load}}}


def finish(path, command=None, **more):
    """Prints the bars and writes all values to a file."""
    print('\n' + '\n'.join(one.pop('line') for one in bars))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    command = command or [os.path.relpath(sys.argv[0]), *sys.argv[1:]]
    with open(path, 'w', encoding='utf-8') as out:
        json.dump({**facts(os.path.dirname(os.path.dirname(path)), command), 'bars': bars, **more}, out, indent=1)
    bars.clear()  # a program may write several documents


def collect():
    build, name, *targets = sys.argv[1:]
    found, versions = {}, {}
    for line in sys.stdin:
        words = line.split()
        if len(words) in (3, 4) and words[0] == 'sample':
            found.setdefault(words[1], []).append(float(words[-1]))
        elif len(words) == 3 and words[0] == 'version':
            versions[words[1]] = int(words[2])
        else:
            print(line, end='')
    wanted = {targets[i]: targets[i + 1:i + 3] for i in range(0, len(targets), 3)}
    for one in [*found, *(w for w in wanted if w not in found)]:
        relation, target = wanted.get(one, (None, None))
        figure(one, found.get(one, []), relation, target and float(target))
    finish(f'{build}/bench/{name}.json', os.environ.get('BENCH_COMMAND', name).split(), versions=versions)


if __name__ == '__main__':
    collect()
