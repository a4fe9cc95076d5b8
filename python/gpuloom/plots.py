# SPDX-License-Identifier: Apache-2.0
"""Plots medians with their 95 % intervals, for which it needs matplotlib, and timelines, for which it does not."""
from __future__ import annotations

import html
import json
import math
import statistics
from typing import Any, Dict, Iterable, List, Optional, Tuple

from .command import Path

Interval = Tuple[float, Optional[float], Optional[float]]  # the median, and the ends of its interval
Point = Tuple[Any, float, Optional[float], Optional[float]]  # x, and an Interval


def interval(values: Iterable[float]) -> Interval:
    """Returns the median and the ends of its 95 % interval. The ends are order statistics, so the interval is exact for
    any distribution. With fewer than 6 values the interval is open, and the ends are None."""
    v = sorted(values)
    n, k, outside = len(v), 0, 0.0
    while k < n // 2:
        outside += 2 * math.comb(n, k) / 2.0 ** n
        if outside > 0.05:
            break
        k += 1
    return statistics.median(v), v[k - 1] if k else None, v[n - k] if k else None


def points(table: Any, x: str, y: str, lines: Optional[str] = None) -> Dict[Any, List[Point]]:
    """Returns {line: [(x, median, low, high)]} of a table from load(), sorted by x."""
    rows = table.to_dict("records") if hasattr(table, "to_dict") else list(table)
    for c in [x, y] + ([lines] if lines else []):
        if c not in table.columns:
            raise KeyError("there is no column %r; there are: %s" % (c, ", ".join(map(str, table.columns))))
    cells: Dict[Any, Dict[Any, List[float]]] = {}
    for row in rows:
        if isinstance(row.get(y), (int, float)) and not math.isnan(row[y]):
            cells.setdefault(row[lines] if lines else "", {}).setdefault(row[x], []).append(row[y])
    return {line: [(at, *interval(v)) for at, v in sorted(of.items())] for line, of in cells.items()}


def plot(table: Any, x: str, y: str = "seconds", lines: Optional[str] = None, ax: Any = None, log: bool = False) -> Any:
    """Draws medians of the column y against the column x, with a line for each value of the column `lines`:
    plot(table, x="device.cpu.workers", y="seconds", lines="scheduler.mgws.victim"). Bars are 95 % intervals of the
    medians. Returns a matplotlib figure; .savefig("a.pdf") writes it."""
    try:
        import matplotlib.pyplot as plt  # type: ignore
    except ImportError:
        raise ImportError("there is no matplotlib: install it, or let `gpuloom report FILE -o FILE.svg` draw") from None
    if ax is None:
        ax = plt.subplots()[1]
    drawn = points(table, x, y, lines)
    for line, at in drawn.items():
        bars = [[0 if low is None else m - low for _, m, low, _ in at],
                [0 if high is None else high - m for _, m, _, high in at]]
        ax.errorbar([str(p[0]) if isinstance(p[0], str) else p[0] for p in at], [p[1] for p in at], yerr=bars, marker="o",
                    capsize=3, label=str(line))
    ticks = sorted({p[0] for at in drawn.values() for p in at if not isinstance(p[0], str)})
    if 0 < len(ticks) <= 10:
        ax.set_xticks(ticks)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    if log:
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=0)
    if lines:
        ax.legend(title=lines)
    return ax.figure


COLOURS = {"busy": "#c8d6e5", "idle": "#ffffff", "termination": "#e0e0e0", "task": "#2e6fb7", "steal": "#d1495b", "acquire": "#66a182",
           "publish": "#edae49"}


def timeline(trace: Path, output: Path, width: int = 1000, begin: Optional[float] = None,
             end: Optional[float] = None) -> Path:
    """Draws a trace, which `gpuloom run --trace FILE` has written, as SVG with a row per worker and an arrow per steal.
    `begin` and `end`, in seconds, select a part. Does not need matplotlib. Returns `output`."""
    with open(trace, encoding="utf-8") as f:
        events = json.load(f)["traceEvents"]
    names = {(e["name"], e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M"}
    rows = sorted((pid, tid) for what, pid, tid in names if what == "thread_name")
    device = {pid: name for (what, pid, _), name in names.items() if what == "process_name"}
    slices = [e for e in events if e["ph"] == "X"]
    if not rows or not slices:
        raise ValueError("%s: nothing is in this timeline" % trace)
    first = begin * 1e6 if begin is not None else 0
    last = end * 1e6 if end is not None else max(e["ts"] + e["dur"] for e in slices)
    left, high, top = 120, 26, 30

    def x(us: Any) -> Any:
        return left + (min(max(us, first), last) - first) / max(last - first, 1e-9) * (width - left - 40)

    y = {row: top + high * i for i, row in enumerate(rows)}
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">'
           % (width, top + high * len(rows) + 50), '<rect width="100%" height="100%" fill="#ffffff"/>']
    depth = {"busy": 0, "idle": 0, "termination": 0}
    for e in sorted(slices, key=lambda e: depth.get(e["cat"], 1)):
        if e["ts"] + e["dur"] < first or e["ts"] > last:
            continue
        inset = 0 if e["cat"] in depth else 5
        out.append('<rect x="%.2f" y="%d" width="%.2f" height="%d" fill="%s" stroke="#8395a7" stroke-width="%s"/>' % (
            x(e["ts"]), y[e["pid"], e["tid"]] + 3 + inset, max(x(e["ts"] + e["dur"]) - x(e["ts"]), 0.6), high - 6 - 2 * inset,
            COLOURS.get(e["cat"], "#999999"), "0" if inset else "0.5"))
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    for e in events:
        if e["ph"] == "f" and e["id"] in starts and first <= e["ts"] <= last:
            s = starts[e["id"]]
            out.append('<path d="M%.2f %d L%.2f %d" stroke="#d1495b" fill="none" marker-end="url(#tip)"/>' % (
                x(s["ts"]), y[s["pid"], s["tid"]] + high // 2, x(e["ts"]), y[e["pid"], e["tid"]] + high // 2))
    for pid, tid in rows:
        out.append('<text x="%d" y="%d" text-anchor="end">%s</text>' % (left - 8, y[pid, tid] + 17, html.escape(
            "%s %s" % (device.get(pid, ""), names["thread_name", pid, tid]))))
    foot = top + high * len(rows) + 14
    rough = max(last - first, 1e-3) / 6  # ticks are at 1, 2 or 5 times a power of ten
    step = next(s for s in (10.0 ** math.floor(math.log10(rough)) * k for k in (1, 2, 5, 10)) if s >= rough * (1 - 1e-9))
    for i in range(math.ceil(first / step - 1e-9), math.floor(last / step + 1e-9) + 1):
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%.4g ms</text>' % (x(i * step), foot, i * step / 1000))
    there = {e["cat"] for e in slices}
    for i, (what, colour) in enumerate((w, c) for w, c in COLOURS.items() if w in there):
        out.append('<rect x="%d" y="10" width="10" height="10" fill="%s" stroke="#8395a7"/><text x="%d" y="19">%s</text>' % (
            left + 100 * i, colour, left + 100 * i + 14, what))
    out.insert(2, '<defs><marker id="tip" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="5" markerHeight="5" orient="auto">'
                  '<path d="M0 0L6 3L0 6z" fill="#d1495b"/></marker></defs>')
    with open(output, "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n</svg>\n")
    return output
