# SPDX-License-Identifier: Apache-2.0
"""The benchmarks in Python share this code: commands, values with a target, and the selection of parts on the command
line."""
import argparse, json, os, subprocess, sys, time

bars, figures, intervals = [], {}, {}
began, load = time.gmtime(), os.getloadavg()[0]


def bar(name, value, relation, target, rounds=()):
    """Records a value and its target, and the range of the values of `rounds`. A value of None means that a requirement is
    missing."""
    figures[name] = value
    if len(rounds) > 1:
        intervals[name] = min(rounds), max(rounds)
    if value is None:
        bars.append(f'bar {name} - {relation} {target:g} missing')
        return
    ok = value >= target if relation == '>=' else value <= target
    bars.append(f'bar {name} {value:.4g} {relation} {target:g} {"ok" if ok else "short"}')


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


def facts(build):
    """Returns what bench/keep records beside values: command, date, revision, machine."""
    result = json.loads(call([build + '/gpuloom', 'run', 'conf/memset.ini', '--samples', '1', '--quiet', '--json', '-']))
    return {'schema': 'gpuloom.bench/1', 'command': [os.path.relpath(sys.argv[0]), *sys.argv[1:]],
            'started': time.strftime('%Y-%m-%dT%H:%M:%SZ', began), 'gpuloom': result['gpuloom'],
            'environment': {'before': {**result['environment']['before'], 'load_1m': load}}}


def finish(path, **more):
    """Prints the bars and writes all values to a file."""
    print('\n' + '\n'.join(bars))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as out:
        json.dump({**facts(os.path.dirname(os.path.dirname(path))), 'figures': figures, 'bars': bars, 'intervals': intervals, **more},
                  out, indent=1)
