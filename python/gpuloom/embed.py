# SPDX-License-Identifier: Apache-2.0
"""Embeds libgpuloom in this process, by ctypes. docs/embedding.md describes the calls."""
from __future__ import annotations

import concurrent.futures
import ctypes as c
import ctypes.util
import glob
import json
import operator
import os
import queue
import shutil
import threading
import weakref
from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple, Union

from .command import Document, Error, Path, _value


class _Error(c.Structure):
    _fields_ = [("code", c.c_int), ("line", c.c_int), ("file", c.c_char_p), ("option", c.c_char_p),
                ("text", c.c_char * 1000)]


class Task(c.Structure):
    """struct loom_task: a cache line that names a task function and its data."""
    _fields_ = [("tag", c.c_uint32), ("affinity", c.c_uint8), ("reserved", c.c_uint8 * 3),
                ("join", c.c_uint64), ("param", c.c_uint64 * 4), ("ref", c.c_uint64), ("bytes", c.c_uint64, 56),
                ("access", c.c_uint64, 8)]


def library() -> c.CDLL:
    """Loads libgpuloom: $GPULOOM_LIBRARY if set, else the library beside the command, else that of the system."""
    command = os.environ.get("GPULOOM") or shutil.which("gpuloom")
    near = os.path.dirname(os.path.realpath(command)) if command else ""
    guesses = [os.environ.get("GPULOOM_LIBRARY"), near and near + "/libgpuloom.so.0"]
    guesses += sorted(glob.glob(near + "/../lib*/libgpuloom.so.0") + glob.glob(near + "/../lib/*/libgpuloom.so.0"))
    guesses += [ctypes.util.find_library("gpuloom")]
    for path in guesses:
        if path and (os.path.exists(path) or "/" not in path):
            return c.CDLL(path)
    raise Error("there is no libgpuloom.so.0: install gpuloom, or set GPULOOM_LIBRARY=/path/to/libgpuloom.so.0", -6)


_EINVAL, _EBUSY = -1, -14


def _serve(jobs: queue.SimpleQueue[Any]) -> None:
    """Main function of the thread of a stack: executes calls of the library in order."""
    while True:
        done, function, args = jobs.get()
        if done is None:
            return
        if done.set_running_or_notify_cancel():
            try:
                done.set_result(function(*args))
            except BaseException as why:
                done.set_exception(why)
        del done, function, args


class Stack:
    """The plug-ins of a conf, opened in this process.

        with gpuloom.Stack(text=CONF) as stack:
            add = stack.source(SOURCE, "add")              # compiled for each device when the run starts
            ref, memory = stack.alloc(8)                   # loom_at(c, ref) in a task, memory here
            stack.submit(gpuloom.Task(tag=add, ref=ref))
            result = stack.run()

    `confs` are files. `set` has options, as in {"scheduler.mgws.victim": "random"}. If the conf has a workload, run()
    runs it.

    Any thread may call a stack. A thread of the stack executes the calls one after the other. stop() and close() do not
    wait for a run in progress: they end it. After close(), and in a forked child, calls raise Error."""

    # Only the thread of the stack calls the library: with process isolation, the workers are children of the thread
    # that started them, and end when it exits. The calling thread waits in Python, which handles signals, so that
    # Ctrl-C ends run().

    def __init__(self, *confs: Path, text: Optional[str] = None, set: Optional[Mapping[str, object]] = None) -> None:
        self._pid, self._lock, self._closed = os.getpid(), threading.RLock(), False
        self._config = c.c_void_p()
        self._stack: Optional[c.c_void_p] = None
        self._views: List[Any] = []
        self._memory: List[Any] = []
        self._lib = library()
        self._lib.loom_stack_close.restype = self._lib.loom_config_destroy.restype = None
        self._lib.loom_result_destroy.restype = self._lib.loom_stack_stop.restype = None
        self._lib.loom_result_json.restype = c.c_void_p
        self._jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=_serve, args=(self._jobs,), daemon=True, name="gpuloom").start()
        try:
            self._ask(self._open, confs, text, set)
        except BaseException:
            self.close()
            raise

    def _open(self, confs: Sequence[Path], text: Optional[str], set: Optional[Mapping[str, object]]) -> None:
        self._call("loom_config_create", c.byref(self._config))
        for conf in confs:
            self._call("loom_config_load", self._config, os.fsencode(conf))
        if text is not None:
            self._call("loom_config_load_text", self._config, b"text", text.encode())
        for name, value in (set or {}).items():
            section, _, key = name.rpartition(".")
            self._call("loom_config_set", self._config, section.encode(), key.encode(), _value(value).encode())
        stack = c.c_void_p()
        self._call("loom_stack_open", self._config, None, c.byref(stack))
        self._stack = stack

    def _check(self) -> None:
        if self._pid != os.getpid():
            raise Error("this stack was opened by process %d: a forked child cannot use it; open one there" % self._pid, _EBUSY)
        if self._closed:
            raise Error("this stack is closed", _EINVAL)

    def _ask(self, function: Callable[..., Any], *args: Any, stop: Optional[Callable[[], None]] = None) -> Any:
        """Calls `function` in the thread of the stack, and waits for its result. An exception in the calling thread, such
        as Ctrl-C, ends the run in progress, or the call that `stop` ends."""
        done: concurrent.futures.Future[Any] = concurrent.futures.Future()
        # Only the main thread runs signal handlers, but a signal may be delivered to another thread, which does not wake
        # the main thread. So the main thread polls ten times per second.
        nap = 0.1 if threading.current_thread() is threading.main_thread() else None
        try:
            self._check()
            with self._lock:
                self._check()
                self._jobs.put((done, function, args))
            while not concurrent.futures.wait([done], nap).done:
                pass
        except BaseException:
            stop = self._stop_now if function == self._run else stop
            if not done.cancel() and stop:
                self._end(done, stop)
            raise
        return done.result()

    def _end(self, done: concurrent.futures.Future[Any], stop: Callable[[], None]) -> None:
        """Calls `stop` for the run or call in progress, and waits until `done` is set. If a run does not end within a
        second, the library ends it by force. Further signals do not interrupt this function."""
        while not done.done():
            try:
                stop()
                concurrent.futures.wait([done], 0.1)
            except BaseException:
                pass

    def _stop_now(self) -> None:
        with self._lock:
            if self._stack:
                self._lib.loom_stack_stop(self._stack)

    def _call(self, name: str, *args: Any) -> None:
        error = _Error()
        code = getattr(self._lib, name)(*args, c.byref(error))
        if code:
            raise Error(error.text.decode(errors="replace").rstrip(), code)

    def _tags(self, name: str, file: Path, data: List[Any], wanted: Union[str, Sequence[str]]) -> Any:
        names = [wanted] if isinstance(wanted, str) else list(wanted)
        tags, words = (c.c_uint32 * len(names))(), (c.c_char_p * len(names))(*[n.encode() for n in names])
        self._on_stack(name, os.fsencode(file), *data, words, c.c_uint32(len(names)), tags)
        return tags[0] if len(names) == 1 else list(tags)

    def _on_stack(self, name: str, *args: Any) -> None:
        self._ask(lambda: self._call(name, self._stack, *args))

    def source(self, text: str, names: Union[str, Sequence[str]], file: Path = "source.dev.h") -> Any:
        """Adds task functions as source text that is both C11 and C++ (docs/embedding.md). Returns the tag of each
        name."""
        return self._tags("loom_stack_source", file, [text.encode()], names)

    def ir(self, file: Path, names: Union[str, Sequence[str]]) -> Any:
        """Adds task functions of a compiled file: a shared object, LTO-IR or PTX."""
        return self._tags("loom_stack_ir", file, [None, c.c_size_t(0)], names)

    def alloc(self, bytes: int) -> Tuple[int, memoryview]:
        """Allocates zeroed memory that every worker can access. Returns its reference for tasks, and a memoryview for
        this process. close() releases the view."""
        bytes = operator.index(bytes)
        if not 0 <= bytes < 1 << 63:
            raise ValueError("alloc: %d is no number of bytes" % bytes)
        ref, host = c.c_uint64(), c.c_void_p()
        self._on_stack("loom_stack_alloc", c.c_size_t(bytes), c.byref(ref), c.byref(host))
        with self._lock:
            self._check()
            memory: Any = (c.c_char * bytes).from_address(host.value or 0)
            memory.stack = self  # the stack exists while its memory is in use
            view = memoryview(memory).cast("B")
            self._memory.append(weakref.ref(memory))
            self._views.append(weakref.ref(view))
        return ref.value, view

    def submit(self, *tasks: Task) -> None:
        """Adds tasks to the initial set of the next run."""
        self._on_stack("loom_stack_submit", (Task * len(tasks))(*tasks), c.c_size_t(len(tasks)))

    def run(self) -> Document:
        """Runs to the end and returns the result as a dictionary. Other Python threads continue meanwhile. Ctrl-C, or
        an exception of a signal handler, ends the run; the stack can run again."""
        document: Document = self._ask(self._run)
        return document

    def _run(self) -> Document:
        result = c.c_void_p()
        try:
            self._call("loom_stack_run", self._stack, c.byref(result))
            text = self._lib.loom_result_json(result)
            if not text:
                raise MemoryError
            try:
                document: Document = json.loads(c.string_at(text))
                return document
            finally:
                c.CDLL(None).free(c.c_void_p(text))
        finally:
            self._lib.loom_result_destroy(result)

    def stop(self) -> None:
        """Ends the run in progress. Any thread and any signal handler may call this function."""
        self._check()
        self._stop_now()

    def close(self) -> None:
        """Ends the workers and frees the resources of the stack. If another thread waits in run(), that call raises Error.

        The function releases the views that alloc() returned. If a cast of a view or a numpy array still uses their
        memory, it raises BufferError: delete that object first. If the stack is closed, or in a forked child, the
        function has no effect."""
        if self._pid != os.getpid():
            return
        done: concurrent.futures.Future[Any] = concurrent.futures.Future()
        with self._lock:
            if self._closed:
                return
            self._release()
            self._closed = True
            self._jobs.put((done, self._close, ()))
            self._jobs.put((None, None, None))
        while not done.done():
            self._stop_now()
            concurrent.futures.wait([done], 0.1)

    def _release(self) -> None:
        for view in self._views:
            try:
                if view() is not None:
                    view().release()
            except BufferError:
                pass
        in_use = sum(m() is not None for m in self._memory)
        if in_use:
            raise BufferError("memory of this stack is in use by casts of a view or by arrays (%d of alloc()): delete these "
                              "before close()" % in_use)

    def _close(self) -> None:
        with self._lock:
            stack, self._stack = self._stack, None
        self._lib.loom_stack_close(stack)
        self._lib.loom_config_destroy(self._config)

    def __del__(self) -> None:
        # This function must not wait, because garbage collection may run in the thread of the stack. The attributes are
        # missing if __init__ failed.
        if getattr(self, "_jobs", None) and self._pid == os.getpid() and not self._closed:
            self._jobs.put((concurrent.futures.Future(), self._close, ()))
            self._jobs.put((None, None, None))

    def __enter__(self) -> Stack:
        self._check()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
