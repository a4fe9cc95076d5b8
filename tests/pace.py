# SPDX-License-Identifier: Apache-2.0
"""A clock in seconds of an idle machine, for tests that wait for programs. The clock runs slower while there are more
runnable threads than cores. limit.c and lib.sh have the same clock."""

import os
import subprocess
import time


def pace():
    """Returns the speed of the clock: 1, or the share of a core that a thread gets."""
    with open("/proc/loadavg") as f:
        mean, _, _, running, _ = f.read().split()
    load = max(float(mean), int(running.split("/")[0]))
    return min(1, os.sysconf("SC_NPROCESSORS_ONLN") / load) if load else 1


class Clock:
    """A clock. read() returns the seconds of an idle machine since the clock was made."""

    def __init__(self):
        self.at, self.spent = time.monotonic(), 0

    def read(self):
        now = time.monotonic()
        self.spent += min(now - self.at, 5) * pace()  # at most 5 s, because in a longer step the machine was stopped
        self.at = now
        return self.spent


def wait(process, seconds):
    """Waits for a subprocess.Popen, with a time limit. Returns whether the process has ended."""
    clock = Clock()
    while clock.read() < seconds:
        try:
            process.wait(min(1, max(0.01, seconds - clock.spent)))
            return True
        except subprocess.TimeoutExpired:
            pass
    return process.poll() is not None
