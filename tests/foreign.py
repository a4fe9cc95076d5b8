# SPDX-License-Identifier: Apache-2.0
"""Cases of python/gpuloom/foreign.py, the converter of files of other benchmark programs: names that meet, entries that are
no measurement, hostile files, and mutations of tests/data/foreign. check-foreign.sh runs it in the root of the tree.
    tests/foreign.py [CASE...]        SEED=7 selects other mutations, MUTATIONS=20000 more of them"""
import contextlib
import glob
import gzip
import io
import json
import os
import random
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, "python/gpuloom")
sys.dont_write_bytecode = True
import foreign  # noqa: E402

DATA = os.path.abspath("tests/data/foreign")


def content(path):
    with open(path, "rb") as f:
        return f.read()


NEED = {name: set(json.loads(content("docs/schemas/%s.json" % name))["required"]) for name in ("result", "compare")}
os.chdir(tempfile.mkdtemp())
unittest.addModuleCleanup(shutil.rmtree, os.getcwd())


def write(name, content):
    with open(name, "wb") as f:
        f.write(content if isinstance(content, bytes) else content.encode())
    return name


def google(*entries, name="g.json"):
    entries = [{"name": "BM_A", "run_type": "iteration", "real_time": 100.5, "cpu_time": 100.0, "time_unit": "ns", **e}
               for e in entries]
    return write(name, json.dumps({"context": {}, "benchmarks": entries}))


def one(*files, **options):
    return foreign.convert(list(files), **options)[0]


def texts(document):
    return [w["text"] for w in document["warnings"]]


def check(case, document):
    """Checks what the schemas demand, and that no text of the file can do harm in an output."""
    schema = document["schema"].split("/")[0].split(".")[1]
    case.assertFalse(NEED[schema] - set(document))
    results = [document] if schema == "result" else [v["result"] for v in document["variants"]]
    for r in results:
        case.assertFalse(NEED["result"] - set(r))
        case.assertLessEqual(set(r["leading"]), set(r["metrics"]))
        for name, m in r["metrics"].items():
            case.assertEqual(set(m), {"unit", "better", "samples", "median"}, name)
            case.assertTrue(m["samples"] and all(isinstance(v, float) and abs(v) <= 1e150 for v in m["samples"]), name)
            case.assertNotIn(name, foreign.COLUMNS)
    values = [document]
    while values:
        v = values.pop()
        if isinstance(v, dict):
            values += [*v, *v.values()]
        elif isinstance(v, list):
            values += v
        elif isinstance(v, str):
            case.assertTrue(v.isprintable(), v)
    return document


class Names(unittest.TestCase):
    def test_counters_of_google(self):
        names = ("seconds", "cpu_seconds", "sample", "order", "point", "workload.exec.command", "metric.seconds", "own")
        r = check(self, one(google(*[{n: 5.0 for n in names}] * 3)))
        self.assertEqual(r["metrics"]["seconds"]["samples"], [1.005e-07] * 3)
        self.assertEqual(list(r["metrics"])[2:], ["metric." + n for n in names[:-1]] + ["own"])

    def test_keys_that_occur_twice(self):
        path = write("twice.json", '{"context": {}, "benchmarks": [{"name": "A", "real_time": 1, "real_time": 9, "c": 2, "c": 3}]}')
        r = check(self, one(path))
        self.assertEqual({k: m["samples"] for k, m in r["metrics"].items()},
                         {"seconds": [1e-9], "c": [2.0], "real_time#2": [9.0], "c#2": [3.0]})

    def test_factors(self):
        path = write("h.json", json.dumps({"results": [{"command": c, "times": [1.0, 2.0], "parameters": {
            "sample": c, "seconds": "3", "run.seed": "4", "threads": "2"}} for c in "ab"]}))
        d = check(self, one(path, variants=True))
        self.assertEqual(d["variants"][0]["varied"], {"factor.sample": "a", "factor.seconds": "3", "factor.run.seed": "4",
                                                      "threads": "2"})

    def test_benchmarks(self):
        names = ["seconds", "a b", "a_b", "a:b", "\u4e00", "\u4e01", "\u00e4\u00e9", "x" * 300 + "1", "x" * 300 + "2", "tab\there"]
        r = check(self, one(google(*[{"name": n} for n in names])))
        leading = r["leading"]
        self.assertEqual(leading[:2], ["metric.seconds", "a_b"])
        self.assertRegex(leading[2], "^a_b~[0-9a-f]{8}$")
        self.assertEqual(leading[3:7], ["a=b", "\u4e00", "\u4e01", "\u00e4\u00e9"])
        self.assertEqual(len(set(leading)), len(names))
        self.assertTrue(all(len(n.encode()) <= 199 for n in leading))
        again = one(google(*[{"name": n} for n in names], name="again.json"))
        self.assertEqual(again["leading"], leading)


class NoMeasurement(unittest.TestCase):
    def test_skipped_by_google(self):
        skipped = {"skipped": True, "skip_message": "no GPU", "real_time": 0.0, "cpu_time": 0.0}
        failed = {"error_occurred": True, "error_message": "bad\x1b[2J", "real_time": 0.0}
        r = check(self, one(google({}, skipped, skipped, failed, {"run_type": "aggregate", "aggregate_name": "mean"})))
        self.assertEqual(r["metrics"]["seconds"]["samples"], [1.005e-07])
        self.assertEqual(texts(r), ["BM_A was skipped: no GPU", "BM_A failed: bad?[2J"])
        with self.assertRaisesRegex(foreign.Unreadable, "'g.json' is of Google Benchmark, but has no samples: .* no GPU"):
            one(google(skipped, skipped))

    def test_nvbench(self):
        state = {"name": "s", "is_skipped": True, "skip_reason": "Out of memory"}
        with self.assertRaisesRegex(foreign.Unreadable, "of nvbench, but has no samples: c s was skipped: Out of memory"):
            one(write("n.json", json.dumps({"benchmarks": [{"name": "c", "states": [state]}]})))

    def test_exit_codes(self):
        run = {"command": "c", "times": [1.0, 2.0, 3.0], "exit_codes": [0, 1, None], "user": 1.0}
        r = check(self, one(write("h.json", json.dumps({"results": [run]}))))
        self.assertEqual({k: m["samples"] for k, m in r["metrics"].items()}, {"seconds": [1.0]})
        self.assertEqual(r["error"]["text"], "2 of 3 executions had an exit code other than 0, and do not count")
        run["exit_codes"] = [1, 1, 1]
        with self.assertRaisesRegex(foreign.Unreadable, "no samples: c: 3 of 3 executions"):
            one(write("h.json", json.dumps({"results": [run]})))

    def test_wrong_rows(self):
        text = "# OSU MPI Bcast Latency Test v7.3\n# Size  Avg Latency(us)  Validation\n1  2.0  Pass\n1  9.0  Fail\n4  9.0  Fail\n"
        r = check(self, one(write("o.txt", text)))
        self.assertEqual((r["status"], list(r["metrics"])), ("wrong", ["MPI_Bcast_Latency/1"]))
        self.assertEqual(r["metrics"]["MPI_Bcast_Latency/1"]["samples"], [2e-06])
        text = content(DATA + "/nccl-before.txt").decode()
        self.assertEqual(one(write("n.txt", text.replace("      0\n", "      3\n", 1)))["status"], "wrong")
        self.assertEqual(one(write("n.txt", text.replace("values : 0 OK", "values : 1 FAILED", 1)))["status"], "wrong")


class Tables(unittest.TestCase):
    OLD = """#                                                     out-of-place                       in-place
#       size         count      type     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2     float    135.8    0.01    0.02    0e+00    123.5    0.00    0.00    0e+00
          16             4     float    137.1    0.00    0.00      N/A    124.8    0.00    0.00      N/A
"""

    def test_without_redop(self):
        d = check(self, one(write("old.txt", self.OLD), variants=True))
        self.assertEqual([v["name"] for v in d["variants"]], ["8/float", "16/float"])
        metrics = d["variants"][0]["result"]["metrics"]
        self.assertEqual({k: m["samples"] for k, m in metrics.items()},
                         {"seconds": [135.8e-6], "algbw": [1e7], "busbw": [2e7], "in_place.seconds": [123.5e-6],
                          "in_place.algbw": [0.0], "in_place.busbw": [0.0]})

    def test_quoted(self):
        for name in "nccl-before.txt", "osu-after.txt":
            text = content("%s/%s" % (DATA, name)).decode()
            quoted = one(write(name, "".join("> " + line for line in text.splitlines(True))))
            self.assertEqual(quoted, one(write(name, text)))

    def test_gzip(self):
        text = content(DATA + "/osu-bw.txt")
        self.assertEqual(one(write("o.txt", gzip.compress(text))), one(write("o.txt", text)))


class Hostile(unittest.TestCase):
    def refused(self, content, words):
        with self.assertRaisesRegex(foreign.Unreadable, words):
            one(write("x", content))

    def test_files(self):
        self.refused("", "'x' is empty")
        self.refused('{"results": ' + "[" * 200000, "nested too deeply")
        self.refused('{"results": [', "incomplete: the JSON ends in line 1")
        self.refused('{"context": {},\n"benchmarks": [nan]}', "error in line 2, column 16")
        self.refused('{"context": {}}', "is JSON, but not a result")
        self.refused("\x00\x01", "not JSON")
        self.refused(b"\x1f\x8b\x08\x00trunc", "damaged gzip")
        self.refused('{"context": {}, "benchmarks": [{"name": "A", "real_time": NaN}]}', r"benchmarks\[0\] has no real_time")
        self.refused('{"context": {}, "benchmarks": [{"name": "A", "real_time": 1%s}]}' % ("0" * 5000), "has no real_time")
        self.refused('{"context": {}, "benchmarks": [1, null, [], {"name": "A"}]}', r"benchmarks\[0\] has no name")
        self.refused(json.dumps({"context": {}, "benchmarks": [{"name": "%d" % i, "real_time": 1} for i in range(2001)]}),
                     "more than 2000 benchmarks")
        for path, words in ("/nonexistent", "No such file"), (".", "regular file|directory"), ("/dev/zero", "regular file"):
            with self.assertRaisesRegex(foreign.Unreadable, words):
                one(path)
        with open("big", "wb") as f:
            f.truncate(foreign.MOST_BYTES + 1)
        with self.assertRaisesRegex(foreign.Unreadable, "larger than 64 MiB"):
            one("big")

    def test_texts(self):
        path = google({"name": "a\x1b]0;\u202e\ud800<script>\n", "c\x00\x9b": 1.0, "i": float("inf"), "j": float("nan"), "t": True})
        r = check(self, one(path))
        self.assertEqual(list(r["metrics"]), ["seconds", "cpu_seconds", "c??"])
        bad = content(DATA + "/osu-bw.txt").replace(b"Bandwidth (", b"Band\xffwidth (", 1)
        self.assertIn("band?width", json.dumps(check(self, one(write("o.txt", bad), variants=True))))

    def test_samples_beside(self):
        """Only files in the folder of the document are read."""
        folder = os.path.join(os.getcwd(), "inner")
        os.makedirs(folder, exist_ok=True)
        text = content(DATA + "/nvbench.json").decode()
        shutil.copy(DATA + "/nvbench.json-bin/0.bin", "0.bin")
        for name in "../0.bin", os.path.abspath("0.bin"), "a/../../0.bin", "", "\\u0000":
            r = one(write("inner/n.json", text.replace("nvbench.json-bin/0.bin", name).replace("nvbench.json-bin/1.bin", name)))
            self.assertTrue(all("only the mean" in t for t in texts(r)[:2]), name)
        shutil.copy("0.bin", "inner/0.bin")
        r = one(write("inner/n.json", text.replace("nvbench.json-bin/0.bin", "0.bin")))
        self.assertEqual(len(r["metrics"]["copy_Device=0_Elements=2_20"]["samples"]), 40)

    def test_limits(self):
        r = one(google(*[{"name": "B%d" % i, **{"c%d" % k: 1.0 for k in range(120)}} for i in range(60)]))
        self.assertEqual((len(r["metrics"]), len(r["leading"])), (foreign.MOST_NAMES, 60))
        self.assertIn("2000 of 6000 metrics are left out", texts(r)[-1])


class Mutations(unittest.TestCase):
    def test_all(self):
        """Changed files are converted, or refused with a sentence. Nothing else happens."""
        seed = int(os.environ.get("SEED", "1"))
        draw = random.Random(seed)
        files = [content(f) for f in sorted(glob.glob(DATA + "/*.*")) if os.path.isfile(f)] + [Tables.OLD.encode()]
        shutil.copytree(DATA + "/nvbench.json-bin", "nvbench.json-bin")
        words = [b"NaN", b"1e999", b"null", b"[", b"{", b"\x00", b"\xff", b"-1", b"#", b"# OSU ", b"time", b"size", b"(us)", b'"',
                 b"\n", b"Fail", b"true", b"9" * 400, b"seconds", b"../", "\u202e".encode(), b">"]
        converted = 0
        for n in range(int(os.environ.get("MUTATIONS", "1500"))):
            data = bytearray(draw.choice(files))
            for _ in range(draw.randint(1, 6)):
                at, length = draw.randrange(len(data) + 1), draw.choice((0, 1, 4, 60))
                part = draw.choice(words) if draw.random() < 0.6 else bytes(data[(k := draw.randrange(len(data) + 1)):k + 40])
                data[at:at + length] = part
            try:
                for variants in False, True:
                    check(self, one(write("mutant", bytes(data)), variants=variants))
                converted += 1
            except foreign.Unreadable as why:
                self.assertRegex(str(why), "mutant|0.bin|1.bin")
            except Exception:
                keep = os.path.join(os.environ.get("TMPDIR", "/tmp"), "foreign-mutant")
                shutil.copy("mutant", keep)
                print("seed %d, mutation %d: %s" % (seed, n, keep), file=sys.stderr)
                raise
        self.assertGreater(converted, 50)


class Command(unittest.TestCase):
    def run_it(self, *words):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = foreign.main(words)
        return status, out.getvalue(), err.getvalue()

    def test_lines(self):
        """A document per line; one result of a file with several benchmarks makes the names of all begin with theirs."""
        status, out, _ = self.run_it(google({}, name="a.json"), DATA + "/hyperfine.json")
        leading = [json.loads(line)["leading"] for line in out.splitlines()]
        self.assertEqual((status, leading), (0, [["BM_A"], ["./sort_--threads_1", "./sort_--threads_2"]]))
        status, out, err = self.run_it("--", "-no\n")
        self.assertEqual((status, out, err), (2, "", "cannot read '-no ': No such file or directory\n"))


if __name__ == "__main__":
    unittest.main()
