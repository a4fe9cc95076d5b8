# SPDX-License-Identifier: Apache-2.0
"""libgpuloom in this process, by ctypes: docs/embedding.md says what the calls do."""
import ctypes as c
import ctypes.util
import glob
import json
import os
import shutil

from .command import Error


class _Error(c.Structure):
    _fields_ = [("code", c.c_int), ("line", c.c_int), ("file", c.c_char_p), ("text", c.c_char * 1000)]


class Task(c.Structure):
    """struct loom_task: a cache line that names a task function and what it works on."""
    _fields_ = [("tag", c.c_uint32), ("priority", c.c_uint8), ("affinity", c.c_uint8), ("reserved", c.c_uint16),
                ("join", c.c_uint64), ("param", c.c_uint64 * 4), ("ref", c.c_uint64), ("bytes", c.c_uint64, 56),
                ("access", c.c_uint64, 8)]


def library():
    """$GPULOOM_LIBRARY, the one beside the command, or the system's."""
    command = os.environ.get("GPULOOM") or shutil.which("gpuloom")
    near = os.path.dirname(os.path.realpath(command)) if command else ""
    guesses = [os.environ.get("GPULOOM_LIBRARY"), near and near + "/libgpuloom.so.0"]
    guesses += sorted(glob.glob(near + "/../lib*/libgpuloom.so.0") + glob.glob(near + "/../lib/*/libgpuloom.so.0"))
    guesses += [ctypes.util.find_library("gpuloom")]
    for path in guesses:
        if path and (os.path.exists(path) or "/" not in path):
            return c.CDLL(path)
    raise Error("there is no libgpuloom.so.0: install gpuloom, or set GPULOOM_LIBRARY=/path/to/libgpuloom.so.0", -6)


class Stack:
    """The plug-ins of a conf, opened in this process.

        with gpuloom.Stack(text=CONF) as stack:
            add = stack.source(SOURCE, "add")              # compiled for each device when the run begins
            ref, memory = stack.alloc(8)                   # loom_at(c, ref) in a task, memory here
            stack.submit(gpuloom.Task(tag=add, ref=ref))
            result = stack.run()

    `confs` are files; `set` is {"scheduler.mgws.victim": "random"}. With a workload in the conf run() runs that."""

    def __init__(self, *confs, text=None, set=None):
        self._lib = library()
        self._lib.loom_stack_close.restype = self._lib.loom_config_destroy.restype = None
        self._lib.loom_result_destroy.restype = self._lib.loom_stack_stop.restype = None
        self._lib.loom_result_json.restype = c.c_void_p
        self._config, self._stack = c.c_void_p(), c.c_void_p()
        try:
            self._call("loom_config_create", c.byref(self._config))
            for conf in confs:
                self._call("loom_config_load", self._config, os.fsencode(conf))
            if text is not None:
                self._call("loom_config_load_text", self._config, b"text", text.encode())
            for name, value in (set or {}).items():
                section, _, key = name.rpartition(".")
                self._call("loom_config_set", self._config, section.encode(), key.encode(), str(value).encode())
            self._call("loom_stack_open", self._config, None, c.byref(self._stack))
        except BaseException:
            self.close()
            raise

    def _call(self, name, *args):
        error = _Error()
        code = getattr(self._lib, name)(*args, c.byref(error))
        if code:
            raise Error(error.text.decode(errors="replace"), code)

    def _tags(self, name, file, data, names):
        names = [names] if isinstance(names, str) else list(names)
        tags, words = (c.c_uint32 * len(names))(), (c.c_char_p * len(names))(*[n.encode() for n in names])
        self._call(name, self._stack, os.fsencode(file), *data, words, c.c_uint32(len(names)), tags)
        return tags[0] if len(names) == 1 else list(tags)

    def source(self, text, names, file="source.dev.h"):
        """Task functions as text in C11 that is C++ as well (docs/embedding.md). The tag of each name."""
        return self._tags("loom_stack_source", file, [text.encode()], names)

    def ir(self, file, names):
        """Task functions of a file that is compiled already: a shared object, LTO-IR or PTX."""
        return self._tags("loom_stack_ir", file, [None, c.c_size_t(0)], names)

    def alloc(self, bytes):
        """Zeroed memory that every worker sees: its reference for tasks, and a memoryview for this process that ends
        with the stack."""
        ref, host = c.c_uint64(), c.c_void_p()
        self._call("loom_stack_alloc", self._stack, c.c_size_t(bytes), c.byref(ref), c.byref(host))
        return ref.value, memoryview((c.c_char * bytes).from_address(host.value)).cast("B")

    def submit(self, *tasks):
        self._call("loom_stack_submit", self._stack, (Task * len(tasks))(*tasks), c.c_size_t(len(tasks)))

    def run(self):
        """Runs to the end; the result as a dictionary. The interpreter's other threads go on meanwhile."""
        result = c.c_void_p()
        try:
            self._call("loom_stack_run", self._stack, c.byref(result))
            text = self._lib.loom_result_json(result)
            if not text:
                raise MemoryError
            try:
                return json.loads(c.string_at(text))
            finally:
                c.CDLL(None).free(c.c_void_p(text))
        finally:
            self._lib.loom_result_destroy(result)

    def stop(self):
        """Ends the run in progress: from another thread."""
        self._lib.loom_stack_stop(self._stack)

    def close(self):
        self._lib.loom_stack_close(self._stack)
        self._lib.loom_config_destroy(self._config)
        self._stack, self._config = c.c_void_p(), c.c_void_p()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
