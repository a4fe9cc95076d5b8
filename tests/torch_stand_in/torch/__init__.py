# SPDX-License-Identifier: Apache-2.0
"""A stand-in for PyTorch, with the few names that gpuloom.torch uses, for tests on machines without PyTorch. A tensor is
memory of ctypes. With $STAND_IN_CUDA, tensors are on a device "cuda", whose streams belong to tests/cuda/fake_driver.c."""
import ctypes
import os
import struct

from . import cuda, distributed, futures


class dtype:
    def __init__(self, name, size, code):
        self.name, self.size, self.code = name, size, code

    def __repr__(self):
        return "torch." + self.name


float32, float16, int32 = dtype("float32", 4, "f"), dtype("float16", 2, "e"), dtype("int32", 4, "i")
bfloat16, float64 = dtype("bfloat16", 2, None), dtype("float64", 8, "d")


class device:
    def __init__(self, type, index=None):
        self.type, self.index = type, index

    def __eq__(self, other):
        return (self.type, self.index) == (other.type, other.index)


class Tensor:
    def __init__(self, values, dtype=float32, contiguous=True):
        self.dtype, self._contiguous, self._n = dtype, contiguous, len(values)
        self._memory = ctypes.create_string_buffer(self._n * dtype.size + 16)
        self.is_cuda = bool(os.environ.get("STAND_IN_CUDA"))
        self.device = device("cuda", 0) if self.is_cuda else device("cpu")
        self._at = (ctypes.addressof(self._memory) + 15) & ~15
        self._set(values)

    def _set(self, values):
        for i, v in enumerate(values):
            raw = struct.pack("f", v)[2:] if self.dtype is bfloat16 else struct.pack(self.dtype.code, v)
            ctypes.memmove(self._at + i * self.dtype.size, raw, self.dtype.size)

    def tolist(self):
        size = self.dtype.size
        raw = [ctypes.string_at(self._at + i * size, size) for i in range(self._n)]
        return [struct.unpack("f", b"\0\0" + r)[0] if self.dtype is bfloat16 else struct.unpack(self.dtype.code, r)[0]
                for r in raw]

    def data_ptr(self):
        return self._at

    def numel(self):
        return self._n

    def element_size(self):
        return self.dtype.size

    def is_contiguous(self):
        return self._contiguous

    def div_(self, n):
        cuda.synchronize()
        self._set([v / n for v in self.tolist()])
        return self

    def record_stream(self, stream):
        pass


def tensor(values, dtype=float32):
    return Tensor(values, dtype)
