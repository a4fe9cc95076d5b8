# SPDX-License-Identifier: Apache-2.0
"""The benchmarks in Python share this code: commands, values with a target, and the selection of parts on the command
line."""
import argparse, json, os, subprocess, sys, time

bars, figures = [], {}


def bar(name, value, relation, target):
    """Records a value and its target. A value of None means that a requirement is missing."""
    figures[name] = value
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


def finish(path, **more):
    """Prints the bars and writes all values to a file."""
    print('\n' + '\n'.join(bars))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as out:
        json.dump({'figures': figures, 'bars': bars, **more}, out, indent=1)
