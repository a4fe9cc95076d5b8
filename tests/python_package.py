# SPDX-License-Identifier: Apache-2.0
"""Tests the Python package, which tests/check-python.sh has installed: documents of all kinds, the command, the library, and
the notebook. With pandas and matplotlib their functions are tested, without them the messages."""
import glob
import gzip
import importlib.util
import inspect
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import typing
import unittest
from xml.etree import ElementTree

import gpuloom
from gpuloom import plots

SMALL = {"workload.uts.tree": "custom", "workload.uts.depth": 5}
PANDAS, MATPLOTLIB = (importlib.util.find_spec(m) is not None for m in ("pandas", "matplotlib"))


class Documents(unittest.TestCase):
    def test_sweep(self):
        gpuloom.sweep("conf/uts.ini", "s.jsonl", set=SMALL, samples=3, restart=True,
                      vary={"device.cpu.workers": [1, 2], "scheduler.mgws.victim": ["random", "neighbour"]})
        table = gpuloom.load("s.jsonl", pandas=False)
        self.assertEqual(len(table), 12)
        self.assertEqual(set(table["device.cpu.workers"]), {1, 2})
        cells = table.groupby("device.cpu.workers", "scheduler.mgws.victim")
        self.assertEqual(cells.count()["seconds"], [3] * 4)
        one = [r["seconds"] for r in table if r["device.cpu.workers"] == 1 and r["scheduler.mgws.victim"] == "random"]
        self.assertIn(sorted(one)[1], cells["seconds"].median()["seconds"])
        self.assertEqual(table.groupby(["device.cpu.workers"])["seconds"].min()["device.cpu.workers"].count(1), 1)
        self.assertIn("scheduler.mgws.victim", str(table))
        with self.assertRaisesRegex(KeyError, "no column 'secnds'; there are: .*seconds"):
            table.groupby("device.cpu.workers")["secnds"]
        with open("s.jsonl", "a") as f:
            f.write('{"configuration": "half')  # an incomplete line, as after a crash
        self.assertEqual(len(gpuloom.load("s.jsonl", pandas=False)), 12)
        with self.assertWarnsRegex(UserWarning, "12 samples .* count once"):
            self.assertEqual(len(gpuloom.load("s.jsonl", "s.jsonl", pandas=False)), 12)
        gpuloom.report("s.jsonl", "s.json")
        self.assertEqual(sorted(gpuloom.load("s.json", pandas=False)["seconds"]), sorted(table["seconds"]))
        if PANDAS:
            frame = gpuloom.load("s.jsonl")
            self.assertEqual(type(frame).__name__, "DataFrame")
            self.assertEqual(list(frame["seconds"]), table["seconds"])
            medians = frame.groupby(["device.cpu.workers", "scheduler.mgws.victim"])["seconds"].median()
            self.assertEqual(medians[(1, "random")], sorted(one)[1])
        else:
            self.assertIsInstance(gpuloom.load("s.jsonl"), gpuloom.Table)
            with self.assertRaisesRegex(ImportError, "no pandas"):
                gpuloom.load("s.jsonl", pandas=True)

    def test_results(self):
        for depth in 4, 5:
            with open("r%d.json" % depth, "w") as f:
                json.dump(gpuloom.run("conf/uts.ini", set={**SMALL, "workload.uts.depth": depth}, samples=2), f)
        table = gpuloom.load("r4.json", "r5.json", pandas=False)
        self.assertEqual(table["workload.uts.depth"], [4, 4, 5, 5])
        with self.assertWarnsRegex(UserWarning, "2 samples occur twice and count once"):
            self.assertEqual(len(gpuloom.load("r4.json", "r5.json", "r4.json", pandas=False)), 4)
        self.assertEqual(sorted(set(table["depth"])), [4, 5])
        self.assertNotIn("workload.uts.tree", table.columns)

    def test_compare(self):
        judged = gpuloom.compare("conf/uts.ini", vary={"scheduler.mgws.victim": ["random", "neighbour"]}, set=SMALL,
                                 blocks=6,
                                 samples_per_block=2, spread="0s")
        self.assertIn(judged["comparisons"][0]["verdict"], "FASTER SLOWER EQUIVALENT TRIVIAL INCONCLUSIVE")
        table = gpuloom.frame(judged, pandas=False)
        self.assertEqual(len(table), 24)
        self.assertEqual(set(table["scheduler.mgws.victim"]), {"random", "neighbour"})

    def test_names_that_meet(self):
        """A metric never replaces a factor or a column of gpuloom, whatever a program printed."""
        head = {"schema": "gpuloom.sweep/1", "factors": [{"key": "workload.exec.command", "values": ["a", "b"]}]}
        line = {"configuration": "1", "values": {"workload.exec.command": "a", "sample": "x"}, "sample": 0, "start_ns": 5,
                "metrics": {"workload.exec.command": 5, "sample": 7, "metric.sample": 8, "seconds": 1.5}}
        table = gpuloom.frame([head, line], pandas=False)
        self.assertEqual(dict(list(table)[0]), {
            "workload.exec.command": "a", "factor.sample": "x", "configuration": 1, "sample": 0, "start_ns": 5,
            "metric.workload.exec.command": 5, "metric.sample": 7, "metric.metric.sample": 8, "seconds": 1.5})

    def test_samples_that_occur_twice(self):
        gpuloom.sweep("conf/uts.ini", "d.jsonl", set=SMALL, samples=2, restart=True, vary={"device.cpu.workers": [1, 2]})
        with open("d.jsonl") as once, open("x.jsonl", "w") as twice:
            twice.write(once.read() * 2)
        with open("run.json", "w") as f:
            json.dump(gpuloom.run("conf/uts.ini", set=SMALL, samples=2), f)
        for n, paths in (4, ["d.jsonl", "d.jsonl"]), (4, ["x.jsonl"]), (2, ["run.json", "run.json"]):
            with self.assertWarnsRegex(UserWarning, "^%d samples occur twice and count once" % n):
                self.assertEqual(len(gpuloom.load(*paths, pandas=False)), n)
        shutil.copy("run.json", "again.json")
        itself = gpuloom.frame(gpuloom.compare(["run.json", "again.json"]), pandas=False)
        self.assertEqual(len(itself), 4)  # two variants, although they have the same samples

    def test_names_that_begin_with_a_dash(self):
        shutil.copy("conf/uts.ini", "-x.ini")
        with open("-x.json", "w") as f:
            json.dump(gpuloom.run("-x.ini", set=SMALL, samples=2), f)
        self.assertEqual(gpuloom.report("-x.json", "-x.csv"), "-x.csv")
        self.assertTrue(os.path.exists("-x.csv"))
        with self.assertRaisesRegex(gpuloom.Error, "--help"):
            gpuloom.run("--help")

    def test_values_F17d(self):
        """Values with commas, quotes and backslashes reach the job unchanged."""
        with open("exec.ini", "w") as f:
            f.write("[run]\nworkload = exec\ndevices = cpu:0\n[device.cpu]\nworkers = 1\n[transport]\nuse = host\n")
        with open("note", "w") as f:
            f.write('for w; do printf "[%s]" "$w"; done >>noted; echo >>noted')
        commands = ["sh note 'true, false'", 'sh note "a \\" b, c"', "sh note plain"]
        gpuloom.sweep("exec.ini", "e.jsonl", vary={"workload.exec.command": commands}, samples=1, set={"run.warmup": 0})
        with open("noted") as f:
            self.assertEqual(sorted(f.read().splitlines()), sorted(["[true, false]", '[a " b, c]', "[plain]"]))

    def test_lists_F17c(self):
        """If the value of an option is a list, the option is repeated for each element, or gets one joined value if it takes a list."""
        self.assertEqual(gpuloom.command._options(fail_on=["a", "b"], aa=True, quiet=False, blocks=3),
                         ["--fail-on", "a", "--fail-on", "b", "--aa", "--blocks", "3"])
        rules = ["twice: slower > 900%", "cpu_seconds: slower > 900%"]
        judged = gpuloom.compare("conf/uts.ini", vary={"scheduler.mgws.victim": ["random", "neighbour"]}, set=SMALL,
                                 blocks=6,
                                 samples_per_block=2, spread="0s", fail_on=rules,
                                 derive=["twice = seconds * 2 [s, less]", "half = seconds / 2 [s]"])
        self.assertEqual([r["rule"] for r in judged["gate"]], rules)
        self.assertIn("half", gpuloom.frame(judged, pandas=False).columns)

    def test_shipped(self):
        """Every document that gpuloom ships can be read, compressed ones too, and all but hostile ones have samples."""
        files = [f for folder in ("results", "tests/data") for f in glob.glob("%s/%s/*.json*" % (os.environ["TREE"], folder))]
        self.assertGreater(len(files), 15)
        with open(next(f for f in files if f.endswith(".jsonl")), "rb") as f, gzip.open("compressed.jsonl.gz", "wb") as to:
            to.write(f.read())
        files.append("compressed.jsonl.gz")
        for file in files:
            with self.subTest(file):
                document = gpuloom.read(file)
                if "hostile" in file:
                    with self.assertRaisesRegex(ValueError, "lacks parts"):
                        gpuloom.frame(document, pandas=False)
                else:
                    self.assertGreater(len(gpuloom.frame(document, pandas=False)), 0)
        with open("cut.gz", "wb") as f:
            f.write(b"\x1f\x8b\x08\x00cut")
        for file in "cut.gz", os.path.join(os.environ["TREE"], "results", "papers.ini"):
            with self.assertRaisesRegex(ValueError, "no result of gpuloom"):
                gpuloom.read(file)

    def test_interrupt_command(self):
        """Ctrl-C ends a command within a second, with its ranks, and leaves no process."""
        for ranks in {}, {"ranks": 2}:
            conf = "conf/uts-ranks.ini" if ranks else "conf/uts.ini"
            title = "interrupted-%d-%d" % (os.getpid(), len(ranks))
            timer = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            with self.assertRaises(KeyboardInterrupt):
                gpuloom.run(conf, set={"run.title": title}, samples=100000, **ranks)
            ended = time.monotonic()
            timer.join()
            while subprocess.run(["pgrep", "-f", title], stdout=subprocess.DEVNULL).returncode == 0:
                self.assertLess(time.monotonic() - ended, 10)
                time.sleep(0.05)

    def test_refusals(self):
        with self.assertRaisesRegex(gpuloom.Error, "victim.*random") as caught:
            gpuloom.run("conf/uts.ini", set={"scheduler.mgws.victim": "randum"})
        self.assertEqual(caught.exception.status, 2)
        with open("no.json", "w") as f:
            f.write("[1]")
        with self.assertRaisesRegex(ValueError, "no.json: this is no result of gpuloom"):
            gpuloom.load("no.json")


class Plots(unittest.TestCase):
    def test_interval(self):
        self.assertEqual(plots.interval([3, 1, 2, 5, 4]), (3, None, None))
        self.assertEqual(plots.interval(range(6)), (2.5, 0, 5))
        self.assertEqual(plots.interval(range(20)), (9.5, 5, 14))  # Conover's tables: the 6th and the 15th of 20

    def test_points(self):
        table = gpuloom.Table(["x", "y", "l"], [{"x": x, "y": x + i, "l": l}
                                                for x in (2, 1) for i in range(6) for l in "ab"])
        self.assertEqual(plots.points(table, "x", "y", "l")["b"], [(1, 3.5, 1, 6), (2, 4.5, 2, 7)])
        with self.assertRaisesRegex(KeyError, "no column 'z'"):
            plots.points(table, "z", "y")
        if MATPLOTLIB:
            gpuloom.plot(table, "x", "y", "l").savefig("p.svg")
            self.assertGreater(os.path.getsize("p.svg"), 1000)
        else:
            with self.assertRaisesRegex(ImportError, "no matplotlib"):
                gpuloom.plot(table, "x", "y")


class Timelines(unittest.TestCase):
    def test_svg(self):
        gpuloom.command.call("run", "conf/uts.ini", "--samples", 1, "--quiet", "--trace", "t.json", "--trace-every", 1,
                             *(w for k, v in SMALL.items() for w in ("--set", "%s=%s" % (k, v))))
        gpuloom.timeline("t.json", "t.svg")
        texts = [e.text for e in ElementTree.parse("t.svg").iter() if e.text]
        self.assertIn("cpu:1 worker 1", texts)
        # Ticks are at round times, and the legend has only what occurs.
        with open("t.json", "w") as f:
            json.dump({"traceEvents": [{"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "worker 0"}},
                                       {"ph": "X", "name": "busy", "cat": "busy", "pid": 1, "tid": 1, "ts": 0, "dur": 46930}]}, f)
        for ends, ticks in ({}, [0, 10, 20, 30, 40]), ({"begin": 0.0101, "end": 0.0133}, [11, 12, 13]):
            gpuloom.timeline("t.json", "t.svg", **ends)
            texts = [e.text for e in ElementTree.parse("t.svg").iter() if e.text and e.text.strip()]
            self.assertEqual([t for t in texts if t.endswith(" ms")], ["%g ms" % t for t in ticks])
            self.assertIn("busy", texts)
            self.assertNotIn("steal", texts)
        with open("t.json", "w") as f:
            f.write('{"traceEvents": []}')
        with self.assertRaisesRegex(ValueError, "t.json: nothing is in this timeline"):
            gpuloom.timeline("t.json", "t.svg")


class Library(unittest.TestCase):
    CONF = ("[run]\ndevices = cpu:0\n[transport]\nuse = host\n[scheduler]\nuse = mgws\n[termination]\nuse = counter\n"
            "[device.cpu]\nworkers = 1\n")

    def test_workload(self):
        with gpuloom.Stack("conf/fib.ini", set={"workload.fib.n": 15, "run.samples": 2}) as stack:
            self.assertEqual(len(gpuloom.frame(stack.run(), pandas=False)), 2)

    def test_tasks(self):
        with gpuloom.Stack(text=self.CONF) as stack:
            add = stack.source("LOOM_FN void add(struct loom_ctx *c, const struct loom_task *t)\n"
                               "{ loom_fetch_add_relaxed_sys((uint64_t *)loom_at(c, t->data.ref), t->param[0]); }\n", "add")
            ref, memory = stack.alloc(8)
            for n in 1, 2:
                stack.submit(*[gpuloom.Task(tag=add, ref=ref, param=(i, 0, 0, 0)) for i in range(100)])
                stack.run()
                self.assertEqual(memory.cast("Q")[0], 4950 * n)

    def test_refusals(self):
        with self.assertRaisesRegex(gpuloom.Error, "mgsw"):
            gpuloom.Stack(text=self.CONF.replace("mgws", "mgsw"))
        with gpuloom.Stack(text=self.CONF) as stack:
            with self.assertRaises(gpuloom.Error) as caught:
                stack.submit(gpuloom.Task(tag=99))
            self.assertEqual(caught.exception.status, -1)


    SPIN = ("LOOM_FN void spin(struct loom_ctx *c, const struct loom_task *t)\n"
            "{ loom_store_relaxed_sys((uint64_t *)loom_at(c, t->data.ref), 1); while (!loom_stopped(c)) ; }\n")

    def spinning(self, stack):
        """Returns a task that runs until it is stopped, and a word that shows that the task has started."""
        tag = stack.source(self.SPIN, "spin")
        ref, memory = stack.alloc(8)
        return gpuloom.Task(tag=tag, ref=ref), memory

    def when_begun(self, memory, act):
        """Calls `act` in another thread once the run has started."""
        def wait():
            while not memory[0]:
                threading.Event().wait(0.01)
            act()
        thread = threading.Thread(target=wait)
        thread.start()
        return thread

    def test_closed_F17a(self):
        stack = gpuloom.Stack(text=self.CONF)
        memory = stack.alloc(1 << 20)[1]
        stack.close()
        stack.close()
        for call in (stack.run, stack.stop, lambda: stack.submit(gpuloom.Task(tag=0)), lambda: stack.alloc(8),
                     stack.__enter__,
                     lambda: stack.source(self.SPIN, "spin"), lambda: stack.ir("none.so", "spin")):
            with self.assertRaisesRegex(gpuloom.Error, "closed"):
                call()
        with self.assertRaises(ValueError):
            memory[0]
        with self.assertRaises(ValueError):
            memory[0] = 1

    def test_views_F17a(self):
        """Memory exists as long as an array or a cast uses it."""
        stack = gpuloom.Stack(text=self.CONF)
        cast, other = stack.alloc(64)[1].cast("Q"), stack.alloc(64)[1]
        with self.assertRaisesRegex(BufferError, "in use.*1 of alloc"):
            stack.close()
        cast[7] = 1
        stack.alloc(8)
        cast.release()
        stack.close()
        with gpuloom.Stack(text=self.CONF) as stack:
            array = memoryview(stack.alloc(64)[1])
            with self.assertRaises(BufferError):
                stack.close()
            del stack  # only the array keeps the stack from here on
            array[0] = 1
            array.obj.stack.stop()
            del array

    def test_sizes_S11(self):
        with gpuloom.Stack(text=self.CONF) as stack:
            for size in 0, -1, 1 << 62, 1 << 64:
                with self.assertRaises((gpuloom.Error, ValueError)):
                    stack.alloc(size)

    def test_close_in_run_S11(self):
        """close() in another thread ends the run, whose message reports this."""
        stack = gpuloom.Stack(text=self.CONF)
        task, memory = self.spinning(stack)
        stack.submit(task)
        begun = threading.Event()
        closer = self.when_begun(memory, lambda: (begun.set(), stack.close()))
        with self.assertRaisesRegex(gpuloom.Error, "interrupted|closed"):
            stack.run()
        closer.join()
        self.assertTrue(begun.is_set())
        with self.assertRaisesRegex(gpuloom.Error, "closed"):
            stack.run()

    def test_interrupt_F17b(self):
        """Ctrl-C ends a run of tasks, and the stack can run again."""
        with gpuloom.Stack(text=self.CONF, set={"run.timeout": "10m"}) as stack:
            task, memory = self.spinning(stack)
            for attempt in range(2):
                memory[0] = 0
                stack.submit(task)
                killer = self.when_begun(memory, lambda: os.kill(os.getpid(), signal.SIGINT))
                with self.assertRaises(KeyboardInterrupt):
                    stack.run()
                killer.join()

    def test_interrupt_workload_F17b(self):
        """Ctrl-C ends a workload in mid-sample, with processes as workers. So does an exception of a signal handler."""
        class Alarm(Exception):
            pass

        def ring(*_):
            raise Alarm
        conf = self.CONF.replace("workers = 1", "workers = 1\nisolation = process") + "[workload.exec]\ncommand = sleep 600\n"
        before = signal.signal(signal.SIGALRM, ring)
        try:
            with gpuloom.Stack(text=conf, set={"run.workload": "exec", "run.timeout": "10m",
                                               "run.samples": 100}) as stack:
                for number, kind in (signal.SIGINT, KeyboardInterrupt), (signal.SIGALRM, Alarm):
                    timer = threading.Timer(0.5, os.kill, (os.getpid(), number))
                    timer.start()
                    with self.assertRaises(kind):
                        stack.run()
                    timer.join()
        finally:
            signal.signal(signal.SIGALRM, before)

    def test_forked_S12(self):
        """In a forked child the calls are errors, and the parent's stack continues."""
        with gpuloom.Stack("conf/fib.ini", set={"workload.fib.n": 10}) as stack:
            stack.run()
            child = os.fork()
            if not child:
                wrong = 0
                for call in (stack.run, stack.stop, lambda: stack.alloc(8), lambda: stack.submit(gpuloom.Task(tag=0)),
                             lambda: stack.source(self.SPIN, "spin"), stack.__enter__):
                    try:
                        call()
                        wrong += 1
                    except gpuloom.Error as e:
                        wrong += e.status != -14 or "forked" not in str(e)
                stack.close()
                os._exit(wrong)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertEqual(stack.run()["status"], "ok")


class Typed(unittest.TestCase):
    def test_all(self):
        """Public functions, classes and methods have doc strings, and types of all parameters and results, which tools find by
        the file py.typed."""
        self.assertTrue(os.path.exists(os.path.join(os.path.dirname(gpuloom.__file__), "py.typed")))
        found = {n: getattr(gpuloom, n) for n in gpuloom.__all__}
        found["Groups"] = gpuloom.results.Groups
        for name, of in list(found.items()):
            if inspect.isclass(of):
                found.update({name + "." + k: v for k, v in vars(of).items()
                              if inspect.isfunction(v) and (not k.startswith("_") or k == "__init__")})
        self.assertGreater(len(found), 30)
        for name, of in found.items():
            with self.subTest(name):
                if not name.endswith("__init__"):
                    self.assertTrue((of.__doc__ or "").strip())
                if inspect.isfunction(of):
                    signature = inspect.signature(of)
                    self.assertIsNot(signature.return_annotation, inspect.Signature.empty)
                    for p in list(signature.parameters.values()):
                        self.assertTrue(p.name == "self" or p.annotation is not inspect.Parameter.empty, p.name)
                    typing.get_type_hints(of)


class Notebook(unittest.TestCase):
    def test_cells(self):
        """The cells run in order in one name space, as in Jupyter."""
        with open(os.environ["NOTEBOOK"]) as f:
            cells = [c for c in json.load(f)["cells"] if c["cell_type"] == "code"]
        names, figure = {}, "victims.svg"
        self.assertGreater(len(cells), 3)
        for cell in cells:
            text = "".join(cell["source"])
            if figure in text and not MATPLOTLIB:
                continue
            exec(compile(text, "a cell of the notebook", "exec"), names)
        self.assertTrue(os.path.getsize(figure) > 1000 if MATPLOTLIB else not os.path.exists(figure))


if __name__ == "__main__":
    print("with" if PANDAS else "without", "pandas,", "with" if MATPLOTLIB else "without", "matplotlib,",
          sys.version.split()[0])
    unittest.main()
