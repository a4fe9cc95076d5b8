# SPDX-License-Identifier: Apache-2.0
"""How every rival of serve.py is timed.

A rival is an object with
    draw(seed)   makes the job of this seed: lengths, numbers of tokens; and copies them to the GPU, before the clock, as gpuloom does
    plan()       does all that depends on them: makes masks, tables and offsets
    run()        the operation; returns its result
    wrong(out)   the reason why a result is wrong, or None
    bytes()      bytes that the operation has to read
    on_host      whether plan() waits for the host, and so is no part of a CUDA graph

The clock is a pair of events in the stream. Before the first of them the GPU has work for SLEEP cycles, and meanwhile the host queues
what is timed, so that the clock has no time in which the GPU waits for the host. It starts before the first kernel starts: that
kernel's start (1 to 2 us) is included, the time of cudaGraphLaunch() is not."""
import importlib.util, re, sys

import torch

def version(text):
    """Returns a version as the number that bench/keep reads: 21100 for 2.11.0."""
    major, minor, patch = (text.split('+')[0].split('.') + ['0', '0'])[:3]
    return {'value': int(major) * 10000 + int(minor) * 100 + int(re.match('[0-9]*', patch)[0] or 0), 'unit': 'version'}


VERSIONS = {'version_' + name: version(importlib.import_module(name).__version__) for name in ('torch', 'triton')
            if importlib.util.find_spec(name)}
SLEEP = 400000  # cycles, about 0.2 ms: longer than the host needs to queue a run


def seconds_of(once, ahead=True):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    if ahead:
        torch.cuda._sleep(SLEEP)
    begin.record()
    once()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e-3


def fastest(ways):
    """Returns the fastest of several ways to run one operation. Ways that PyTorch refuses are left out."""
    best, refused = None, None
    for way in ways:
        try:
            for _ in range(3):
                way()
            took = sorted(seconds_of(way) for _ in range(7))[3]
        except Exception as why:
            refused = why
            continue
        if best is None or took < best[0]:
            best = took, way
    if best is None:
        raise refused
    return best[1]


class Captured:
    """A function in a CUDA graph, or called as it is if it cannot be captured."""

    def __init__(self, once):
        self.once, self.graph = once, None
        beside = torch.cuda.Stream()
        beside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(beside):  # a capture must not be the first call of a library
            for _ in range(3):
                self.out = once()
        torch.cuda.current_stream().wait_stream(beside)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                out = once()
        except Exception as why:
            print(f'# not in a CUDA graph: {why}', file=sys.stderr, flush=True)
            torch.cuda.synchronize()
        else:
            self.graph, self.out = graph, out

    def __call__(self):
        if self.graph:
            self.graph.replay()
        else:
            self.out = self.once()
        return self.out


class Job:
    """lengths=unchanged: the plan is made once, before the clock. lengths=redrawn: each sample has another seed, and the plan is in
    the clock, in the same graph as the operation where the GPU makes it. A sample is one run that is not counted and one that is."""

    def __init__(self, rival, seed, redrawn):
        self.rival, self.seed, self.redrawn, self.at = rival, seed, redrawn, 0
        rival.plan()
        torch.cuda.synchronize()
        self.run = Captured(rival.run)
        self.plan = rival.plan if rival.on_host else Captured(rival.plan)
        self.all = self.run
        if redrawn and rival.on_host:
            self.all = lambda: (rival.plan(), self.run())[1]
        elif redrawn:
            self.all = Captured(lambda: (rival.plan(), rival.run())[1])
        self.plan()
        self.plan_seconds = self.planning()
        self.sample()

    def planning(self):
        return seconds_of(self.plan, not self.rival.on_host)

    def sample(self):
        self.all()
        torch.cuda.synchronize()
        if self.redrawn:
            self.at += 1
            self.rival.draw(self.seed + self.at)
        out = []
        seconds = seconds_of(lambda: out.append(self.all()), not (self.redrawn and self.rival.on_host))
        wrong = self.rival.wrong(out[0])
        if wrong:
            raise ArithmeticError(wrong)
        if self.redrawn:
            self.plan_seconds = self.planning()
        return {'seconds': seconds,
                'bytes_per_s': {'value': self.rival.bytes() / seconds, 'unit': 'B/s', 'better': 'more'},
                'plan_ns': {'value': self.plan_seconds * 1e9, 'unit': 'ns', 'better': 'less'},
                'in_graph': int(self.run.graph is not None), **VERSIONS}


def job(rival, options):
    """Makes the job of a rival, from the keys that all families have. There must be no other keys left."""
    lengths = options.pop('lengths', 'unchanged')
    if lengths not in ('unchanged', 'redrawn'):
        raise ValueError(f'lengths={lengths}: unchanged or redrawn')
    if options:
        raise ValueError(f'no such key: {" ".join(options)}')
    return Job(rival, rival.seed, lengths == 'redrawn')
