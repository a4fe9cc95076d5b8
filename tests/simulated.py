# SPDX-License-Identifier: Apache-2.0
"""Compares the values of docs/simulation.md and docs/uneven.md with those that the confs give, to the last digit. They are in virtual time, so they
are the same on each machine. check-papers compares those of docs/papers.md.
    tests/simulated.py BUILD [all]     the quick points, or all
    tests/simulated.py BUILD print     all; prints the lines that the pages should have"""
import json
import os
import subprocess
import sys
import tempfile

PAGE, UNEVEN = "docs/simulation.md", "docs/uneven.md"
build, everything = sys.argv[1], len(sys.argv) > 2
TRIGGERS = "hdn", "gds", "gputn"
JOBS = "alexnet", "an4_lstm", "cifar", "large_synth", "mnist_conv", "mnist_hidden"
lines = []


def sweep(conf, *factors, **options):
    """Returns {(values of the factors): metrics} of a conf; options are SECTION__KEY=VALUE."""
    with tempfile.TemporaryDirectory() as folder:
        out = folder + "/s.jsonl"
        words = [w for k, v in options.items() for w in ("--set", "%s=%s" % (k.replace("__", "."), v))]
        done = subprocess.run([build + "/gpuloom", "run", "conf/%s.ini" % conf, "--quiet", "--json", out, "--set", "sweep.report=", *words],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, env={**os.environ, **ENVIRONMENT})
        if done.returncode:
            sys.exit("%s: exit %d: %s" % (conf, done.returncode, done.stderr))
        with open(out) as f:
            samples = [s for s in map(json.loads, f) if "sample" in s and "values" in s]
    return {tuple(s["values"][f] for f in factors): s["metrics"] for s in samples}


ENVIRONMENT = {"GPULOOM_RUN__SAMPLES": "1", "GPULOOM_RUN__WARMUP": "0"}


def row(*cells, page=PAGE):
    lines.append((page, "| " + " | ".join(cells) + " |"))


def figure_9():
    sizes, streams = ("256", "512"), ("180", "360", "720")
    m = {}
    for stream in streams if everything else ():
        m[stream] = sweep("sim/figure-09", "point", "workload.jacobi2d.local",
                          sweep__workload__jacobi2d__local=",".join(sizes), device__sim__stream=stream + "ns",
                          sweep__points__cpu="trigger.use=hdn")  # hdn has no stream of its own
    for n in sizes if everything else ():
        row("N = %s" % n, *("%.2f, %.2f" % tuple(m[stream][t, n]["seconds"] / m[stream]["gputn", n]["seconds"]
                                                 for t in ("gds", "hdn")) for stream in streams))


def figure_11():
    jobs = JOBS if everything else ("mnist_hidden",)
    m = sweep("sim/figure-11", "point", "workload.replay.job", sweep__workload__replay__job=",".join(jobs))
    speedup = {(t, j): m["hdn", j]["seconds"] / m[t, j]["seconds"] for t in TRIGGERS for j in jobs}
    blocked = ["%.0f, %.0f, %.0f %%" % tuple(100 * m[t, j]["blocked"] for t in TRIGGERS) for j in jobs]
    if not everything:  # the last column is MNIST Hidden
        lines.extend((PAGE, "| %s |" % text) for text in (blocked[0], "%.3f" % speedup["gputn", jobs[0]],
                                                  "%.3f" % speedup["gds", jobs[0]]))
        return
    row("blocked under hdn, gds, gputn", *blocked)
    for t in "gputn", "gds":
        row("%s over hdn" % t, *("%.3f" % speedup[t, j] for j in jobs))


def barriers():
    ranks = ("2", "16", "128", "1024") if everything else ("2",)
    m = sweep("sim/barriers", "barrier.use", "run.ranks", sweep__run__ranks=",".join(ranks))
    us = lambda kind, n: "%.2f" % (m[kind, n]["latency"] / 1e3)
    for kinds in ("central",), ("release", "tree"), ("dissemination",), ("flags",):
        for kind in kinds[1:]:
            if [us(kind, n) for n in ranks] != [us(kinds[0], n) for n in ranks]:
                sys.exit("%s: %s and %s are not the same" % (PAGE, kinds[0], kind))
        start = "| " + ", ".join("`%s`" % k for k in kinds) + " | " + " | ".join(us(kinds[0], n) for n in ranks) + " |"
        lines.append((PAGE, start))


def shared_tasks():
    if not everything:
        return
    m = sweep("sim/uts-1024", "scheduler.mgws.victim", "termination.use")
    for victim, said in ("random", "any (`random`)"), ("neighbour", "one after the other (`neighbour`)"):
        cells = [m[victim, t] for t in ("tree", "hcounter")]
        row(said, *("%.1f ms; %.2g ms" % (c["seconds"] * 1e3, c["exit_ns"] / 1e6) for c in cells))


def uneven():
    """With 32 workers, as many tasks per worker as the page has for the law."""
    laws = ("equal", "equal", "2 32"), ("uniform", "uniform", "2 8 32 128"), ("two", "two", "8 32 128")
    said = {("uniform", "2"): "uniform, 0 to 100 us", ("two", "8"): "two: one of eight tasks takes nine times as long"}
    for law, name, each in laws:
        each = each.split() if everything else ["2"] * ("2" in each.split())
        if not each:
            continue
        m = sweep("uneven/gain", "scheduler.use", "workload.makespan.tasks", sweep__workload__makespan__law=law,
                  sweep__workload__makespan__tasks=",".join(str(32 * int(n)) for n in each))
        for n in each:
            row(said.get((law, n), name), n, *("%.2f" % m[s, str(32 * int(n))]["over_bound"]
                                               for s in ("static", "counter", "mgws", "plan")), page=UNEVEN)


for part in figure_9, figure_11, barriers, shared_tasks, uneven:
    part()
if sys.argv[2:] == ["print"]:
    print("\n".join("%s: %s" % line for line in lines))
    sys.exit()
pages = {path: open(path, encoding="utf-8").read() for path in (PAGE, UNEVEN)}
stale = [(path, line) for path, line in lines if line not in pages[path]]
for path, line in stale:
    print("%s: the confs print this, and the page has another figure: %s" % (path, line))
print("%d lines compared" % len(lines))
sys.exit(bool(stale) or len(lines) < 7)
