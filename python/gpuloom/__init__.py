# SPDX-License-Identifier: Apache-2.0
"""gpuloom in Python: loads results, runs confs, compares, sweeps and plots by calling the command gpuloom, and embeds
libgpuloom by ctypes. The module is pure Python. It uses pandas and matplotlib if they are installed.

    import gpuloom
    gpuloom.sweep("conf/uts.ini", "study.jsonl", vary={"device.cpu.workers": [1, 2]}, samples=10)
    table = gpuloom.load("study.jsonl")                # a DataFrame, or without pandas a Table, with a row per sample
    print(table.groupby("device.cpu.workers")["seconds"].median())
    gpuloom.plot(table, x="device.cpu.workers", y="seconds").savefig("study.png")
"""
from .command import Error, compare, report, run, sweep
from .embed import Stack, Task
from .plots import plot, timeline
from .results import Table, frame, load, read

__version__ = "0.1.0"
__all__ = ["Error", "Stack", "Table", "Task", "compare", "frame", "load", "plot", "read", "report", "run", "sweep",
           "timeline"]
