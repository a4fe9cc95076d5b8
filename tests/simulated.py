# SPDX-License-Identifier: Apache-2.0
"""Checks the figures of docs/simulation.md in virtual time, which are the same on each machine. The confs print the figures of
the page, to the last digit.
    tests/simulated.py BUILD [all]     the quick points, or all
    tests/simulated.py BUILD print     all; prints the lines that the page should have"""
import json
import os
import subprocess
import sys
import tempfile

PAGE = "docs/simulation.md"
build, everything = sys.argv[1], len(sys.argv) > 2
TRIGGERS = "hdn", "gds", "gputn"
JOBS = "alexnet", "an4_lstm", "cifar", "large_synth", "mnist_conv", "mnist_hidden"
lines = []


def sweep(conf, *factors, **options):
    """Returns {(values of the factors): metrics} of a conf in conf/sim; options are SECTION__KEY=VALUE."""
    with tempfile.TemporaryDirectory() as folder:
        out = folder + "/s.jsonl"
        words = [w for k, v in options.items() for w in ("--set", "%s=%s" % (k.replace("__", "."), v))]
        done = subprocess.run([build + "/gpuloom", "run", "conf/sim/%s.ini" % conf, "--quiet", "--json", out, *words],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, env={**os.environ, **ENVIRONMENT})
        if done.returncode:
            sys.exit("%s: exit %d: %s" % (conf, done.returncode, done.stderr))
        with open(out) as f:
            samples = [s for s in map(json.loads, f) if "sample" in s and "values" in s]
    return {tuple(s["values"][f] for f in factors): s["metrics"] for s in samples}


ENVIRONMENT = {"GPULOOM_RUN__SAMPLES": "1", "GPULOOM_RUN__WARMUP": "0"}


def row(*cells):
    lines.append("| " + " | ".join(cells) + " |")


def percent(x):
    return "%.0f %%" % (100 * x)


def figure_8():
    us = {t: m["with_launch"] / 1e3 for (t,), m in sweep("figure-08", "trigger.use").items()}
    under = lambda a, b: percent(1 - us[a] / us[b])
    row("8, a message of one cache line", "gputn 25 % under gds and 35 % under hdn; gds 10 % under hdn",
        "%s, %s and %s: %.3f, %.3f and %.3f us with the first launch" % (
            under("gputn", "gds"), under("gputn", "hdn"), under("gds", "hdn"), us["gputn"], us["gds"], us["hdn"]))


def figure_9():
    sizes = ("512", "1024") if everything else ("512",)
    slower = {}
    for stream in ("180", "360", "720") if everything else ("180",):
        m = sweep("figure-09", "trigger.use", "workload.jacobi2d.n", sweep__workload__jacobi2d__n=",".join(sizes),
                  device__sim__stream=stream + "ns")
        for n in sizes:
            slower[n, stream] = [m[t, n]["seconds"] / m["gputn", n]["seconds"] - 1 for t in ("gds", "hdn")]
    if everything:
        row("9, Jacobi, medium grids", "gputn 10 % faster than gds, 20 % than hdn",
            "%s and %s at n = 1024; %s and %s at n = 512" % tuple(map(percent, slower["1024",
                                                                                      "180"] + slower["512", "180"])))
    else:
        lines.append("; %s and %s at n = 512 |" % tuple(map(percent, slower["512", "180"])))
    for n in sizes if everything else ():
        row("n = %s" % n, *("%.2f, %.2f" % tuple(1 + s for s in slower[n, stream]) for stream in ("180", "360", "720")))


def figure_10():
    ranks = ("2", "32") if everything else ("2",)
    m = sweep("figure-10", "trigger.use", "run.ranks", sweep__run__ranks=",".join(ranks))
    over = lambda t, n: m[t, n]["seconds"] / m["gputn", n]["seconds"]
    said = {"2": ("10, allreduce of 8 MB, 2 nodes", "all three about equal"),
            "32": ("10, 32 nodes", "hdn slower than a CPU, gputn faster")}
    for n in ranks:
        row(*said[n], "hdn %.2f and gds %.2f of gputn" % (over("hdn", n), over("gds", n)))


def figure_11():
    jobs = JOBS if everything else ("mnist_hidden",)
    m = sweep("figure-11", "trigger.use", "workload.replay.job", sweep__workload__replay__job=",".join(jobs))
    speedup = {(t, j): m["hdn", j]["seconds"] / m[t, j]["seconds"] for t in TRIGGERS for j in jobs}
    blocked = ["%.0f, %.0f, %.0f %%" % tuple(100 * m[t, j]["blocked"] for t in TRIGGERS) for j in jobs]
    if not everything:  # the last column is MNIST Hidden
        lines.extend("| %s |" % text for text in (blocked[0], "%.3f" % speedup["gputn", jobs[0]],
                                                  "%.3f" % speedup["gds", jobs[0]]))
        return
    row("blocked under hdn, gds, gputn", *blocked)
    for t in "gputn", "gds":
        row("%s over hdn" % t, *("%.3f" % speedup[t, j] for j in jobs))
    most = max(jobs, key=lambda j: speedup["gputn", j])
    least = min(jobs, key=lambda j: speedup["gputn", j])
    row("11, training on 8 nodes, the most blocked job", "gputn up to 20 % faster than hdn and 5 % than gds",
        "%s and %s" % (percent(speedup["gputn", most] - 1), percent(speedup["gputn", most] / speedup["gds", most] - 1)))
    row("11, the least blocked job", "little", percent(speedup["gputn", least] - 1))


def barriers():
    ranks = ("2", "16", "128", "1024") if everything else ("2",)
    m = sweep("barriers", "barrier.use", "run.ranks", sweep__run__ranks=",".join(ranks))
    us = lambda kind, n: "%.2f" % (m[kind, n]["latency"] / 1e3)
    for kinds in ("central",), ("release", "tree"), ("dissemination",), ("flags",):
        for kind in kinds[1:]:
            if [us(kind, n) for n in ranks] != [us(kinds[0], n) for n in ranks]:
                sys.exit("%s: %s and %s are not the same" % (PAGE, kinds[0], kind))
        start = "| " + ", ".join("`%s`" % k for k in kinds) + " | " + " | ".join(us(kinds[0], n) for n in ranks) + " |"
        lines.append(start)


def shared_tasks():
    if not everything:
        return
    m = sweep("uts-1024", "scheduler.mgws.victim", "termination.use")
    for victim, said in ("random", "any (`random`)"), ("neighbour", "one after the other (`neighbour`)"):
        cells = [m[victim, t] for t in ("tree", "hcounter")]
        row(said, *("%.1f ms; %.2g ms" % (c["seconds"] * 1e3, c["exit_ns"] / 1e6) for c in cells))


for part in figure_8, figure_9, figure_10, figure_11, barriers, shared_tasks:
    part()
if sys.argv[2:] == ["print"]:
    print("\n".join(lines))
    sys.exit()
with open(PAGE, encoding="utf-8") as f:
    page = f.read()
stale = [line for line in lines if line not in page]
for line in stale:
    print("%s: the confs print this, and the page has another figure: %s" % (PAGE, line))
print("%d lines compared" % len(lines))
sys.exit(bool(stale) or len(lines) < 8)
