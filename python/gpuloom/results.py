# SPDX-License-Identifier: Apache-2.0
"""Results as tables: each sample is a row, and factors and metrics are columns. docs/results.md describes the
documents."""
from __future__ import annotations

import gzip
import json
import statistics
import warnings
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from .command import Document, Path

Row = Dict[str, Any]
Lines = List[Document]  # the lines of a sweep


class Table:
    """What load() returns without pandas: rows, which are dictionaries, and a few operations on them."""

    def __init__(self, columns: Iterable[str], rows: Iterable[Row]) -> None:
        self.columns, self.rows = list(columns), list(rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, column: str) -> List[Any]:
        self._know([column])
        return [row.get(column) for row in self.rows]

    def _know(self, columns: Iterable[str]) -> None:
        for c in columns:
            if c not in self.columns:
                raise KeyError("there is no column %r; there are: %s" % (c, ", ".join(self.columns)))

    def groupby(self, *keys: Union[str, Sequence[str]]) -> Groups:
        """Groups the rows by columns: groupby("a", "b") or groupby(["a", "b"]). On the groups, ["seconds"] selects columns,
        and median(), mean(), min(), max() or count() returns a Table with a row per group."""
        names = [k for key in keys for k in ([key] if isinstance(key, str) else key)]
        self._know(names)
        return Groups(self, names, [c for c in self.columns if c not in names])

    def __str__(self) -> str:
        lines = [self.columns] + [[_text(row.get(c)) for c in self.columns] for row in self.rows]
        width = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        return "\n".join("  ".join(word.rjust(w) for word, w in zip(line, width)) for line in lines)

    __repr__ = __str__


class Groups:
    """Groups of rows that have the same values in some columns: what groupby() of a Table returns. Iteration gives pairs of the
    values and a Table."""

    def __init__(self, table: Table, keys: List[str], columns: List[str]) -> None:
        self.table, self.keys, self.columns = table, keys, columns

    def __getitem__(self, columns: Union[str, Sequence[str]]) -> Groups:
        names = [columns] if isinstance(columns, str) else list(columns)
        self.table._know(names)
        return Groups(self.table, self.keys, names)

    def __iter__(self) -> Iterator[Tuple[Any, Table]]:
        found: Dict[Tuple[Any, ...], List[Row]] = {}
        for row in self.table:
            found.setdefault(tuple(row.get(k) for k in self.keys), []).append(row)
        for key, rows in sorted(found.items(), key=lambda item: [(isinstance(v, str), v is None, v) for v in item[0]]):
            yield key if len(key) > 1 else key[0], Table(self.table.columns, rows)

    def _each(self, of: Callable[[List[Any]], Any]) -> Table:
        rows = []
        for key, part in self:
            row = dict(zip(self.keys, key if len(self.keys) > 1 else [key]))
            for c in self.columns:
                numbers = [v for v in part[c] if isinstance(v, (int, float))]
                if numbers or of is len:
                    row[c] = of(numbers)
            rows.append(row)
        used = [c for c in self.columns if any(c in row for row in rows)]
        return Table(self.keys + used, rows)

    def median(self) -> Table:
        """Returns the medians of each group."""
        return self._each(statistics.median)

    def mean(self) -> Table:
        """Returns the arithmetic means of each group."""
        return self._each(statistics.fmean)

    def min(self) -> Table:
        """Returns the least values of each group."""
        return self._each(min)

    def max(self) -> Table:
        """Returns the largest values of each group."""
        return self._each(max)

    def count(self) -> Table:
        """Returns how many numbers each group has."""
        return self._each(len)

    def __str__(self) -> str:
        return str(self.median())


def _text(value: object) -> str:
    return "" if value is None else "%.6g" % value if isinstance(value, float) else str(value)


def _content(path: Path) -> str:
    """Returns the text of a file, which may be compressed by gzip, as some of the kept results are."""
    with open(path, "rb") as f:
        data = f.read()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8")


def read(path: Path) -> Union[Document, Lines]:
    """Reads a document, and returns it as a dictionary, or for a sweep as a list of lines. The file may be compressed by
    gzip."""
    try:
        text = _content(path)
    except (UnicodeDecodeError, EOFError, gzip.BadGzipFile):
        text = ""
    try:
        head = json.loads(text.partition("\n")[0])
        if isinstance(head, dict) and str(head.get("schema", "")).startswith("gpuloom.sweep/"):
            whole = text.rpartition("\n")[0]  # drop an incomplete last line
            return [json.loads(line) for line in whole.split("\n") if line]
    except ValueError:
        pass
    try:
        document: Document = json.loads(text)
        schema = document.get("schema", "")
    except (ValueError, AttributeError):
        schema = ""
    if not str(schema).startswith("gpuloom."):
        raise ValueError("%s: this is no result of gpuloom: run --json, compare --json and sweep -o write them" % path)
    return document


def _varied(documents: List[Document]) -> List[Row]:
    """Returns, for each document, the options in which the documents differ, with their values."""
    configs = [{k: v.get("value") for k, v in d.get("config", {}).items()} for d in documents]
    keys = {k: None for c in configs for k in c}
    return [{k: c.get(k) for k in keys if len({str(other.get(k)) for other in configs}) > 1} for c in configs]


# A sample of a document: (place, columns of gpuloom, factors, metrics). Of two samples with all parts equal, one is a copy,
# unless the place is empty.
_Sample = Tuple[Any, Row, Row, Row]


def _of_result(document: Document, factors: Row) -> Iterator[_Sample]:
    samples = [s for s in document.get("samples", []) if not s.get("warmup")]
    metrics = document.get("metrics", {})
    rows = max([len(samples)] + [len(m.get("samples", [])) for m in metrics.values() if "leading" in document])
    for i in range(rows):  # results of other programs have metrics only
        sample = samples[i] if i < len(samples) else {}
        columns = {"sample": i, "order": sample.get("order"), "start_ns": sample.get("start_ns")}
        values = {name: m["samples"][i] for name, m in metrics.items() if i < len(m.get("samples", []))}
        yield document.get("started"), columns, factors, values


def _samples(document: Union[Document, Lines], factors: Row) -> Iterator[_Sample]:
    if isinstance(document, list):
        for line in document:
            if "sample" in line:
                yield line["configuration"], {k: line.get(k) for k in ("configuration", "sample", "start_ns")}, \
                    line.get("values", {}), line.get("metrics", {})
    elif document["schema"].startswith("gpuloom.compare/"):
        for i, variant in enumerate(document.get("variants", [])):
            name = {"variant": variant.get("label") or variant.get("name")}
            for _, columns, levels, metrics in _of_result(variant.get("result", {}), variant.get("varied", {})):
                yield (document.get("started"), i), {**name, **columns}, levels, metrics
    elif document["schema"].startswith("gpuloom.report/"):
        for i, variant in enumerate(document["variants"]):
            for row, (order, start_ns) in enumerate(zip(variant["order"], variant["start_ns"])):
                columns = {"variant": variant["label"], "sample": row, "order": order, "start_ns": start_ns}
                values = {name: m["values"][row] for name, m in variant["metrics"].items() if row < len(m["values"])}
                yield (document["title"], i), columns, variant["values"], values
    elif document["schema"].startswith("gpuloom.result/"):
        yield from _of_result(document, factors)
    else:
        raise ValueError("a %s has no samples" % document["schema"])


def _rows(samples: Iterable[_Sample]) -> List[Row]:
    """Makes a row of each sample, with factors first. Documents may have a metric with the name of a factor, or a factor that
    is called `sample`: columns of gpuloom keep their names, and then those of factors. A metric becomes `metric.NAME`. A sample
    that occurs again, because a file was named twice or is part of another, counts once."""
    listed = list(samples)
    taken = {c for _, columns, _, _ in listed for c in columns}
    factor: Dict[str, str] = {}
    metric: Dict[str, str] = {}
    for names, kind, part in (factor, "factor", 2), (metric, "metric", 3):
        for name in {k: None for sample in listed for k in sample[part]}:
            names[name] = name
            while names[name] in taken:
                names[name] = "%s.%s" % (kind, names[name])
            taken.add(names[name])
    rows: List[Row] = []
    seen = set()
    for place, columns, levels, metrics in listed:
        if place and columns["start_ns"] is not None:
            key = (place, columns["sample"], columns["start_ns"], *sorted(metrics.items()))
            if key in seen:
                continue
            seen.add(key)
        rows.append({**{factor[k]: v for k, v in levels.items()}, **columns, **{metric[k]: v for k, v in metrics.items()}})
    if len(rows) < len(listed):
        warnings.warn("%d samples occur twice and count once: is a file named twice, or part of another one?" % (
            len(listed) - len(rows)), stacklevel=4)
    return rows


def _numbers(rows: List[Row]) -> None:
    """Converts columns of text to numbers if all their values are numbers, because options are text in the documents."""
    for c in {c for row in rows for c, v in row.items() if isinstance(v, str)}:
        for kind in (int, float):
            try:
                made = [kind(row[c]) if row.get(c) is not None else None for row in rows]
            except ValueError:
                continue
            for row, v in zip(rows, made):
                if v is not None:
                    row[c] = v
            break


def frame(documents: Union[Document, Lines, Sequence[Union[Document, Lines]]], pandas: Optional[bool] = None) -> Any:
    """Returns the table that load() would return for the files of these documents."""
    listed: List[Any] = documents if isinstance(documents, list) and not _is_sweep(documents) else [documents]
    results = [d for d in listed if isinstance(d, dict) and str(d.get("schema")).startswith("gpuloom.result/")]
    try:
        varied = dict(zip(map(id, results), _varied(results)))
        rows = _rows(sample for d in listed for sample in _samples(d, varied.get(id(d), {})))
    except (AttributeError, IndexError, KeyError, TypeError) as why:
        raise ValueError("a document lacks parts that docs/results.md demands (%s)" % why) from None
    _numbers(rows)
    columns = list({c: None for row in rows for c in row})
    if pandas is not False:
        try:
            import pandas as pd  # type: ignore
            return pd.DataFrame(rows, columns=columns)
        except ImportError:
            if pandas:
                raise ImportError("there is no pandas: install it, or leave pandas=True out and get a gpuloom.Table") from None
    return Table(columns, rows)


def _is_sweep(lines: Any) -> bool:
    return bool(lines) and isinstance(lines[0], dict) and str(lines[0].get("schema", "")).startswith("gpuloom.sweep/")


def load(*paths: Path, pandas: Optional[bool] = None) -> Any:
    """Reads the files of results, comparisons or sweeps, and returns their samples as a table with one row per sample.
    Factors come first, then metrics in the units of docs/results.md. Several results of `run` get a column for each
    option in which they differ. Samples that are in the files twice count once, with a warning. The table is a pandas.DataFrame if pandas is installed, else a gpuloom.Table.
    pandas=True or pandas=False selects one of these types."""
    if not paths:
        raise ValueError("load: which files?")
    documents = [read(p) for p in paths]
    return frame(documents[0] if len(documents) == 1 else documents, pandas)
