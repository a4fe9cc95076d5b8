# SPDX-License-Identifier: Apache-2.0
"""Converts files of other benchmark programs to documents of gpuloom: hyperfine (--export-json), Google Benchmark
(--benchmark_out), nvbench (--json, --jsonbin), and the tables that nccl-tests and the OSU micro-benchmarks print.

    python3 -m gpuloom.foreign before.json after.json >both.jsonl

writes one document per line, a gpuloom.result/1 for each file. If a file has several benchmarks, each of them is a metric.
With --variants, a file with several benchmarks becomes a gpuloom.compare/1 without comparisons, in which each benchmark is
a variant. `gpuloom compare` and `gpuloom report` call this file for what is not their own. It needs the standard library
only, and no other file of the package.

The files are from outside. Times become seconds and rates bytes/s, so that files in different units can be compared. An
entry that is no measurement gives a warning and no sample. Names that gpuloom uses are not given to names of the file: see
outside()."""
from __future__ import annotations

import argparse
import array
import gzip
import json
import math
import os
import re
import stat
import sys
import zlib
from typing import Any, Dict, Iterable, Iterator, List, NoReturn, Optional, Sequence, Tuple

MOST_BYTES = 64 << 20  # of a file
MOST_BENCHMARKS = 2000  # of a file
MOST_METRICS = 100  # of a benchmark
MOST_NAMES = 4000  # metrics of a document
MOST_WARNINGS = 100  # of a file
LONGEST = 180  # bytes of a name: options such as --metric accept 199

COLUMNS = ("variant", "configuration", "point", "sample", "order", "start_ns")  # of a table of samples
FIGURES = ("seconds", "cpu_seconds", "wall_seconds", "user_seconds", "system_seconds", "peak_bytes", "batch_seconds")
FACTORS = ("benchmark", "arguments", "bytes", "type")  # that the readers below give
SECTIONS = ("gpuloom", "run", "sweep", "workload", "device", "transport", "scheduler", "termination", "sync", "barrier",
            "trigger", "qos")  # an option is SECTION.KEY
SECONDS = {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

Object = Dict[str, Any]


class Unreadable(ValueError):
    """A sentence about a file that cannot be converted."""


# ---- names and values from outside -----------------------------------------------------------------


def shown(text: Any, most: int = LONGEST) -> str:
    """Returns a text as outputs can show it: without control characters, and not too long. Texts that differ only in what
    is cut stay different."""
    if not isinstance(text, str):
        return ""
    clean = "".join(c if c.isprintable() and c != "\ufffd" else " " if c in "\t\r\n" else "?" for c in text[:most + 1])
    if len(clean.encode()) <= most:
        return clean
    return clean.encode()[:most - 9].decode("utf-8", "ignore") + "~" + _digest(text)


def _digest(text: str) -> str:
    return "%08x" % zlib.crc32(text.encode("utf-8", "surrogatepass"))


def outside(kind: str, name: str) -> str:
    """The rule for names from outside: a name that gpuloom gives to a column of a table, to one of its own metrics or
    factors, or to an option, gets the prefix "metric." or "factor.". So a counter `seconds` is `metric.seconds`."""
    name = shown(name)
    own = FACTORS if kind == "factor" else ()
    if name in COLUMNS or name in FIGURES or name in own or name.startswith(kind + ".") or name.split(".")[0] in SECTIONS:
        return "%s.%s" % (kind, name)
    return name


def number(value: Any) -> Optional[float]:
    """Returns a finite number, or None. Numbers beyond 1e150 count as missing, so that sums stay finite."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= 1e150:
        return None
    return float(value) if abs(value) >= 1e-150 else 0.0


def number_of(text: Any) -> Optional[float]:
    """Returns the number that a text is, or None."""
    if not isinstance(text, str) or len(text) > 60 or not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text, re.ASCII):
        return None
    return number(float(text))


def table(o: Any, key: str) -> Object:
    """Returns a member that is an object, else an empty one."""
    value = o.get(key) if isinstance(o, dict) else None
    return value if isinstance(value, dict) else {}


def items(o: Any, key: str) -> List[Any]:
    """Returns a member that is a list, else an empty one."""
    value = o.get(key) if isinstance(o, dict) else None
    return value if isinstance(value, list) else []


def word(o: Any, key: str) -> str:
    """Returns a member that is a text, else ""."""
    value = o.get(key) if isinstance(o, dict) else None
    return value if isinstance(value, str) else ""


# ---- what a reader collects ------------------------------------------------------------------------


class Benchmark:
    """A benchmark of a file: its samples of each metric, and the values of its factors."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.varied: Dict[str, str] = {}
        self.metrics: Dict[str, Object] = {}
        self.leading: List[str] = []  # judged by default; the first one stands for the benchmark
        self.warnings: List[Object] = []
        self.status, self.error = "ok", ""

    def value(self, metric: str, unit: str, better: str, value: float, lead: bool = False) -> None:
        """Adds a sample. `metric` is a name of gpuloom, or comes from outside()."""
        m = self.metrics.get(metric)
        if m is None:
            if len(self.metrics) >= MOST_METRICS:
                return
            m = self.metrics[metric] = {"unit": unit, "better": better, "samples": []}
        m["samples"].append(value)
        if lead and metric not in self.leading:
            self.leading.append(metric)

    def level(self, factor: str, level: str) -> None:
        self.varied.setdefault(factor, shown(level))

    def failed(self, status: str, text: str) -> None:
        self.status, self.error = status, shown(text, 400)

    def has_samples(self) -> bool:
        return any(m["samples"] for m in self.metrics.values())


class File:
    """A file of another program, and what its reader finds in it."""

    def __init__(self, path: str, tool: str) -> None:
        self.path, self.tool = path, tool
        self.benchmarks: Dict[str, Benchmark] = {}
        self.choices: Dict[str, str] = {}  # versions and devices
        self.before: Object = {}  # facts of the environment
        self.warnings: Dict[Tuple[str, str], None] = {}

    def bad(self, text: str, *values: Any) -> NoReturn:
        raise Unreadable("'%s'%s" % (self.path, text % values))

    def benchmark(self, name: str, again: bool = True) -> Benchmark:
        """Returns the benchmark of a name. If there is one, `again` decides: True returns it, so that its samples are
        added; False makes another one, whose name ends in its number."""
        name = shown(name) or self.tool
        if name in self.benchmarks and not again:
            name = "%s #%d" % (name, len(self.benchmarks) + 1)
        found = self.benchmarks.get(name)
        if found is None:
            if len(self.benchmarks) >= MOST_BENCHMARKS:
                self.bad(" has more than %d benchmarks: select some of them", MOST_BENCHMARKS)
            found = self.benchmarks[name] = Benchmark(name)
        return found

    def choose(self, name: str, value: Any) -> None:
        """Records a version or a setting. The first one counts."""
        if isinstance(value, bool):
            value = "true" if value else "false"
        elif number(value) is not None:
            value = "%.15g" % value
        if isinstance(value, str) and value:
            self.choices.setdefault(name, shown(value))

    def warn(self, kind: str, text: str) -> None:
        """Warns of something once, however many entries it concerns."""
        self.warnings.setdefault((kind, shown(text, 400)))

    def finish(self) -> None:
        """Leaves out benchmarks without samples. One with wrong results stays, because they must not be overlooked."""
        if not any(b.has_samples() for b in self.benchmarks.values()):
            why = [text for _, text in self.warnings] + [b.name + ": " + b.error for b in self.benchmarks.values() if b.error]
            self.bad(" is of %s, but has no samples%s", self.tool, ": " + why[0] if why else "")
        self.benchmarks = {k: b for k, b in self.benchmarks.items() if b.has_samples() or b.status == "wrong"}
        for b in self.benchmarks.values():
            for m in b.metrics.values():
                n, ordered = len(m["samples"]), sorted(m["samples"])
                m["median"] = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2

    def warning_list(self) -> List[Object]:
        """Returns the warnings as a list of a document."""
        found = [{"id": kind, "text": text} for kind, text in self.warnings]
        if len(found) > MOST_WARNINGS:
            found[MOST_WARNINGS:] = [{"id": "more", "text": "%d more warnings" % (len(found) - MOST_WARNINGS)}]
        return found

    def result(self, metrics: Object, leading: List[str], status: str, error: str, warnings: List[Object]) -> Object:
        """Returns a gpuloom.result/1."""
        return {
            "schema": "gpuloom.result/1", "status": status, "error": {"code": -1, "text": error} if error else None,
            "gpuloom": {"version": "", "revision": {"null_because": "read from a file of %s" % self.tool}},
            "started": "", "title": "", "workload": self.tool, "config": {}, "plugins": [], "devices": [],
            "metrics": metrics, "leading": leading, "samples": [], "workers": [], "environment": {"before": self.before},
            "choices": self.choices, "warnings": warnings,
        }

    def of_one(self) -> Object:
        """Returns the document of a file with one benchmark."""
        b = next(iter(self.benchmarks.values()))
        return self.result(b.metrics, b.leading, b.status, b.error, self.warning_list())

    def named(self) -> Object:
        """Returns the document of all benchmarks. Their names begin the names of their metrics; the first leading metric
        has the name of the benchmark alone. Leading metrics come first, so that the limit drops others."""
        metrics: Object = {}
        leading: List[str] = []
        status, error = "ok", ""
        for b in self.benchmarks.values():
            if b.status != "ok" and status != "wrong":
                status, error = b.status, "%s: %s" % (b.name, b.error)
        for first in True, False:
            for b in self.benchmarks.values():
                for name, m in b.metrics.items():
                    if (name in b.leading) != first or len(metrics) >= MOST_NAMES:
                        continue
                    name = _free(b.name if name in b.leading[:1] else "%s.%s" % (b.name, name), metrics)
                    metrics[name] = m
                    if first:
                        leading.append(name)
        all_of_them = sum(len(b.metrics) for b in self.benchmarks.values())
        if len(metrics) < all_of_them:
            self.warn("metrics", "%d of %d metrics are left out: select some benchmarks" % (
                all_of_them - len(metrics), all_of_them))
        return self.result(metrics, leading, status, error, self.warning_list())

    def variants(self) -> Object:
        """Returns a document with a variant per benchmark."""
        found = self.warning_list()
        variants = [{"name": b.name, "label": b.name, "varied": b.varied,
                     "result": self.result(b.metrics, b.leading, b.status, b.error, [] if i else found)}
                    for i, b in enumerate(self.benchmarks.values())]
        return {"schema": "gpuloom.compare/1", "status": "ok", "error": None, "gpuloom": variants[0]["result"]["gpuloom"],
                "started": "", "title": self.tool, "warnings": found, "design": {}, "variants": variants, "schedule": [],
                "comparisons": []}


def _free(name: str, taken: Iterable[str]) -> str:
    """Returns a name in the characters that options such as --metric accept. If two names become equal, the later one
    gets a digest of what it was, so that it is the same in the next file."""
    plain = outside("metric", re.sub(r"[^A-Za-z0-9_./<>=+*&%#~\x80-\U0010ffff-]|\s", "_", name.replace(":", "=")))
    if plain in taken:
        plain = "%s~%s" % (plain, _digest(name))
    while plain in taken:
        plain += "#"
    return plain


# ---- hyperfine -------------------------------------------------------------------------------------


def read_hyperfine(f: File, document: Object) -> None:
    for i, o in enumerate(items(document, "results")):
        name = word(o, "command")
        b = f.benchmark(name or "command", again=False)
        times, memory, codes = items(o, "times"), items(o, "memory_usage_byte"), items(o, "exit_codes")
        failed = [k for k, code in enumerate(codes) if number(code) != 0]  # null, after a signal, counts as failed
        for k, v in enumerate(times):
            if number(v) is None:
                f.bad(": results[%d].times[%d] is not a number", i, k)
        for k, v in enumerate(memory):
            if number(v) is None:
                f.bad(": results[%d].memory_usage_byte[%d] is not a number", i, k)
        if not times and number(o.get("mean") if isinstance(o, dict) else None) is None:
            f.bad(": results[%d] has neither times nor a mean: export it again by hyperfine --export-json", i)
        for parameter, level in table(o, "parameters").items():
            b.level(outside("factor", parameter), level)
        if failed:
            b.failed("failed", "%d of %d executions had an exit code other than 0, and do not count" % (len(failed), len(codes)))
        lost = set(failed)
        for k, v in enumerate(times):
            if k not in lost:
                b.value("seconds", "s", "less", number(v), lead=True)  # type: ignore
        for k, v in enumerate(memory):
            if k not in lost:
                b.value("peak_bytes", "bytes", "less", number(v))  # type: ignore
        if failed:
            continue  # the means below include the failed executions
        if not times:
            b.value("seconds", "s", "less", number(o["mean"]), lead=True)  # type: ignore
            f.warn("mean_only", "%s: the file has only the mean, which allows no verdict" % shown(name))
        for key in "user", "system":
            mean = number(o.get(key))
            if mean is not None:
                b.value(key + "_seconds", "s", "less", mean)


# ---- Google Benchmark ------------------------------------------------------------------------------

GOOGLE_INDEX = {"family_index", "per_family_instance_index", "repetitions", "repetition_index", "threads", "iterations",
                "real_time", "cpu_time"}  # numbers that are neither metrics nor counters of the user
GOOGLE_RATE = {"bytes_per_second": "bytes/s", "items_per_second": "items/s"}


def read_google(f: File, document: Object) -> None:
    context, entries = table(document, "context"), items(document, "benchmarks")
    for key in "library_version", "library_build_type", "cpu_scaling_enabled", "aslr_enabled":
        f.choose(key, context.get(key))
    if number(context.get("num_cpus")) is not None:
        f.before["cores_online"] = number(context["num_cpus"])
    if word(context, "library_build_type") == "debug":
        f.warn("debug_build", "the benchmark library is a debug build, which is slower")
    single = any(word(o, "run_type") != "aggregate" for o in entries)
    for i, o in enumerate(entries):
        name, unit = word(o, "run_name") or word(o, "name"), word(o, "time_unit")
        mean = word(o, "run_type") == "aggregate"
        if mean and (single or word(o, "aggregate_name") != "mean"):
            continue
        if isinstance(o, dict) and (o.get("error_occurred") is True or o.get("skipped") not in (None, False)):
            what, why = ("failed", "error_message") if o.get("error_occurred") is True else ("skipped", "skip_message")
            why = shown(word(o, why) or word(o, "error_message"), 200)
            f.warn(what, "%s %s: %s" % (shown(name), "failed" if what == "failed" else "was skipped", why or "no reason given"))
            continue
        real, cpu = (number(o.get(key)) for key in ("real_time", "cpu_time")) if isinstance(o, dict) else (None, None)
        if not name or real is None:
            f.bad(": benchmarks[%d] has no %s", i, "real_time" if name else "name")
        if unit and unit not in SECONDS:
            f.bad(": benchmarks[%d].time_unit is '%s': expected ns, us, ms or s", i, shown(unit, 20))
        length = SECONDS.get(unit, 1e-9)
        b = f.benchmark(name)
        if mean:
            f.warn("mean_only", "%s: the file has only the mean, which allows no verdict: leave out "
                   "--benchmark_report_aggregates_only" % shown(name))
        family, _, arguments = name.partition("/")
        b.level("benchmark", family)
        if arguments:
            b.level("arguments", arguments)
        b.value("seconds", "s", "less", real * length, lead=True)
        if cpu is not None:
            b.value("cpu_seconds", "s", "less", cpu * length)
        for key, v in o.items():
            if key not in GOOGLE_INDEX and number(v) is not None:
                rate = GOOGLE_RATE.get(key, "")
                b.value(outside("metric", key), rate, "more" if rate else "", number(v))  # type: ignore


# ---- nvbench ---------------------------------------------------------------------------------------


def _nvbench_datum(state: Any, tag: str, name: str) -> str:
    """nvbench writes the values of a summary as a list of named texts."""
    for s in items(state, "summaries"):
        if word(s, "tag") == tag:
            for d in items(s, "data"):
                if word(d, "name") == name:
                    return word(d, "value")
    return ""


def _nvbench_samples(f: File, state: Any) -> Optional[array.array[float]]:
    """Returns the samples of a file that nvbench --jsonbin has written: float32, little-endian, in seconds. Returns None if
    there is no such file. Names that lead out of the folder are not followed, because the document is from outside."""
    name = _nvbench_datum(state, "nv/json/bin:nv/cold/sample_times", "filename")
    if not name or "\0" in name or name.startswith("/") or not all(name.split("/")) or ".." in name.split("/"):
        return None
    path = os.path.join(os.path.dirname(f.path), name)
    if not os.path.lexists(path):
        return None
    data = content(path, MOST_BYTES // 4)
    if not data or len(data) % 4:
        raise Unreadable("'%s' has %d bytes: expected samples of 4 bytes each" % (path, len(data)))
    samples = array.array("f", data)
    if sys.byteorder == "big":
        samples.byteswap()
    for i, v in enumerate(samples):
        if not math.isfinite(v):
            raise Unreadable("'%s': sample %d is not a number" % (path, i))
    return samples


def read_nvbench(f: File, document: Object) -> None:
    f.choose("nvbench", table(table(table(document, "meta"), "version"), "nvbench").get("string"))
    device = {number(d.get("id")): word(d, "name") for d in items(document, "devices") if isinstance(d, dict)}
    for benchmark in items(document, "benchmarks"):
        for state in items(benchmark, "states"):
            family, own = word(benchmark, "name"), word(state, "name")
            if not isinstance(state, dict) or state.get("is_skipped") is True:
                f.warn("skipped", "%s %s was skipped: %s" % (shown(family), shown(own), shown(word(state, "skip_reason"), 200)))
                continue
            b = f.benchmark("%s %s" % (family, own) if own else family, again=False)
            b.level("benchmark", family)
            for axis in items(state, "axis_values"):
                b.level(outside("factor", word(axis, "name")), word(axis, "value"))
            f.choose("device", device.get(number(state.get("device"))))
            samples, mean = _nvbench_samples(f, state), number_of(_nvbench_datum(state, "nv/cold/time/gpu/mean", "value"))
            for v in samples or []:
                b.value("seconds", "s", "less", v, lead=True)
            if samples is None and mean is not None:
                b.value("seconds", "s", "less", mean, lead=True)
                f.warn("mean_only", "%s: the file has only the mean, which allows no verdict: run the benchmark with --jsonbin "
                       "in place of --json, and keep the folder beside the file" % b.name)
            for tag, metric, unit, better in (("nv/cold/bw/global/bytes_per_second", "bytes_per_second", "bytes/s", "more"),
                                              ("nv/cold/bw/item_rate", "items_per_second", "items/s", "more"),
                                              ("nv/batch/time/gpu/mean", "batch_seconds", "s", "less")):
                value = number_of(_nvbench_datum(state, tag, "value"))
                if value is not None:
                    b.value(metric, unit, better, value)


# ---- tables of nccl-tests and of the OSU micro-benchmarks --------------------------------------------
# The file may have other lines before and between them, such as messages of mpirun. If it has the output of several
# executions, one after the other, each gives one sample for each row.


def lines_of(text: str) -> Iterator[Tuple[int, str]]:
    """Returns the lines with their numbers, without the marks "> " of a quotation and "[1,0]<stdout>:" of mpirun."""
    for i, line in enumerate(text.split("\n"), 1):
        yield i, re.sub(r"^(> ?)+", "", line, re.ASCII) if line[:1] == ">" else line


def untagged(line: str) -> str:
    return line.partition(">:")[2] if line[:1] == "[" and ">:" in line else line


def bad_row(f: File, line: int, what: str) -> NoReturn:
    f.bad(" line %d: %s: if the output was cut or mixed with other output, run the benchmark again", line, what)


def _row(f: File, test: str, size: str, kind: str) -> Benchmark:
    """Returns the benchmark of a row, with its size as a factor."""
    b = f.benchmark("/".join(part for part in (test, size, kind) if part))
    for factor, level in ("bytes", size), ("benchmark", test), ("type", kind):
        if level:
            b.level(factor, level)
    return b


def read_nccl(f: File, text: str) -> None:
    columns: List[str] = []
    test, rows = "", []  # rows: the benchmarks of this table
    for line, words in ((i, untagged(s).split()) for i, s in lines_of(text)):
        if not words:
            continue
        if words[0] == "#":
            if len(words) > 3 and words[1:3] == ["size", "count"] and 1 <= words.count("time") <= 2:
                columns, rows = words[1:], []
            elif words[1:2] == ["(B)"] and words[3:4] != ["(us)"]:
                bad_row(f, line, "the times are not in us")
            elif words[1:5] == ["Out", "of", "bounds", "values"] and "FAILED" in words:
                for b in rows:
                    b.failed("wrong", "nccl-tests found wrong values")
            elif words[1:3] == ["nccl-tests", "version"] and len(words) > 3:
                f.choose("nccl_tests", words[3])
            elif words[1] == "Rank" if len(words) > 1 else False:  # "# Rank 0 ... on HOST device 0 [0x01] NVIDIA H100"
                f.choose("device", " ".join(words).partition("] ")[2])
            elif "starting:" in words[:-1] and words[words.index("starting:") - 1] == "test":
                test = words[words.index("starting:") + 1]
        elif columns and number_of(words[0]) is not None:
            rows.append(_nccl_row(f, line, test, columns, words))


def _nccl_row(f: File, line: int, test: str, columns: List[str], words: List[str]) -> Benchmark:
    if "redop" in columns and len(words) == len(columns) - 1:  # some versions leave out the reduction where there is none
        columns = [c for c in columns if c != "redop"]
    first = columns.index("time")
    if len(words) != len(columns) or first < 3:
        bad_row(f, line, "the row does not have a value for each column of the header")
    kind = words[2]
    if "redop" in columns[:first] and words[columns.index("redop")] != "none":
        kind += "/" + words[columns.index("redop")]
    b = _row(f, test, words[0], kind)
    found, prefix = [], ""
    for i in range(first, len(columns)):
        column, value = columns[i], number_of(words[i])
        prefix = "in_place." if column == "time" and i > first else prefix
        if column == "time" or "bw" in column:
            if value is None:
                bad_row(f, line, "a time or a bandwidth is not a number")
            found.append((prefix, column, value))
        elif column == "#wrong" and value:  # None: N/A, the program did not check
            b.failed("wrong", "nccl-tests found wrong values")
            return b
    for prefix, column, value in found:
        if column == "time":
            b.value(prefix + "seconds", "s", "less", value * 1e-6, lead=True)
        else:
            b.value(outside("metric", prefix + column), "bytes/s", "more", value * 1e9)
    return b


OSU_UNIT = {"MB/s": ("bytes/s", 1e6, "more"), "Messages/s": ("messages/s", 1.0, "more"), "%": ("%", 1.0, "")}
OSU_UNIT.update((unit, ("s", length, "less")) for unit, length in SECONDS.items())


def _osu_columns(line: str) -> List[Tuple[str, str]]:
    """Returns names and units of a header, such as ("avg_latency", "us") of "Avg Latency(us)". Returns [] if the line, such
    as "# [ pairs: 1 ]", has no unit."""
    columns: List[Tuple[str, str]] = []
    units = False
    for part in re.split(r"\t|\r|  +|(?<=\))", line):
        name, opened, unit = part.strip().partition("(")
        units |= bool(opened) or name in ("MB/s", "Messages/s")
        if not opened and name in ("MB/s", "Messages/s"):
            name, unit = "bandwidth" if name == "MB/s" else "messages", name
        name = re.sub(r"[ ._]+", "_", name).strip("_").lower()
        if name:
            while any(name == other for other, _ in columns):
                name += "#"
            columns.append((name, unit[:-1] if unit.endswith(")") else unit))
    return columns[:24] if units else []


def read_osu(f: File, text: str) -> None:
    columns: List[Tuple[str, str]] = []
    test = kind = ""
    for line, s in ((i, untagged(s)) for i, s in lines_of(text)):
        words = s.split()
        if s.startswith("# OSU "):
            title = s[6:].partition(" v")
            test = (title[0].partition(" Test")[0]).strip()
            f.choose("osu", (title[2].split() or [""])[0])
            columns, kind = [], ""
        elif s.startswith("# Datatype: "):
            kind = re.split(r"[. \r]", s[12:])[0]
            kind = "" if kind == "MPI_CHAR" else kind
        elif s.startswith("#"):
            columns = _osu_columns(s[1:]) or columns
        elif columns and words and number_of(words[0]) is not None:
            _osu_row(f, line, test, kind, columns, words)


def _osu_row(f: File, line: int, test: str, kind: str, columns: List[Tuple[str, str]], words: List[str]) -> None:
    if len(words) != len(columns):
        bad_row(f, line, "the row does not have a value for each column of the header")
    sized = columns[0][0] == "size"
    b = _row(f, test, words[0] if sized else "", kind)
    if "Fail" in words:
        b.failed("wrong", "the benchmark found wrong data")
        return
    first = True
    for (name, unit), text in list(zip(columns, words))[sized:]:
        value = number_of(text)
        if value is None or unit not in OSU_UNIT:  # such as the number of iterations
            continue
        shown_unit, factor, better = OSU_UNIT[unit]
        name = "seconds" if first and shown_unit == "s" else outside("metric", name)
        b.value(name, shown_unit, "more" if name == "overlap" else better, value * factor, lead=first)
        first = False
    if first:
        bad_row(f, line, "the row has no time and no rate")


# ---- files -----------------------------------------------------------------------------------------


def content(path: str, most: int = MOST_BYTES) -> bytes:
    """Returns the bytes of a file, which may be compressed by gzip."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as f:
            regular = stat.S_ISREG(os.fstat(f.fileno()).st_mode)
            data = f.read(most + 1) if regular else b""
            if data[:2] == b"\x1f\x8b":
                f.seek(0)
                data = gzip.GzipFile(fileobj=f).read(most + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise Unreadable("'%s' is a damaged gzip file" % path) from None
    except OSError as why:
        raise Unreadable("cannot read '%s': %s" % (path, why.strerror)) from None
    if not regular:
        raise Unreadable("'%s' is not a regular file" % path)
    if len(data) > most:
        raise Unreadable("'%s' is larger than %d MiB: select some of its benchmarks" % (path, most >> 20))
    return data


def _members(pairs: List[Tuple[str, Any]]) -> Object:
    """Makes an object. If it has a key twice, as when a user calls a counter real_time, the later value does not replace the
    first one."""
    made = dict(pairs)
    if len(made) != len(pairs):
        made = {}
        for key, value in pairs:
            made.setdefault(key + "#2" if key in made else key, value)
    return made


def _json(path: str, text: str) -> Object:
    try:
        document = json.loads(text, object_pairs_hook=_members, parse_int=float)
    except RecursionError:
        raise Unreadable("'%s' is not JSON of a benchmark program: it is nested too deeply" % path) from None
    except json.JSONDecodeError as why:
        if why.pos >= len(text.rstrip()):
            raise Unreadable("'%s' is incomplete: the JSON ends in line %d" % (path, why.lineno)) from None
        raise Unreadable("'%s' is not JSON: error in line %d, column %d" % (path, why.lineno, why.colno)) from None
    assert isinstance(document, dict)  # the text begins with {
    return document


def read(path: str) -> File:
    """Reads a file. Raises Unreadable with a sentence if that is not possible."""
    text = content(path).decode("utf-8", "replace").lstrip("\ufeff")
    if not text:
        raise Unreadable("'%s' is empty" % path)
    if text.lstrip()[:1] == "{":
        document = _json(path, text)
        results, benchmarks = items(document, "results"), items(document, "benchmarks")
        if results and word(results[0], "command"):
            f = File(path, "hyperfine")
            read_hyperfine(f, document)
        elif benchmarks and isinstance(benchmarks[0], dict) and isinstance(benchmarks[0].get("states"), list):
            f = File(path, "nvbench")
            read_nvbench(f, document)
        elif isinstance(document.get("benchmarks"), list) and isinstance(document.get("context"), dict):
            f = File(path, "Google Benchmark")
            read_google(f, document)
        else:
            raise Unreadable("'%s' is JSON, but not a result of gpuloom: it has no \"schema\": \"gpuloom...\"; of other "
                             "programs, gpuloom reads hyperfine, Google Benchmark and nvbench" % path)
    else:
        for _, line in lines_of(text):
            words = untagged(line).split()
            if words[:2] == ["#", "OSU"]:
                f = File(path, "OSU micro-benchmarks")
                read_osu(f, text)
                break
            if words[:3] == ["#", "size", "count"]:
                f = File(path, "nccl-tests")
                read_nccl(f, text)
                break
        else:
            raise Unreadable("'%s' is not JSON: error in line 1, column 1; of other programs, gpuloom also reads the tables of "
                             "nccl-tests and of OSU micro-benchmarks" % path)
    f.finish()
    return f


def convert(paths: Sequence[str], variants: bool = False) -> List[Object]:
    """Returns a document for each file. variants: a file with several benchmarks becomes a gpuloom.compare/1 with a variant
    for each. If any of the files has several benchmarks, all results have metrics that begin with the benchmark."""
    files = [read(os.fspath(path)) for path in paths]
    several = any(len(f.benchmarks) > 1 for f in files)
    if not several:
        return [f.of_one() for f in files]
    return [f.variants() if variants and len(f.benchmarks) > 1 else f.named() for f in files]


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m gpuloom.foreign", description="Converts files of hyperfine, Google "
                                     "Benchmark, nvbench, nccl-tests and OSU micro-benchmarks to documents of gpuloom.")
    parser.add_argument("--variants", action="store_true", help="make each benchmark of a file a variant, not a metric")
    parser.add_argument("file", nargs="+", metavar="FILE")
    asked = parser.parse_args(arguments)
    try:
        for document in convert(asked.file, asked.variants):
            sys.stdout.write(json.dumps(document, allow_nan=False) + "\n")
        sys.stdout.flush()
    except Unreadable as why:
        sys.stderr.write(shown(str(why), 900) + "\n")
        return 2
    except OSError as why:  # such as a full disk
        sys.stderr.write("cannot write the converted files: %s\n" % why.strerror)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
