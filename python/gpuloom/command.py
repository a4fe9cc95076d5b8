# SPDX-License-Identifier: Apache-2.0
"""Calls the command gpuloom. Its path is $GPULOOM if set, else gpuloom in PATH."""
from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Union

Path = Union[str, "os.PathLike[str]"]
Confs = Union[Path, Sequence[Path]]  # one file or conf of gpuloom, or several
Document = Dict[str, Any]  # docs/results.md describes the documents


class Error(RuntimeError):
    """An error of the command or the library; .status is the exit status or the error code."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


def program() -> str:
    """Returns the path of the command gpuloom."""
    found = os.environ.get("GPULOOM") or shutil.which("gpuloom")
    if not found:
        raise Error("there is no gpuloom in PATH: install it, or set GPULOOM=/path/to/build/gpuloom", 127)
    return found


def call(*words: object, ok: Iterable[int] = (0,)) -> str:
    """Runs gpuloom WORDS... and returns its standard output. If the exit status is not in `ok`, raises Error with the
    message of the command. Ctrl-C, or an exception of a signal handler, ends the command within a second."""
    with subprocess.Popen([program(), *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace") as child:
        try:
            out, err = child.communicate()
        except BaseException:
            _end(child)
            raise
    if child.returncode not in ok:
        said = err.strip() or "gpuloom %s: exit status %d" % (words[0], child.returncode)
        raise Error(said, child.returncode)
    return out


def _end(child: subprocess.Popen[str]) -> None:
    """Ends the command. It ends its workers and ranks itself: at the first signal after the sample in progress, at the
    second one at once. It is killed only if that does not help."""
    for patience in 0.4, 0.4:
        child.send_signal(signal.SIGINT)
        try:
            child.wait(patience)
            return
        except subprocess.TimeoutExpired:
            pass
    child.kill()


def _value(v: object) -> str:
    return ("yes" if v else "no") if isinstance(v, bool) else str(v)


def _quoted(value: object) -> str:
    """Returns one value of --vary, in quotes if a list of values needs them."""
    text = _value(value)
    if text and text == text.strip() and not any(c in text for c in ',"\\'):
        return text
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"')


def _list(values: Any) -> str:
    return ",".join(map(_quoted, [values] if isinstance(values, (str, int, float)) else values))


_JOINED = ("derive", "metric", "pareto", "plot")  # options that take a list; all other options are repeated


def _options(set: Optional[Mapping[str, object]] = None, vary: Optional[Mapping[str, Any]] = None,
             **others: Any) -> List[str]:
    words: List[str] = []
    for k, v in (set or {}).items():
        words += ["--set", "%s=%s" % (k, _value(v))]
    for k, v in (vary or {}).items():
        words += ["--vary", "%s=%s" % (k, _list(v))]
    for k, v in others.items():  # per_block="best" is --per-block best, aa=True is --aa
        name = "--" + k.replace("_", "-")
        several: List[object] = list(v) if isinstance(v, (list, tuple)) else [v]
        if isinstance(v, (list, tuple)) and k in _JOINED:
            several = [",".join(map(_value, v))]
        for one in several:
            words += [name] if one is True else [] if one is None or one is False else [name, _value(one)]
    return words


def _file(path: Path) -> str:
    """Returns the path of a file so that the command does not take it for an option. "-" is standard output."""
    name = os.fspath(path)
    return "./" + name if name.startswith("-") and name != "-" else name


def _confs(conf: Confs) -> List[str]:
    return [_file(conf)] if isinstance(conf, (str, os.PathLike)) else [_file(c) for c in conf]


def _document(text: str) -> Document:
    document: Document = json.loads(text)
    return document


def run(conf: Confs, set: Optional[Mapping[str, object]] = None, **options: Any) -> Document:
    """Runs a conf, or several that are read as one: run("conf/uts.ini", set={"workload.uts.tree": "T3"}, samples=10).

    Returns the result as a dictionary (docs/results.md); gpuloom.frame() converts it to a table."""
    return _document(call("run", *_confs(conf), "--no-sweep", "--quiet", *_options(set, **options), "--json", "-"))


def compare(conf: Confs, vary: Optional[Mapping[str, Any]] = None, set: Optional[Mapping[str, object]] = None,
            **options: Any) -> Document:
    """Compares variants in an interleaved run: compare("conf/memset.ini", vary={"scheduler.use": ["mgws", "static"]}).
    A list of confs makes each conf a variant. Returns the comparison as a dictionary. Its "comparisons" have effects,
    intervals and verdicts. If a rule of fail_on fails, "gate" says so. This raises no exception, and neither does an
    inconclusive verdict with strict=True."""
    return _document(call("compare", *_confs(conf), "--quiet", *_options(set, vary, **options), "--json", "-",
                           ok=(0, 5, 6)))


def sweep(conf: Confs, output: Path, vary: Optional[Mapping[str, Any]] = None,
          set: Optional[Mapping[str, object]] = None, **options: Any) -> Path:
    """Runs every combination of the values in `vary`, and writes the samples to the file `output`. With resume=True the
    sweep continues the file. gpuloom.load(output) reads it. Returns `output`."""
    call("sweep", *_confs(conf), "--quiet", *_options(set, vary, **options), "-o", _file(output))
    return output


def report(results: Confs, output: Path, **options: Any) -> Path:
    """Runs `gpuloom report`. The suffix of `output` selects the format: .html, .svg, .png, .pdf, .csv, .md, .xml
    (JUnit) or .json. Returns `output`."""
    call("report", *_confs(results), "-o", _file(output), *_options(**options))
    return output
