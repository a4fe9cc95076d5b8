# SPDX-License-Identifier: Apache-2.0
"""Calls the command gpuloom. Its path is $GPULOOM if set, else gpuloom in PATH."""
import json
import os
import shutil
import subprocess


class Error(RuntimeError):
    """An error of the command or the library; .status is the exit status or the error code."""

    def __init__(self, text, status):
        super().__init__(text)
        self.status = status


def program():
    found = os.environ.get("GPULOOM") or shutil.which("gpuloom")
    if not found:
        raise Error("there is no gpuloom in PATH: install it, or set GPULOOM=/path/to/build/gpuloom", 127)
    return found


def call(*words, ok=(0,)):
    """Runs gpuloom WORDS... and returns its standard output. If the exit status is not in `ok`, raises Error with the
    message of the command."""
    done = subprocess.run([program(), *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          errors="replace")
    if done.returncode not in ok:
        said = done.stderr.strip() or "gpuloom %s: exit status %d" % (words[0], done.returncode)
        raise Error(said, done.returncode)
    return done.stdout


def _value(v):
    return ("yes" if v else "no") if isinstance(v, bool) else str(v)


def _quoted(value):
    """Returns one value of --vary, in quotes if a list of values needs them."""
    text = _value(value)
    if text and text == text.strip() and not any(c in text for c in ',"\\'):
        return text
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"')


def _list(values):
    return ",".join(map(_quoted, [values] if isinstance(values, (str, int, float)) else values))


_JOINED = ("derive", "metric", "pareto", "plot")  # options that take a list; all other options are repeated


def _options(set=None, vary=None, **others):
    words = []
    for k, v in (set or {}).items():
        words += ["--set", "%s=%s" % (k, _value(v))]
    for k, v in (vary or {}).items():
        words += ["--vary", "%s=%s" % (k, _list(v))]
    for k, v in others.items():  # per_block="best" is --per-block best, aa=True is --aa
        name = "--" + k.replace("_", "-")
        several = isinstance(v, (list, tuple))
        for one in [",".join(map(_value, v))] if several and k in _JOINED else v if several else [v]:
            words += [name] if one is True else [] if one is None or one is False else [name, _value(one)]
    return words


def _confs(conf):
    return [os.fspath(c) for c in (conf if isinstance(conf, (list, tuple)) else [conf])]


def run(conf, set=None, **options):
    """Runs a conf, or several that are read as one: run("conf/uts.ini", set={"workload.uts.tree": "T3"}, samples=10).

    Returns the result as a dictionary (docs/results.md); gpuloom.frame() converts it to a table."""
    return json.loads(call("run", *_confs(conf), "--no-sweep", "--quiet", *_options(set, **options), "--json", "-"))


def compare(conf, vary=None, set=None, **options):
    """Compares variants in an interleaved run: compare("conf/memset.ini", vary={"scheduler.use": ["mgws", "static"]}).
    A list of confs makes each conf a variant. Returns the comparison as a dictionary. Its "comparisons" have effects,
    intervals and verdicts. If a rule of fail_on fails, "gate" says so. This raises no exception, and neither does an
    inconclusive verdict with strict=True."""
    return json.loads(call("compare", *_confs(conf), "--quiet", *_options(set, vary, **options), "--json", "-",
                           ok=(0, 5, 6)))


def sweep(conf, output, vary=None, set=None, **options):
    """Runs every combination of the values in `vary`, and writes the samples to the file `output`. With resume=True the
    sweep continues the file. gpuloom.load(output) reads it. Returns `output`."""
    call("sweep", *_confs(conf), "--quiet", *_options(set, vary, **options), "-o", os.fspath(output))
    return output


def report(results, output, **options):
    """Runs `gpuloom report`. The suffix of `output` selects the format: .html, .svg, .png, .pdf, .csv, .md, .gp, .xml
    (JUnit), .prom (OpenMetrics) or .json. Returns `output`."""
    call("report", *_confs(results), "-o", os.fspath(output), *_options(**options))
    return output
