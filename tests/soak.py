#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs random configurations, drawn from the option rows of the core and of every plug-in, at the edges of their ranges.
A job has one rank, several ranks, or two stacks in a process (tests/soak_two.c). Some jobs are stopped and continued
(SIGSTOP), interrupted, timed out or killed.

    tests/soak.py BUILD [--runs N | --time 20m] [--seed S] [--only N] [--jobs N] [--long] [--shared]

Each job ends with a verified result, or with a message and the documented exit code. It leaves no process and no file
behind. A failure is printed with the command that repeats it. --long adds seconds of SIGSTOP, and scheduling classes
that take a core from all other threads. --shared runs only ranks that share tasks. --show prints each command and its
outcome."""
import argparse
import collections
import ctypes
import glob
import json
import math
import multiprocessing
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib

import pace

SAMPLE = 100  # the seconds of an idle machine (pace.py) that a sample may take
TIMEOUT = 20 * SAMPLE  # run.timeout in real seconds, so long that the limits of pace.py end a run first
LIMIT = 120  # a run with one sample counts as hanging after this many seconds
OWN_SHM = False
LEAVE = 30  # a job and its processes must end within this many seconds after an interrupt or a kill

# ---- values of options -----------------------------------------------------------------------------

# Bounds that are narrower than those of the options: the most that a machine with two cores does quickly. The key is SECTION.KEY, or KEY of any
# section. Options of workloads that are not here are drawn up to their defaults.
MOST = {
    "samples": 3, "warmup": 1, "workers": 6, "lanes": 4, "launch_cost": 100e3, "teardown_cost": 100e3,
    "scheduler.mgws.backlog": 4096, "overflow_list": 65536, "pool": 65536, "scheduler.host.returns": 4096,
    "scheduler.mgws.public_queue": 4096, "spin": 1e6, "sync.backoff.nap": 1e6,
    "sync.backoff.nap_most": 1e6, "polls": 10000, "nap": 1e6, "posts": 65536, "tags": 65536, "slots": 65536,
    "arrivals": 65536, "fifo": 65536, "qos.coalesce.window": 3e6, "qos.throttle.delay": 1e6,
    "qos.throttle.delay_most": 2e6, "qos.budget.latency": 1e7,
    "synthetic.tasks": 500, "synthetic.length": 5000, "synthetic.spawn": 3, "synthetic.depth": 4,
    "synthetic.on_gpu": 0,
    "memset.tasks": 20000,
    "memset_loop.tasks": 20000, "fib.n": 16, "uts.depth": 5, "uts.b0": 4, "uts.keep": 65536,
    "iterations": 4, "tc": 30, "tp": 30, "bfs.size": 9, "bs.size": 300, "c2d.size": 24, "cg.size": 8, "fe.size": 8,
    "gem.size": 64, "h3d.size": 4, "kmn.size": 64, "pattern.size": 600, "resume.size": 600, "resume.work": 30,
    "srs.size": 32, "stn.size": 48,
    "messages": 4, "contains.limit": 100, "pingpong.rounds": 40, "pingpong.bytes": 65536, "msgrate.fires": 300,
    "msgrate.per": 300, "jacobi2d.n": 64, "jacobi2d.sweeps": 12, "allreduce.bytes": 300000, "allreduce.rounds": 40,
    "group": 4, "least": 65536, "pingpong.compute": 1e4,
    "sgd.inputs": 100, "sgd.layers": 3, "sgd.width": 40, "sgd.classes": 12, "sgd.batch": 12,
    "sgd.batches": 6, "sgd.steps": 12,
    "sgd.rate": 0.1, "sgd.accuracy": 0, "replay.steps": 3, "replay.most": 4096, "replay.latency": 1e5, "lookups": 300,
    "barrier.few": 60, "barrier.difference": 300, "barrier.parts": 3, "barrier.checked": 100, "barrier.work": 2000,
    "requests": 300, "requests_storm.bytes": 65536, "requests_storm.file": 1 << 20, "duration": 50e6, "settle": 5e6,
    "pause": 1e6, "pace": 1e6, "outstanding": 1024, "exec.timeout": 0,
    "requests.size": 300,
}
LEAST = {"sgd.inputs": 9, "replay.rate": 1e8, "qos.budget.limit": 0.02, "qos.throttle.limit": 0.02, "run.timeout": 60e9,
         "run.time_limit": 0}
# Values of options that are text. Other such options keep their defaults.
TEXTS = {
    "word": ["und", "zwischen", "lang", "fehlt", "ü"], "glob": ["*", "*.gz", "*.txt", "none*"],
    "trigger.*.provider": ["auto", "shm", "tcp", "sockets", "net", "sim", "nonesuch"],
    "victim": ["", "", "true", "sleep 0.01", "no-such-program"], "expect": ["", "no such answer"],
    "exec.command": ["true", "echo rate 1", "sleep 0.02", "false", "no-such-program"],
    "sim_dead": ["", "0-1", "much"], "title": ["", "a ; title # with \"quotes\""],
    "exec.metrics": ["", "", "rate:more:x/s"],
}
CORES = ["", "0", "0-1", "1", "0-0,0", "4095", "1-0"]
# The kinds that a workload needs in addition to a transport, by its folder. An unknown folder gets all kinds.
TASKS, EXCHANGE = ("scheduler", "termination"), ("sync",)
NEEDS = {
    "exec": (), **dict.fromkeys(("memset", "memset_loop", "fib", "uts", "contains", "synthetic"), TASKS),
    **dict.fromkeys(("pingpong", "msgrate", "allreduce", "replay"), ("trigger",)),
    **dict.fromkeys(("jacobi2d", "sgd"), ("trigger", "barrier")),
    **dict.fromkeys(("bfs", "bs", "c2d", "cg", "fe", "gem", "h3d", "kmn", "pattern", "resume", "srs", "stn"), EXCHANGE),
    **dict.fromkeys(("requests_app", "requests_storm"), ("qos",)),
}
TYPE_MOST = {"u32": 2**32 - 1, "u64": 2**63, "i64": 2**62, "size": 2**62, "time": 10**18, "f64": 1e9, "share": 1}


def lookup(table, section, key):
    """Returns the entry for `section.key`, `kind.*.key`, `name.key` or `key`, the closest first."""
    kind, _, name = section.partition(".")
    for k in (f"{section}.{key}", f"{kind}.*.{key}", f"{name}.{key}", key):
        if k in table:
            return table[k]
    return None


def number(text, kind):
    """Returns a default as a number in the unit of the row's range."""
    m = re.fullmatch(r"(-?[\d.]+(?:e\d+)?)\s*([A-Za-z%]*)", text or "0")
    unit = {"": 1, "%": 0.01, "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "KiB": 1024, "MiB": 1 << 20, "GiB": 1 << 30,
            "KB": 1000, "MB": 10**6, "B": 1}
    return float(m[1]) * unit.get(m[2], 1) if m else 0


def written(value, kind):
    if kind == "share":
        return f"{value:.9g}"
    if kind == "f64":
        return f"{value:.6g}"
    return f"{int(value)}{'ns' if kind == 'time' and value else ''}"


def bounds(section, row):
    kind, dflt = row["type"], number(row["default"], row["type"])
    low = row.get("min", -1 if kind == "i64" else 0)
    high = row.get("max", TYPE_MOST[kind])
    most = lookup(MOST, section, row["name"])
    if most is None and section.startswith("workload."):
        most = dflt
    if most is not None:
        high = max(low, min(high, most))
    least = lookup(LEAST, section, row["name"])
    return (low if least is None else max(low, least)), high


def draw(rng, section, row):
    """Returns a value for a row, in the form of a conf, or None for the default."""
    kind, name = row["type"], row["name"]
    if kind == "bool":
        return rng.choice(["yes", "no"])
    if kind == "enum":
        return rng.choice(row["choices"])
    if kind == "cpus":
        return rng.choice(CORES[:3] if rng.random() < 0.9 else CORES)
    if kind in ("str", "path"):
        texts = lookup(TEXTS, section, name)
        good = texts and [t for t in texts if not t.startswith(("no", "device:9", "false"))]
        return None if not texts else rng.choice(good if rng.random() < 0.9 else texts)
    low, high = bounds(section, row)
    if kind in ("f64", "share"):
        return written(rng.choice([low, high, rng.uniform(low, high)]), kind)
    way = rng.randrange(7)
    value = [low, high, low + 1, high - 1][way] if way < 4 else \
        number(row["default"], kind) if way == 4 else \
        2 ** rng.randint(0, max(0, int(math.log2(max(1, high))))) + rng.choice([0, 0, 0, 1, -1]) if way == 5 else \
        round(math.exp(rng.uniform(math.log(max(1, low)), math.log(max(1, low, high)))))
    return written(min(max(value, low), high), kind)


def outside(rng, row):
    """Returns a value that the row forbids, or None."""
    kind = row["type"]
    if kind in ("str", "path", "cpus"):
        return None
    bad = ["", "x", "1 1", "99999999999999999999999", "nan"]
    if kind not in ("bool", "enum"):
        bad += [written(row["min"] - 1, kind) if row.get("min", 0) > 0 else "-2",
                written(row["max"] * 2 + 1, kind) if "max" in row and row["max"] < 9e18 else "1e400"]
    return rng.choice(bad[row["type"] == "enum":])


# ---- a case --------------------------------------------------------------------------------------


class Case:
    """One configuration, and the actions on its run."""

    def __init__(self, schema, rng, number, build, folder, args):
        self.schema, self.rng, self.number, self.build, self.folder = schema, rng, number, build, folder
        self.options, self.bad, self.args, self.ranks = {}, None, args, 0
        self.two = not args.shared and rng.random() < 0.15
        self.happens = rng.choices(["nothing", "stops", "kill", "interrupt", "timeout", "bad value"],
                                   [50, 40, 10, 0, 0, 0] if args.shared else [50, 17, 12, 9, 5, 7])[0]
        if self.two:
            self.happens = rng.choice(["nothing", "nothing", "stops", "kill"])
            self.stacks = []
            for _ in range(2):
                self.options = {}
                self.draw_stack(("", *(w for w in NEEDS if NEEDS[w] == TASKS)))
                self.set("gpuloom", "plugin_path", f"{build}/plugins")
                self.stacks.append(self.options)
            self.stop_after = rng.choice([-1, -1, 0, 1, rng.randint(1, 60)])
        else:
            self.draw_stack([w for w in schema.names["workload"]])

    def set(self, section, key, value):
        self.options[f"{section}.{key}"] = str(value)

    def get(self, key, default=""):
        return self.options.get(key, default)

    def draw_options(self, section, share=0.5):
        for row in self.schema.rows.get(section, ()):
            if row["required"] or self.rng.random() < share:
                value = draw(self.rng, section, row)
                if value is not None:
                    self.set(section, row["name"], value)

    def draw_stack(self, workloads):
        rng, names = self.rng, self.schema.names
        families = collections.defaultdict(list)
        for w in workloads:
            families[NEEDS.get(w, ()) if w else TASKS].append(w)
        workload = rng.choice(families[rng.choice(sorted(families))])
        if self.args.shared:
            workload = rng.choice(["uts", "fib", "synthetic", "contains"])
        self.workload = workload
        needs = set(NEEDS.get(workload, names) if workload else TASKS) | {"transport"}
        self.draw_options("run")
        self.set("run", "timeout", f"{TIMEOUT}s")
        if rng.random() < 0.9:
            self.options.pop("run.time_limit", None)
        self.options.pop("run.ranks", None)  # the option -n gives the number of ranks
        self.set("run", "workload", workload)
        self.set("run", "samples", rng.randint(1, 3))
        self.set("run", "warmup", rng.randint(0, 1))
        devices = [f"cpu:{i}" for i in range(rng.choice([1, 2, 2, 3]))]
        if needs == {"transport", *EXCHANGE} and len(devices) == 1 and rng.random() < 0.9:
            devices = ["cpu:0", "cpu:1"]
        if rng.random() < 0.01:
            devices[0] = rng.choice([d for d in names["device"]]) + rng.choice(["", ":1", ":63", ":64"])
        self.set("run", "devices", " ".join(devices))
        self.draw_options("device.cpu")
        if rng.random() < 0.95:
            self.set("device.cpu", "oversubscribe", "yes")
        for kind in names:
            if kind in ("device", "workload") or not names[kind]:
                continue
            if rng.random() >= (0.99 if kind in needs else 0.06):
                continue
            used = [rng.choice(names[kind])]
            if kind == "sync" and rng.random() < 0.95:
                used = [rng.choice([n for n in names[kind] if n != "warp"])]
            if kind == "qos":
                server = rng.choice([["split"], ["monolithic"], []])
                policies = [n for n in names[kind] if n not in ("split", "monolithic") and rng.random() < 0.35]
                used = server + policies or ["split"]
                if rng.random() < 0.05:
                    used.append(rng.choice(names[kind]))
                rng.shuffle(used)
            self.set(kind, "use", " ".join(used))
            for name in dict.fromkeys(used):
                self.draw_options(f"{kind}.{name}")
        if workload:
            self.draw_options(f"workload.{workload}")
        if "trigger" in needs or rng.random() < 0.02:
            self.ranks = rng.choice([2, 2, 3, 4]) if rng.random() < 0.85 else rng.choice([0, 1])
            if workload == "pingpong" and rng.random() < 0.9:
                self.ranks = 2
        elif needs == {"transport", *TASKS} and not self.two and (self.args.shared or rng.random() < 0.25):
            self.share(workload)
        self.fit(workload, len(devices))
        if self.happens == "bad value":
            self.spoil()

    def share(self, workload):
        """Ranks share tasks, and access each other's memory or send requests."""
        rng = self.rng
        likely = 1 if self.args.shared else 0.97
        self.ranks = rng.randint(2, 8) if self.args.shared else rng.choice([2, 2, 3, 4])
        trigger = rng.choice(["peer", *(t for t in ("gputn", "gputn", "proxy") if t in self.schema.names["trigger"])])
        for section, key, value in (("run", "tasks", "shared"), ("trigger", "use", trigger),
                                    ("termination", "use", rng.choice(["hcounter",
                                                                       "tree"])), ("scheduler", "use", "mgws"),
                                    ("scheduler.mgws", "transfer", "body"), ("scheduler.mgws", "owners", 1)):
            if rng.random() < likely:
                self.set(section, key, value)
        if workload == "fib" and rng.random() < likely:
            self.set("workload.fib", "mode", "spawn")
        if self.args.shared:  # ranks with non-coherent devices cannot share tasks
            self.options.pop("transport.host.atomics", None)
            self.options.pop("transport.p2p.atomics", None)
        if trigger != "peer":
            self.set(f"trigger.{trigger}", "provider", rng.choice(["tcp", "tcp", "net", "sockets"]))
            self.set(f"trigger.{trigger}", "wait", rng.choice(["yield", "sleep"]))

    def fit(self, workload, devices):
        """Bounds options that are expensive in combination, or that only work together."""
        rng, own = self.rng, f"workload.{workload}"
        workers, lanes = int(self.get("device.cpu.workers", "2")) or 2, int(self.get("device.cpu.lanes", "1"))
        if self.get("device.cpu.workers") == "":
            self.set("device.cpu", "workers", 2)
        threads = workers * devices * lanes
        spins = "spin" in (self.get("device.cpu.wait"), self.get("sync.backoff.wait")) or self.get("sync.use") == "poll"
        if threads > 4 and (spins or lanes > 1):  # each hand-over from thread to thread takes a time slice
            self.set("device.cpu", "workers", 2 if devices < 3 and lanes == 1 else 1)
            self.set("device.cpu", "lanes", min(lanes, 2))
            lanes = min(lanes, 2)
        if lanes > 1:
            for key, most in (("tasks", 1000), ("n", 9), ("fires", 100), ("requests", 100), ("size", 60)):
                if int(self.get(f"{own}.{key}", "0") or 0) > most:
                    self.set(own, key, most)
            for key, value in (("n", 9), ("tasks", 500)):
                if any(r["name"] == key for r in self.schema.rows[own]) if workload else False:
                    self.options.setdefault(f"{own}.{key}", str(value))
        if NEEDS.get(workload) == ("trigger",) and rng.random() < 0.95:  # the threads of the NIC engines need the cores
            self.set("device.cpu", "yield", "yes")
        if self.get(f"trigger.{self.get('trigger.use')}.wait") == "spin":  # the thread of each rank occupies a core
            for key, most in (("fires", 20), ("per", 20), ("rounds", 4), ("bytes", 1024), ("n", 16), ("sweeps", 3)):
                if int(number(self.get(f"{own}.{key}", "99999999"), "size")) > most and \
                        any(r["name"] == key for r in self.schema.rows.get(own,
                                                                           ())):  # without a workload there are none
                    self.set(own, key, most)
        for row in self.schema.rows.get(own, ()):  # a default may be too expensive
            if row["type"] in ("u32", "u64", "size") and f"{own}.{row['name']}" not in self.options:
                low, high = bounds(own, row)
                if number(row["default"], row["type"]) > high:
                    self.set(own, row["name"], written(high, row["type"]))
        if workload == "msgrate" and rng.random() < 0.9:
            self.set(own, "per", rng.choice([d for d in range(1, 301) if int(self.get(f"{own}.fires")) % d == 0]))
        if workload == "contains":
            self.set(own, "path", self.folder)
            self.options.pop(f"{own}.index", None)
        if workload == "uts":
            if rng.random() < 0.97 or lanes > 1:
                self.set(own, "tree", "custom")
            elif self.get(f"{own}.tree").endswith("L"):  # more nodes than a run has time for
                self.set(own, "tree", self.get(f"{own}.tree")[:2])
            if self.get(f"{own}.type") == "binomial":
                self.set(own, "b0", rng.randint(1, 1000))
                if rng.random() < 0.97:
                    m = int(self.get(f"{own}.m", "8"))
                    self.set(own, "q", f"{min(1, rng.uniform(0, 0.95) / m):.6g}")
            elif self.get(f"{own}.type") == "hybrid":
                m = int(self.get(f"{own}.m", "8"))
                self.set(own, "q", f"{min(1, rng.uniform(0, 0.9) / m):.6g}")
            if self.get(f"{own}.type") != "binomial":
                self.set(own, "depth", rng.randint(1, 5))
                self.set(own, "b0", f"{rng.uniform(1, 4):.3g}")
        if workload.startswith("requests_") and not self.args.long:
            for server in ("split", "monolithic"):
                self.set(f"qos.{server}", "class", rng.choice(["other", "idle"]))
        elif workload.startswith("requests_") or self.get("qos.use"):
            for server in ("split", "monolithic"):  # a polling real-time thread occupies a core
                if self.get(f"qos.{server}.class") == "fifo":
                    self.set(f"qos.{server}", "notify", "eventfd")
        if self.get("transport.use") and self.get(f"transport.{self.get('transport.use')}.atomics") == "no" and \
                self.get("termination.use") == "counter" and rng.random() < 0.9:
            self.set("termination", "use", rng.choice(["hcounter", "tree"]))
        if self.ranks and rng.random() < 0.97:  # this test does not choose the cores of a rank
            self.options.pop("device.cpu.cores", None)
        for section in ("scheduler.mgws", "scheduler.static", "scheduler.host"):  # mostly powers of two
            for key in ("local_queue", "public_queue", "backlog", "batch", "returns"):
                v = int(self.get(f"{section}.{key}", "0"))
                if v & (v - 1) and rng.random() < 0.95:
                    self.set(section, key, 2 << int(math.log2(v)) - 1)
        for key, good in ((f"{own}.outstanding", [1, 2, 64, 1024]), ("scheduler.mgws.owners", [1, 2, 4]),
                          ("sync.wic.shards", [0, 1, 2, 16]), ("sync.wic.companions", [0, 2, 4, 16])):
            if key in self.options and rng.random() < 0.95:
                self.options[key] = str(rng.choice(good[:1] if self.get("run.tasks") == "shared" else good))

    def spoil(self):
        """Sets one value that its row forbids."""
        for _ in range(50):
            name = self.rng.choice(sorted(self.options))
            section, _, key = name.rpartition(".")
            row = next((r for r in self.schema.rows.get(section, ()) if r["name"] == key), None)
            value = row and outside(self.rng, row)
            if value is not None:
                self.bad = name
                self.options[name] = value
                return
        self.happens = "nothing"

    def command(self):
        if self.two:
            words = [f"{self.build}/tests/soak_two", str(self.stop_after)]
            for i, options in enumerate(self.stacks):
                words += ["--"] * i + [f"{k}={v}" for k, v in options.items()]
            return words
        words = [f"{self.build}/gpuloom", "run", f"{self.build}/soak/conf.ini",
                 "--quiet"] + (["-n", str(self.ranks)] if self.ranks else [])
        if self.happens == "timeout":
            self.set("run", "timeout", f"{self.rng.choice([1, 2, 10, 40])}ms")
        if self.happens in ("kill", "interrupt"):
            self.set("run", "samples", 1000000)
        for key, value in self.options.items():
            words += ["--set", f"{key}={value}"]
        return words


class Schema:
    """The option rows of the core and of all plug-ins, from `gpuloom config schema --json`."""

    def __init__(self, build):
        doc = json.loads(subprocess.run([f"{build}/gpuloom", "config", "schema", "--json"], check=True,
                                        stdout=subprocess.PIPE, timeout=LIMIT).stdout)
        self.rows, self.names = dict(doc["core"]), {kind: [] for kind in doc["core"] if kind not in
                                                    ("gpuloom", "run", "sweep")}
        for kind in ("device", "workload"):
            self.names[kind] = []
        for plugin in doc["plugins"]:
            self.names[plugin["kind"]].append(plugin["short"])
            self.rows[f"{plugin['kind']}.{plugin['short']}"] = plugin["options"]


# ---- a run and its judgement ---------------------------------------------------------------------


def descendants(pid):
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(path) as f:
                found += [int(c) for c in f.read().split()]
        except OSError:
            pass
    return found + [d for c in found for d in descendants(c)]


def freeze(pid):
    """Stops a process, so that the process to be killed has not ended by itself. Returns whether the process exists."""
    send(pid, signal.SIGSTOP)
    while True:
        try:
            with open(f"/proc/{pid}/stat") as f:
                state = f.read().rpartition(")")[2].split()[0]
        except OSError:
            return False
        if state in "TtZX":
            return state in "Tt"
        time.sleep(0.0005)


def may_go(pid):
    """Returns whether the end of the process may have no effect on the job: the process probes plug-ins, or has ended."""
    try:
        with open(f"/proc/{pid}/cmdline") as f:
            return f.read().split("\0")[1:2] in ([], ["probe"])
    except OSError:
        return True


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def wait_for(p, seconds):  # of real time
    try:
        p.wait(max(0, seconds))
        return True
    except subprocess.TimeoutExpired:
        return False


class Verdict(Exception):
    """A failed run: the kind of failure, which is counted, and a sentence."""


def disturb(p, case, rng, clock, limit):
    """Stops, interrupts or kills the run. Returns the killed pid, or 0."""
    if case.happens == "stops":
        long = case.args.long
        while p.poll() is None and clock.read() < limit:
            if wait_for(p, rng.expovariate(1 / (0.1 if long else 0.03))):
                break
            target = rng.choice([p.pid] + 3 * descendants(p.pid))
            send(target, signal.SIGSTOP)
            time.sleep(1 if long and rng.random() < 0.2 else rng.expovariate(1 / 0.01))
            send(target, signal.SIGCONT)
            case.count += 1
    elif case.happens == "interrupt" and not wait_for(p, rng.expovariate(1 / 0.2)):
        for pause in (rng.choice([0, 0.01, 3]), LEAVE):  # the first signal ends the run after the sample in progress, the second at once
            send(p.pid, rng.choice([signal.SIGINT, signal.SIGTERM]))
            case.count += 1
            if pace.wait(p, pause):
                return 0
        raise Verdict("hang", f"no end within {LEAVE} s of the second interrupt")
    while case.happens == "kill" and not wait_for(p, rng.expovariate(1 / 0.2)) and clock.read() < limit:
        target = rng.choice([p.pid] + 3 * descendants(p.pid))
        unmissed = not freeze(target) or may_go(target)
        send(target, signal.SIGKILL)
        case.count += 1
        if pace.wait(p, 1 if unmissed else LEAVE):
            return target
        about_to_end = rf"warning: .*: its process \(pid {target}\) was killed"  # only a retiring device warns of it
        if not unmissed and not re.search(about_to_end, case.output()):
            raise Verdict("hang", f"no end within {LEAVE} s of the end of process {target}")
    return 0


def limit_of(case):
    """Returns a time limit. Each execution has its own time-out, and beside other load many may come close to it."""
    stacks = case.stacks if case.two else [case.options]
    counts = [str(o.get(f"run.{key}", 1)) for o in stacks for key in ("samples", "warmup")]
    executions = sum(min(int(n), 4) for n in counts if n.isdecimal())  # the run must reject values that are no numbers
    return LIMIT + SAMPLE * max(executions - 1, 0)


def judge(case, status, said, killed, pid):
    """Returns the outcome in a word, or a Verdict."""
    for word in ("Sanitizer", "runtime error:", "internal error", "Assertion", "corrupted", "(null)"):
        if word in said:
            raise Verdict("sanitizer" if word[0] in "Sr" else "internal error", f"says '{word}'")
    if killed == pid:
        return "killed"
    if status in (-signal.SIGINT, -signal.SIGTERM) and case.happens == "interrupt":
        return "interrupted"  # by a signal before the handlers were set, or by the third signal
    if status < 0 or 128 < status and status != 130:
        raise Verdict("crash", f"ended by signal {-status if status < 0 else status - 128}")
    if status and not said.strip():
        raise Verdict("no sentence", f"exit {status} without a word")
    if killed:
        return "killed" if status else "verified"
    if status == 3 and not re.search(r"victim|exec: ", said):  # the wrong result of another program is no error of gpuloom
        raise Verdict("wrong", "exit 3")
    if status == 124:
        if case.happens == "timeout" or "time_limit" in said:
            return "timed out"
        raise Verdict("hang", "a sample that does not end")
    if status == 130:
        if case.happens == "interrupt":
            return "interrupted"
        raise Verdict("exit", "exit 130 without an interrupt")
    if status in (1, 2, 3, 4):
        if case.bad and case.bad.rpartition(".")[2] not in said:
            raise Verdict("refusal", f"does not name {case.bad}")
        stacks = case.stacks if case.two else [case.options]
        every = {k: v for o in stacks for k, v in o.items()}
        names = set(case.schema.names) | {k.rpartition(".")[2] for k in every} | {"-n", "[workload", "victim"}
        devices = " ".join(o["run.devices"] for o in stacks).split()
        names |= {"exec"} | {d.partition(":")[0] for d in devices if d[:3] != "cpu"}
        if status != 1 or re.search("raise|choose|lower", said):
            if any(re.search(rf"(?<![a-z]){re.escape(n)}(?![a-z])", said) for n in names):
                return "refused"
            raise Verdict("refusal", "names no option")
    if status:
        raise Verdict("exit", f"exit {status}")
    if case.bad and not case.two:
        raise Verdict("refusal", f"takes {case.bad} = {case.options[case.bad]}")
    return "verified"


def next_run(build):
    """Runs a job that removes the files of a killed job from shared memory. A command that is killed after its provider has
    made a region and before the region's name is removed cannot remove the name."""
    subprocess.run([f"{build}/gpuloom", "run", "conf/pingpong.ini", "--samples", "1", "--quiet", "--set",
                    "trigger.provider=shm"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, timeout=LIMIT)


def leavings(first, before, folder, killed, build):
    """Returns processes of the job that outlive it (this process is their reaper), and its files."""
    clock, left = pace.Clock(), []
    while clock.read() < LEAVE:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            left = []
            break
        left = descendants(os.getpid())
        time.sleep(0.01)
    names = []
    for pid in left:
        try:
            with open(f"/proc/{pid}/cmdline") as f:
                names.append(f"process {pid} ({f.read().split(chr(0))[0]})")
        except OSError:
            pass
        send(pid, signal.SIGKILL)
    regions = re.compile(rf"gpuloom-\d+-{first}-")
    if killed == first and any(map(regions.match, set(os.listdir("/dev/shm")) - before)):
        next_run(build)
    for name in set(os.listdir("/dev/shm")) - before:
        if OWN_SHM or str(first) in re.findall(r"\d+", name):
            names.append(f"/dev/shm/{name}")
            os.unlink(f"/dev/shm/{name}")
    return names + [f"temporary file {n}" for n in os.listdir(folder) if n != ".nv"]  # NVIDIA's driver makes .nv


def run(case, rng, root):
    case.count, case.said, killed, verdict = 0, "", 0, None
    scratch = tempfile.mkdtemp(dir=root)
    before = set(os.listdir("/dev/shm"))
    with tempfile.TemporaryFile() as talk:
        case.output = lambda: os.pread(talk.fileno(), 1 << 20, 0).decode(errors="replace")
        p = subprocess.Popen(case.command(), stdin=subprocess.DEVNULL, stdout=talk, stderr=talk,
                             env=dict(os.environ, TMPDIR=scratch, HOME=scratch, FI_SOCKETS_PE_WAITTIME="0"))
        limit = limit_of(case)
        clock = pace.Clock()
        try:
            killed = disturb(p, case, rng, clock, limit)
            if not pace.wait(p, limit - clock.read()):
                raise Verdict("hang", f"no end in {limit} s")
        except Verdict as v:
            verdict = v
            if shutil.which("gdb"):
                subprocess.run(["gdb", "-p", str(p.pid), "-batch", "-ex", "thread apply all bt 6"], stdout=talk,
                               stderr=subprocess.DEVNULL)
            for pid in [p.pid] + descendants(p.pid):
                send(pid, signal.SIGKILL)
            p.wait()
        case.said = case.output()
    left = leavings(p.pid, before, scratch, killed, case.build)
    shutil.rmtree(scratch)
    if verdict:
        raise verdict
    end = judge(case, p.returncode, case.said, killed, p.pid)
    if left:
        raise Verdict("left behind", ", ".join(left))
    return end


def own_shared_memory():
    """Mounts a private /dev/shm, if permitted. Returns 1 if so."""
    libc = ctypes.CDLL(None)
    return not (libc.unshare(0x20000) or libc.mount(b"none", b"/", None, 0x44000, None) or  # NEWNS; REC | PRIVATE
                libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, None))


def documents(folder):
    """Makes the texts for `contains`, and a conf for which --set has all options. They remain, so that commands can be
    repeated."""
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/../conf.ini", "w") as f:
        f.write("; all is said by --set\n")
    rng = random.Random(1)
    for i in range(60):
        text = " ".join(rng.choice(["und", "zwischen", "oder", "für",
                                    "lang"]) for _ in range(rng.randrange(500))).encode()
        name = f"{folder}/{i}" + rng.choice([".txt", ".gz"])
        packer = zlib.compressobj(6, zlib.DEFLATED, 31)
        if not os.path.exists(name):
            with open(name, "wb") as f:
                f.write(packer.compress(text) + packer.flush() if name.endswith("gz") else text)
    return os.path.abspath(folder)


def work(args, first):
    """Runs every args.jobs-th configuration from `first` on. Returns the counts."""
    unit = {"s": 1, "m": 60, "h": 3600}
    end = time.monotonic() + (float(args.time[:-1]) * unit[args.time[-1]] if args.time else 1e9)
    runs = args.runs if args.runs is not None else 10**9 if args.time else 300
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: orphans of a job become children of this process
    global OWN_SHM
    OWN_SHM = own_shared_memory()
    schema, folder = Schema(args.build), documents(f"{args.build}/soak/documents")
    ends, failures, happened, stops = collections.Counter(), collections.Counter(), collections.Counter(), 0
    done = 0
    with tempfile.TemporaryDirectory() as root:
        for n in range(first, runs, args.jobs) if args.only is None else [args.only]:
            if time.monotonic() > end:
                break
            rng = random.Random(args.seed * 1000003 + n)
            case = Case(schema, rng, n, args.build, folder, args)
            begin = time.monotonic()
            try:
                what = run(case, rng, root)
                ends[what] += 1
            except Verdict as v:
                what = "FAILED"
                failures[v.args[0]] += 1
                print(f"FAILED case {n}, {case.happens}: {v.args[0]}: {v.args[1]}")
                print("".join(f"    {line}\n" for line in case.said.splitlines()[:40]), end="")
                if case.happens in ("stops", "kill", "interrupt"):
                    print(f"  repeat: python3 tests/soak.py {args.build} --seed {args.seed} --only {n}"
                          f"{' --long' if args.long else ''}{' --shared' if args.shared else ''}")
                print(f"  {'of' if case.happens in ('stops', 'kill', 'interrupt') else 'repeat:'} "
                      f"{shlex.join(case.command())}", flush=True)
            if args.show:
                print(f"{n} {what} {case.happens} {time.monotonic() - begin:.2f} s: {shlex.join(case.command())}\n"
                      f"{case.said[:600]}", flush=True)
            done += 1
            happened[case.happens] += 1
            stops += case.count if case.happens == "stops" else 0
            if done % 1000 == 0:
                print(f"{done} runs, {dict(ends)}", flush=True)
    return done, ends, failures, happened, stops


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("build")
    ap.add_argument("--runs", type=int)
    ap.add_argument("--time", help="as in 90s, 20m, 1h")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--only", type=int)
    ap.add_argument("--jobs", type=int, default=1, help="so many at once")
    ap.add_argument("--long", action="store_true")
    ap.add_argument("--shared", action="store_true", help="nothing but ranks that share tasks, 2 to 8 of them")
    ap.add_argument("--show", action="store_true")
    args = ap.parse_args()
    parts = []
    if args.jobs > 1:
        with multiprocessing.Pool(args.jobs) as pool:
            parts = pool.starmap(work, [(args, i) for i in range(args.jobs)], 1)
    parts = parts or [work(args, 0)]  # no other process runs, as it would count as left behind by a job
    done, ends, failures, happened, stops = (sum(of, start=of[0].__class__()) for of in zip(*parts))
    bad = sum(failures.values())
    print(f"{done} runs of seed {args.seed}: " + ", ".join(f"{v} {k}" for k, v in sorted(ends.items())) +
          f"; {stops} stops, {happened['kill']} kills, {happened['interrupt']} interrupts tried")
    for kind, count in sorted(failures.items()):
        print(f"  {kind}: {count}")
    print(f"{failures['wrong']} wrong, {failures['hang']} hangs, {bad} failures")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
