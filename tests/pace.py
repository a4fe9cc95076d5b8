# SPDX-License-Identifier: Apache-2.0
"""Seconds of an idle machine, for tests that wait for programs: the clock runs slower while more threads want to run than
there are cores. The same is in limit.c and lib.sh."""

import os
import subprocess
import time


def pace():
    """How fast the clock runs: 1, or the share of a core that a thread gets."""
    with open("/proc/loadavg") as f:
        mean, _, _, running, _ = f.read().split()
    load = max(float(mean), int(running.split("/")[0]))
    return min(1, os.sysconf("SC_NPROCESSORS_ONLN") / load) if load else 1


class Clock:
    """How many such seconds have passed since it was made."""

    def __init__(self):
        self.at, self.spent = time.monotonic(), 0

    def read(self):
        now = time.monotonic()
        self.spent += min(now - self.at, 5) * pace()  # a machine that was stopped in between has done nothing
        self.at = now
        return self.spent


def wait(process, seconds):
    """Waits for a subprocess.Popen, so long at most. Whether it has ended."""
    clock = Clock()
    while clock.read() < seconds:
        try:
            process.wait(min(1, max(0.01, seconds - clock.spent)))
            return True
        except subprocess.TimeoutExpired:
            pass
    return process.poll() is not None
