#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps rivals in PyTorch and Triton ready: context, tensors, compiled kernels and CUDA graphs. ask.py gets a sample of one.

    bench/rivals/serve.py SOCKET JOBS

JOBS has a job a line: NAME FAMILY.RIVAL [KEY=VALUE]..., for example

    two_flex    attention.flex    law=two length=2048
    zipf_padded experts.padded    skew=zipf lengths=redrawn

README.md has the rivals and their keys. The server makes all jobs, says on stderr which have failed and why, prints `ready N of M`,
and then sleeps in accept(), so that it does not disturb the samples of others. A request is a line with the name of a job. The
answer is `ok ` and one JSON object of metrics, or `failed ` and the reason; a job that could not be made answers with the reason.
SIGTERM ends the server."""
import importlib, json, os, signal, socket, sys, traceback


def make(line):
    """Returns the name of a job and a function that returns a sample of it."""
    name, rival, *options = line.split()
    try:
        family, how = rival.split('.')
        return name, importlib.import_module(family).make(how, dict(o.split('=', 1) for o in options)).sample
    except Exception as why:
        return name, refusal(name, rival, why)


def refusal(name, rival, why):
    text = f'{rival} cannot be made: {type(why).__name__}: {why}'
    print(f'# {name}: {text}', file=sys.stderr, flush=True)
    if os.environ.get('RIVALS_TRACE'):
        traceback.print_exception(why)

    def refuse():
        raise RuntimeError(text)
    refuse.refusal = True
    return refuse


def answer(samples, name):
    if name not in samples:
        return f'failed there is no such job, but {" ".join(samples)}'
    try:
        return 'ok ' + json.dumps(samples[name]())
    except Exception as why:
        return f'failed {type(why).__name__}: {why}'


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with open(sys.argv[2]) as file:
        samples = dict(make(line) for line in file if line.strip() and not line.startswith('#'))
    if os.path.exists(sys.argv[1]):
        os.unlink(sys.argv[1])
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(sys.argv[1])
        listening.listen()
        print(f'ready {sum(not hasattr(s, "refusal") for s in samples.values())} of {len(samples)}', flush=True)
        try:
            while True:
                asking, _ = listening.accept()
                with asking, asking.makefile('rw') as lines:
                    try:
                        lines.write(' '.join(answer(samples, lines.readline().strip()).split('\n')) + '\n')
                        lines.flush()
                    except OSError:  # ask.py has ended
                        pass
        finally:
            os.unlink(sys.argv[1])


if __name__ == '__main__':
    main()
