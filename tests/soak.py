#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Many runs of uts and contains with random options of the scheduler, the detector and the devices, while
# workers are stopped and continued at random: no wrong count, no hang.
#   tests/soak.py BUILD [--runs N] [--seed S] [--only RUN]     a failure prints the command that repeats it
import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import zlib

args = argparse.ArgumentParser()
args.add_argument("build")
args.add_argument("--runs", type=int, default=2000)
args.add_argument("--seed", type=int, default=1)
args.add_argument("--only", type=int)
args = args.parse_args()
LIMIT = 120  # seconds for one run, stops included

WORDS = ["und", "zwischen", "oder", "nicht", "Datei", "System", "Wort", "lang"]


def documents(folder, rng):
    for i in range(120):
        text = " ".join(rng.choice(WORDS) for _ in range(rng.randrange(2000))).encode()
        with open(f"{folder}/{i}.gz", "wb") as f:
            packer = zlib.compressobj(6, zlib.DEFLATED, 31)
            f.write(packer.compress(text) + packer.flush())


def options(rng, folder):
    power = lambda low, high: 2 ** rng.randint(low, high)
    o = {
        "scheduler.use": "mgws",
        "scheduler.mgws.local_queue": power(1, 7),
        "scheduler.mgws.public_queue": power(0, 8),
        "scheduler.mgws.backlog": rng.choice([0, 0, 1, 32]),
        "scheduler.mgws.owners": rng.choice([1, 1, 2, 4]),
        "scheduler.mgws.victim": rng.choice(["random", "biased", "local", "neighbour", "none"]),
        "scheduler.mgws.overflow": rng.choice(["two_atomics", "damping"]),
        "scheduler.mgws.transfer": rng.choice(["body", "id"]),
        "scheduler.mgws.claim": rng.choice(["guided", "fixed"]),
        "scheduler.mgws.idle": rng.choice(["spin", "yield", "park", "park"]),
        "scheduler.mgws.priorities": rng.choice(["yes", "no"]),
        "scheduler.mgws.in_place_depth": rng.choice([0, 2, 64]),
        "termination.use": rng.choice(["counter", "hcounter", "tree"]),
        "transport.use": rng.choice(["host", "p2p"]),
        "device.cpu.oversubscribe": "yes",
        "device.cpu.workers": rng.randint(1, 4),
        "device.cpu.lanes": rng.choice([1, 1, 1, 2]),
        "device.cpu.isolation": rng.choice(["thread", "process"]),
        "run.devices": " ".join(f"cpu:{i}" for i in range(rng.randint(1, 3))),
        "run.samples": 1,
        "run.warmup": 0,
        "run.timeout": "100s",
        "run.seed": rng.randrange(1 << 30),
    }
    if o["termination.use"] != "counter" and rng.random() < 0.4:
        o[f"transport.{o['transport.use']}.atomics"] = "no"  # tasks cross by mail
    if rng.random() < 0.6:
        o |= {"run.workload": "uts", "workload.uts.tree": "custom", "workload.uts.seed": rng.randrange(1 << 20),
              "workload.uts.create": rng.choice(["lazy", "eager"]), "workload.uts.keep": power(0, 11)}
        if rng.random() < 0.5:
            o |= {"workload.uts.depth": rng.randint(4, 7)}
        else:
            o |= {"workload.uts.type": "binomial", "workload.uts.b0": rng.randint(10, 2000)}
    else:
        o |= {"run.workload": "contains", "workload.contains.path": folder,
              "workload.contains.word": rng.choice(WORDS + ["fehlt"]),
              "workload.contains.load": rng.choice(["task", "ahead"])}
    return o


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(c) for c in f.read().split()]
    except OSError:
        return []


def disturb(p, rng):
    """Stops the process or one of its device processes for a moment, until it ends. How often it did."""
    count, until = 0, time.monotonic() + LIMIT
    while p.poll() is None:
        if time.monotonic() > until:
            return -1
        time.sleep(rng.expovariate(1 / 0.01))
        target = rng.choice([p.pid] + 3 * children(p.pid))
        try:
            os.kill(target, signal.SIGSTOP)
            time.sleep(rng.expovariate(1 / 0.005))
        except ProcessLookupError:
            continue
        finally:
            try:
                os.kill(target, signal.SIGCONT)
            except ProcessLookupError:
                pass
        count += 1
    return count


def main():
    stops = 0
    with tempfile.TemporaryDirectory() as root:
        folder = root + "/texts"
        os.mkdir(folder)
        documents(folder, random.Random(args.seed))
        conf = root + "/soak.ini"
        with open(conf, "w") as f:
            f.write("; all is said by --set\n")
        for run in range(args.runs) if args.only is None else [args.only]:
            rng = random.Random(args.seed * 1000003 + run)
            command = [f"{args.build}/gpuloom", "run", conf]
            for key, value in options(rng, folder).items():
                command += ["--set", f"{key}={value}"]
            p = subprocess.Popen(command + ["--quiet"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            n = disturb(p, rng)
            if n < 0:
                p.kill()
            said = p.communicate()[1].decode(errors="replace")
            if n < 0 or p.returncode:
                print(f"run {run}: {'no end' if n < 0 else f'exit {p.returncode}'}: {said}")
                print(f"repeat: {sys.argv[0]} {args.build} --seed {args.seed} --only {run}")
                print(" ".join(command))
                return 1
            stops += n
            if run % 100 == 99:
                print(f"{run + 1} runs, {stops} stops", flush=True)
    print(f"{args.runs} runs right, workers stopped {stops} times")
    return 0


sys.exit(main())
