# SPDX-License-Identifier: Apache-2.0
"""Tests gpuloom.torch with a stand-in for PyTorch (tests/torch_stand_in): on CPUs, and with $STAND_IN_CUDA over the driver
without a GPU. Each test with several ranks starts this file again for each rank."""
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import gpuloom
import gpuloom.torch as loom
import torch

CUDA = bool(os.environ.get("STAND_IN_CUDA"))
CONF = """[run]
devices = %s
timeout = 20s
[device.cpu]
workers = 2
oversubscribe = yes
[transport]
use = %s
[scheduler]
use = mgws
[termination]
use = counter
""" % (("cuda:0", "p2p") if CUDA else ("cpu:0", "host"))
SCALE = """
LOOM_FN void scale(struct loom_ctx *c, const struct loom_task *t)
{
	float *x = (float *)loom_at(c, t->param[0]);
	if (c->lane == 0)
		x[t->param[3]] *= (float)(int64_t)t->param[1];
}
"""
NUMBERS = {torch.float32: range(1, 6000, 3), torch.bfloat16: [1, 2, 3, -4, 5], torch.float16: [0.5, 2, -3],
           torch.int32: [7, -9, 1 << 20]}


class Bucket:
    def __init__(self, tensor):
        self._tensor = tensor

    def buffer(self):
        return self._tensor


# ---- what a rank does ---------------------------------------------------------------------------------------------------

def collectives():
    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    with loom.policy(text=CONF, set={"run.title": "a"}) as p:
        assert (p.comm.rank, p.comm.ranks) == (rank, ranks) and loom.current() is p and "text" in repr(p)
        for dtype, numbers in NUMBERS.items():
            numbers = list(numbers)
            x = torch.tensor([v * (rank + 1) for v in numbers], dtype=dtype)
            assert loom.all_reduce(x) is x
            torch.cuda.synchronize()
            assert x.tolist() == [v * sum(range(1, ranks + 1)) for v in numbers], (dtype, x.tolist()[:5])
            y, out = torch.tensor([v * (rank + 1) for v in numbers], dtype=dtype), torch.tensor(numbers, dtype=dtype)
            loom.all_reduce(y, "max", out=out)
            torch.cuda.synchronize()
            assert out.tolist() == [max(v, v * ranks) for v in numbers]
            every = torch.tensor(numbers * ranks, dtype=dtype)
            mine = torch.tensor([v + rank for v in numbers], dtype=dtype)
            loom.all_gather(every, mine)
            torch.cuda.synchronize()
            assert every.tolist() == [v + r for r in range(ranks) for v in numbers]
            part = torch.tensor(numbers, dtype=dtype)
            whole = torch.tensor([v + r for r in range(ranks) for v in numbers], dtype=dtype)
            loom.reduce_scatter(part, whole)
            torch.cuda.synchronize()
            assert part.tolist() == [(v + rank) * ranks for v in numbers]
            loom.broadcast(part, src=ranks - 1)
            loom.barrier()
            torch.cuda.synchronize()
            assert part.tolist() == [(v + ranks - 1) * ranks for v in numbers]
        p.comm.check()
        future = loom.allreduce_hook(p.comm, Bucket(torch.tensor([float(rank)] * 100)))
        torch.cuda.synchronize()
        assert future.value().tolist() == [sum(range(ranks)) / ranks] * 100
        assert (future.devices is not None) == CUDA


def graph():
    rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
    with loom.policy(text=CONF):
        x, g = torch.tensor([1.0] * 10), torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            for _ in range(3):
                loom.all_reduce(x)
        assert x.tolist() == [1.0] * 10
        for n in range(4):
            g.replay()
        torch.cuda.synchronize()
        assert x.tolist() == [float(ranks ** 12)] * 10


def dies():
    with loom.policy(text=CONF) as p:
        x = torch.tensor([1.0] * 10)
        loom.all_reduce(x)
        torch.cuda.synchronize()
        if torch.distributed.get_rank() == 1:
            os._exit(0)
        begin = time.time()
        try:
            loom.all_reduce(x)
            torch.cuda.synchronize()
            p.comm.check()
        except gpuloom.Error as why:
            assert "rank 1 (process" in str(why) and time.time() - begin < 5, why
        else:
            raise AssertionError("a dead rank was not noticed")


def interrupted():
    """Rank 0 waits for rank 1, which makes no call, until a signal comes."""
    if torch.distributed.get_rank() == 1:
        with loom.policy(text=CONF):
            time.sleep(3)
        return
    with loom.policy(text=CONF) as p:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        begin = time.time()
        try:
            loom.all_reduce(torch.tensor([1.0]))
        except KeyboardInterrupt:
            assert time.time() - begin < 3
        else:
            raise AssertionError("not interrupted")
        p.stack.close()
        for call in (lambda: loom.all_reduce(torch.tensor([1.0])), p.comm.check, p.stack.enqueue):
            try:
                call()
            except gpuloom.Error as why:
                assert "closed" in str(why)
            else:
                raise AssertionError("a closed stack does not raise")


# ---- tests -------------------------------------------------------------------------------------------------------------------

def in_ranks(test, ranks, what):
    with tempfile.TemporaryDirectory() as store:
        started = [subprocess.Popen([sys.executable, __file__, what], stderr=subprocess.PIPE, text=True,
                                    env={**os.environ, "RANK": str(r), "WORLD_SIZE": str(ranks), "STAND_IN_STORE": store})
                   for r in range(ranks)]
        for rank in started:
            said = rank.communicate(timeout=100)[1]
            test.assertEqual((rank.returncode, said), (0, said), said)


class Ranks(unittest.TestCase):
    def test_collectives(self):
        in_ranks(self, 2, "collectives")
        if not CUDA:
            in_ranks(self, 3, "collectives")

    def test_dies(self):
        in_ranks(self, 2, "dies")

    @unittest.skipUnless(CUDA, "CPUs have no graphs")
    def test_graph(self):
        in_ranks(self, 2, "graph")

    @unittest.skipIf(CUDA, "the stream waits, not the call")
    def test_interrupted(self):
        in_ranks(self, 2, "interrupted")


class Alone(unittest.TestCase):
    @unittest.skipIf(CUDA, "the driver without a GPU runs no source")
    def test_tasks(self):
        with loom.Stack(text=CONF) as stack:
            scale = stack.function(SCALE, "scale")
            x, y = torch.tensor([float(i) for i in range(100)]), torch.tensor([5.0, 6.0])
            scale(x, 3, tasks=100)
            stack.enqueue()
            self.assertEqual(x.tolist(), [3.0 * i for i in range(100)])
            scale(y, -2, 0, 1)
            scale(x, 2, tasks=100)
            stack.enqueue()
            self.assertEqual((x.tolist()[:3], y.tolist()), ([0.0, 6.0, 12.0], [5.0, -12.0]))
            stack.release(x)
            with self.assertRaisesRegex(gpuloom.Error, "not adopted"):
                stack.release(x)
            with self.assertRaisesRegex(ValueError, "room for 4"):
                scale(1, 2, 3, 4, tasks=2)

    def test_refusals(self):
        with self.assertRaisesRegex(gpuloom.Error, "no policy is in force"):
            loom.all_reduce(torch.tensor([1.0]))
        with loom.policy(text=CONF, ranks=1) as p:
            x = torch.tensor([1.0, 2.0])
            loom.all_reduce(x)
            torch.cuda.synchronize()
            self.assertEqual(x.tolist(), [1.0, 2.0])
            for call, error, words in [
                    (lambda: loom.all_reduce(torch.tensor([1.0], dtype=torch.float64)), TypeError, "dtype torch.float64"),
                    (lambda: loom.all_reduce(torch.Tensor([1.0], contiguous=False)), ValueError, "not contiguous"),
                    (lambda: loom.all_reduce(x, "min"), ValueError, "supported are 'sum'"),
                    (lambda: loom.all_gather(torch.tensor([1.0]), x), ValueError, "1 elements, and tensor 2"),
                    (lambda: loom.broadcast(x, src=5), gpuloom.Error, "no rank 5")]:
                with self.assertRaisesRegex(error, words):
                    call()
            with loom.policy(text=CONF, collectives=False):
                with self.assertRaisesRegex(gpuloom.Error, "has no communicator"):
                    loom.barrier()
            self.assertIs(loom.current(), p)

        def broken(mine):
            raise KeyError("store")
        with loom.Stack(text=CONF) as stack, self.assertRaisesRegex(KeyError, "store"):
            loom.Comm(stack, rank=0, ranks=2, allgather=broken)


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1] in globals():
        globals()[sys.argv[1]]()
    else:
        unittest.main()
