# SPDX-License-Identifier: Apache-2.0
"""gpuloom for PyTorch: tasks that work on tensors, and collectives on the current stream. docs/embedding.md describes the
use. The module calls libgpuloom by ctypes, and needs no compiler at installation.

    import gpuloom.torch as loom
    with loom.policy("conf/step.ini") as p:            # all ranks: a stack and a communicator of this conf
        loom.all_reduce(gradients)                     # in place, on the current stream; also in torch.cuda.graph

    with loom.Stack(text=CONF) as stack:
        scale = stack.function(SOURCE, "scale")        # void scale(struct loom_ctx *, const struct loom_task *)
        scale(x, 3, tasks=100)                         # loom_at(c, t->param[0]) is x, t->param[1] is 3
        stack.enqueue()                                # on the current stream of the tensors' device
"""
import contextlib
import ctypes as c
import os
import threading

import torch

from . import embed
from .command import Error
from .embed import Task

_TYPES = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2, torch.int32: 3}  # enum loom_comm_type
_OPS = {"sum": 0, "max": 1}  # enum loom_comm_op
_ALLREDUCE, _REDUCE_SCATTER, _ALLGATHER, _BROADCAST, _BARRIER = range(5)  # enum loom_comm_what
_ON_GPU = 2  # LOOM_ON_GPU
_EINVAL, _EIO = -1, -7

_Allgather = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_void_p, c.c_size_t, c.c_void_p)


class _Ranks(c.Structure):
    _fields_ = [("size", c.c_size_t), ("rank", c.c_uint32), ("ranks", c.c_uint32), ("self", c.c_void_p),
                ("allgather", _Allgather), ("job", c.c_void_p)]


class _View(c.Structure):
    _fields_ = [("rank", c.c_uint32), ("ranks", c.c_uint32), ("tracks", c.c_uint32), ("kind", c.c_uint32),
                ("rest", c.c_uint64 * 20)]


class _Call(c.Structure):
    _fields_ = [("what", c.c_uint32), ("type", c.c_uint32), ("op", c.c_uint32), ("root", c.c_uint32),
                ("input", c.c_void_p), ("output", c.c_void_p), ("count", c.c_uint64), ("pulls", c.c_uint32),
                ("chosen", c.c_uint32)]


def _stream(device):
    """The current stream of a device as a pointer; None for a CPU."""
    if device is None or device.type == "cpu":
        return None
    return c.c_void_p(torch.cuda.current_stream(device).cuda_stream)


def _checked(tensor, name, types=None):
    if not tensor.is_contiguous():
        raise ValueError("%s is not contiguous: pass %s.contiguous()" % (name, name))
    if types is not None and tensor.dtype not in types:
        raise TypeError("%s has dtype %s: supported are %s" % (name, tensor.dtype, ", ".join(map(str, types))))
    return tensor


class Function:
    """A task function of a stack. A call submits tasks for the next run."""

    def __init__(self, stack, tag, name):
        self._stack, self._tag, self.__name__ = stack, tag, name

    def __call__(self, *arguments, tasks=1):
        """Submits `tasks` tasks. Up to four arguments become t->param[0], t->param[1] and so on: a tensor its reference,
        for loom_at(c, t->param[i]), and an integer its value. If there are several tasks, t->param[3] is the number of
        the task, so that three arguments remain."""
        if len(arguments) > (4 if tasks == 1 else 3):
            raise ValueError("%s: %d arguments, but a task has room for 4, one of which is the number of the task if "
                             "there are several" % (self.__name__, len(arguments)))
        params = [a & (1 << 64) - 1 if isinstance(a, int) else self._stack.adopt(a) for a in arguments]
        params += [0] * (4 - len(params))
        made = []
        for i in range(tasks):
            if tasks > 1:
                params[3] = i
            made.append(Task(tag=self._tag, param=(c.c_uint64 * 4)(*params)))
        self._stack.submit(*made)


class Stack(embed.Stack):
    """A stack (gpuloom.Stack) whose tasks work on tensors, and whose runs may be in streams of PyTorch."""

    def __init__(self, *confs, text=None, set=None):
        self._adopted, self._comms, self._device = {}, [], None
        self.name = ", ".join(os.path.basename(os.fspath(conf)) for conf in confs) or "text"
        super().__init__(*confs, text=text, set=set)

    def adopt(self, tensor):
        """Returns the reference of a tensor's memory. The tensor is adopted at its first use, which ends workers that wait
        for the next run, and stays alive until release() or close()."""
        _checked(tensor, "tensor")
        key = (tensor.data_ptr(), tensor.numel() * tensor.element_size())
        if key not in self._adopted:
            ref = c.c_uint64()
            self._on_stack("loom_stack_adopt", c.c_void_p(key[0]), c.c_size_t(key[1]), c.byref(ref))
            self._adopted[key] = (ref.value, tensor)
            if tensor.is_cuda:
                self._device = tensor.device
        return self._adopted[key][0]

    def release(self, tensor):
        """Releases a tensor that adopt() or a task has adopted."""
        key = (tensor.data_ptr(), tensor.numel() * tensor.element_size())
        if key not in self._adopted:
            raise Error("release: this tensor is not adopted", _EINVAL)
        self._on_stack("loom_stack_release", c.c_uint64(self._adopted[key][0]))
        del self._adopted[key]

    def function(self, source, name, file="source.dev.h"):
        """Adds a task function as source text, which is compiled for each device when the next run starts."""
        return Function(self, self.source(source, name, file), name)

    def enqueue(self):
        """Starts a run of the submitted tasks. On a GPU the run is put into the current stream, also if that stream is
        being captured; wait() reports its errors. On CPUs the function returns when the run has ended."""
        if self._device is None:
            self._ask(self._run)
        else:
            self._on_stack("loom_stack_enqueue", _stream(self._device))

    def wait(self):
        """Waits for runs in streams, and raises Error if one has failed."""
        self._on_stack("loom_stack_wait", c.c_uint64((1 << 64) - 1), None)

    def close(self):
        if self._pid == os.getpid():
            for comm in list(self._comms):
                comm.close()
        super().close()
        self._adopted.clear()


class Comm:
    """A communicator: collectives over the ranks of one host.

    The ranks are those of a process group of torch.distributed, of any backend, by which they find each other once. Without
    torch.distributed, pass `rank`, `ranks` and `allgather`, a function that takes bytes and returns the list of all ranks'
    bytes. `stack` has one GPU, or CPUs.

    On a GPU each call launches one kernel on the current stream and returns. Errors, such as the death of a rank, are
    raised by the next call or by check(). Calls must not overlap with runs of the stack by other threads."""

    def __init__(self, stack, group=None, rank=None, ranks=None, allgather=None):
        if allgather is None and ranks != 1:
            dist = torch.distributed
            rank, ranks = dist.get_rank(group), dist.get_world_size(group)
            device = torch.cuda.current_device() if torch.cuda.is_available() else None

            def allgather(mine):  # called in the thread of the stack, and each thread has its own current device
                if device is not None:
                    torch.cuda.set_device(device)
                every = [None] * ranks
                dist.all_gather_object(every, mine, group=group)
                return every
        self.rank, self.ranks, self._stack, self._why = rank or 0, ranks, stack, None
        self._lock = threading.RLock()
        self._comm = c.c_void_p()

        def gather(_, mine, every, size, __):
            try:
                for i, data in enumerate(allgather(c.string_at(mine, size))):
                    c.memmove(every + i * size, data, size)
                return 0
            except BaseException as why:  # no exception may pass through C code
                self._why = why
                return _EIO

        given = _Ranks(c.sizeof(_Ranks), self.rank, ranks, None, _Allgather(gather), None)
        for name in "close", "stop", "view":
            getattr(stack._lib, "loom_comm_" + name).restype = None
        comm = c.c_void_p()
        try:
            stack._on_stack("loom_comm_open", c.byref(given), c.byref(comm))
        except Error:
            if self._why is not None:
                raise self._why
            raise
        self._comm = comm
        view = _View()
        stack._lib.loom_comm_view(comm, c.byref(view))
        self._on_gpu = view.kind == _ON_GPU
        stack._comms.append(self)

    def _execute(self, what, out, tensor=None, op="sum", root=0, count=None):
        if op not in _OPS:
            raise ValueError("op = %r: supported are 'sum' and 'max'" % (op,))
        call = _Call(what=what, op=_OPS[op], root=root)
        device = None
        if out is not None:
            tensor = out if tensor is None else tensor
            _checked(out, "out", _TYPES)
            _checked(tensor, "tensor", _TYPES)
            if tensor.dtype != out.dtype or tensor.device != out.device:
                raise TypeError("tensor and out have different types or devices")
            call.type, call.count, device = _TYPES[out.dtype], count, out.device
            call.input, call.output = tensor.data_ptr(), out.data_ptr()
        elif self._on_gpu:
            device = torch.device("cuda", torch.cuda.current_device())
        self._stack._check()
        if not self._comm:
            raise Error("this communicator is closed", _EINVAL)
        if device is None or device.type == "cpu":
            self._wait(call)
        else:
            self._stack._call("loom_comm_call", self._comm, c.byref(call), _stream(device))

    def _wait(self, call):
        """Executes a call on CPUs. The thread of the stack waits for the other ranks, so that this thread can handle
        Ctrl-C, which stops the communicator."""
        self._stack._ask(self._stack._call, "loom_comm_call", self._comm, c.byref(call), None, stop=self._stop)

    def _stop(self):
        with self._lock:
            if self._comm:
                self._stack._lib.loom_comm_stop(self._comm)

    def all_reduce(self, tensor, op="sum", out=None):
        """Reduces the tensors of all ranks element by element, into `out` or in place. Returns the result."""
        out = tensor if out is None else out
        self._need(out.numel() == tensor.numel(), "out has %d elements, and tensor %d: they must be equal", out, tensor)
        self._execute(_ALLREDUCE, out, tensor, op, count=tensor.numel())
        return out

    def reduce_scatter(self, out, tensor, op="sum"):
        """Reduces, and leaves part r of the result in `out` of rank r. `tensor` has as many parts as there are ranks."""
        self._need(tensor.numel() == out.numel() * self.ranks, "out has %d elements, and tensor %d: it needs one part for each rank", out, tensor)
        self._execute(_REDUCE_SCATTER, out, tensor, op, count=out.numel())
        return out

    def all_gather(self, out, tensor):
        """Gathers the tensors of all ranks in `out`, in the order of the ranks."""
        self._need(out.numel() == tensor.numel() * self.ranks, "out has %d elements, and tensor %d: out needs a part for each rank", out, tensor)
        self._execute(_ALLGATHER, out, tensor, count=tensor.numel())
        return out

    def broadcast(self, tensor, src=0):
        """Copies the tensor of rank `src` to all ranks."""
        self._execute(_BROADCAST, tensor, root=src, count=tensor.numel())
        return tensor

    def barrier(self):
        """Lets no rank's stream, or no rank on CPUs, go on before all have come here."""
        self._execute(_BARRIER, None)

    @staticmethod
    def _need(holds, text, out, tensor):
        if not holds:
            raise ValueError(text % (out.numel(), tensor.numel()))

    def check(self):
        """Raises Error if a collective has failed. Synchronise with the stream first."""
        self._stack._check()
        if not self._comm:
            raise Error("this communicator is closed", _EINVAL)
        self._stack._call("loom_comm_status", self._comm)

    def close(self):
        """Closes the communicator. Synchronise with streams that have collectives first. On GPUs all ranks close."""
        with self._lock:
            if not self._on_gpu:
                self._stop()  # ends a collective of another thread
            comm, self._comm = self._comm, c.c_void_p()
        if comm and self._stack._pid == os.getpid() and not self._stack._closed:
            self._stack._ask(self._stack._lib.loom_comm_close, comm)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def allreduce_hook(comm, bucket):
    """A communication hook for DistributedDataParallel: model.register_comm_hook(comm, gpuloom.torch.allreduce_hook). It
    averages a bucket of gradients by our allreduce. On a GPU this happens on a stream beside the backward pass."""
    gradients = bucket.buffer()
    if not gradients.is_cuda:
        comm.all_reduce(gradients).div_(comm.ranks)
        future = torch.futures.Future()
        future.set_result(gradients)
        return future
    beside = _beside(comm, gradients.device)
    beside.wait_stream(torch.cuda.current_stream(gradients.device))
    with torch.cuda.stream(beside):
        comm.all_reduce(gradients).div_(comm.ranks)
        gradients.record_stream(beside)
        future = torch.futures.Future(devices=[gradients.device])
        future.set_result(gradients)  # a stream that waits for the future also waits for this one
    return future


def _beside(comm, device):
    """The stream of a communicator for hooks. All buckets use it, so that their order is the same on all ranks."""
    if getattr(comm, "_beside", None) is None:
        comm._beside = torch.cuda.Stream(device)
    return comm._beside


# ---- the policy in force ------------------------------------------------------------------------------------------------

class Policy:
    """What policy() has opened: .name, the file name of the conf; .stack; .comm, None without other ranks."""

    def __init__(self, stack, comm):
        self.name, self.stack, self.comm = stack.name, stack, comm

    def __repr__(self):
        return "gpuloom policy %s" % self.name


_in_force = []


@contextlib.contextmanager
def policy(*confs, text=None, set=None, group=None, collectives=True, **ranks):
    """Opens a stack of the conf, and a communicator over the ranks of `group`. Within the block, current() returns both, and
    the functions all_reduce(), all_gather(), reduce_scatter(), broadcast() and barrier() of this module use them. With
    `collectives = False` there is no communicator."""
    with Stack(*confs, text=text, set=set) as stack:
        chosen = Policy(stack, Comm(stack, group, **ranks) if collectives else None)
        _in_force.append(chosen)
        try:
            yield chosen
        finally:
            _in_force.remove(chosen)


def current():
    """Returns the Policy in force: that of the innermost policy() block."""
    if not _in_force:
        raise Error("no policy is in force: call this within `with gpuloom.torch.policy(conf)`", _EINVAL)
    return _in_force[-1]


def _comm():
    found = current()
    if found.comm is None:
        raise Error("%r has no communicator: open it with collectives = True" % found, _EINVAL)
    return found.comm


def all_reduce(tensor, op="sum", out=None):
    return _comm().all_reduce(tensor, op, out)


def reduce_scatter(out, tensor, op="sum"):
    return _comm().reduce_scatter(out, tensor, op)


def all_gather(out, tensor):
    return _comm().all_gather(out, tensor)


def broadcast(tensor, src=0):
    return _comm().broadcast(tensor, src)


def barrier():
    _comm().barrier()
