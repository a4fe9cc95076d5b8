# SPDX-License-Identifier: Apache-2.0
"""Streams and graphs, over the driver without a GPU. Without $STAND_IN_CUDA there are none."""
import contextlib
import ctypes
import os
import threading

_driver = ctypes.CDLL("libcuda.so.1") if os.environ.get("STAND_IN_CUDA") else None


def _call(name, *arguments):
    if getattr(_driver, name)(*arguments):
        raise RuntimeError(name)


class Stream:
    def __init__(self, device=None):
        self.cuda_stream = 0
        if _driver:
            made = ctypes.c_void_p()
            _call("cuStreamCreate", ctypes.byref(made), 1)
            self.cuda_stream = made.value

    def wait_stream(self, other):
        other.synchronize()

    def synchronize(self):
        _call("cuStreamSynchronize", ctypes.c_void_p(self.cuda_stream))


_all, _now = [], []


def current_stream(device=None):
    if not _now:
        _now.append(Stream())
        _all.append(_now[0])
    return _now[-1]


@contextlib.contextmanager
def stream(it):
    _now.append(it)
    if it not in _all:
        _all.append(it)
    yield
    _now.pop()


_thread = threading.local()  # each thread has its own current device


def is_available():
    return bool(_driver)


def set_device(device):
    _thread.device = device


def current_device():
    return getattr(_thread, "device", 0)


def synchronize():
    for it in _all if _driver else []:
        it.synchronize()


class CUDAGraph:
    def replay(self):
        _call("cuGraphLaunch", self._made, ctypes.c_void_p(current_stream().cuda_stream))


@contextlib.contextmanager
def graph(it):
    beside = Stream()
    _call("cuStreamBeginCapture_v2", ctypes.c_void_p(beside.cuda_stream), 0)
    with stream(beside):
        yield
    captured, it._made = ctypes.c_void_p(), ctypes.c_void_p()
    _call("cuStreamEndCapture", ctypes.c_void_p(beside.cuda_stream), ctypes.byref(captured))
    _call("cuGraphInstantiateWithFlags", ctypes.byref(it._made), captured, ctypes.c_uint64(0))
