# SPDX-License-Identifier: Apache-2.0
"""Ranks that exchange objects by files in the folder $STAND_IN_STORE."""
import itertools
import os
import pickle
import time

from . import cuda

_number = itertools.count()


def get_rank(group=None):
    return int(os.environ["RANK"])


def get_world_size(group=None):
    return int(os.environ["WORLD_SIZE"])


def all_gather_object(out, mine, group=None):
    if cuda.is_available() and not hasattr(cuda._thread, "device"):
        raise RuntimeError("all ranks use device 0 in this thread")  # which NCCL rejects
    name = os.path.join(os.environ["STAND_IN_STORE"], "%d-%%d" % next(_number))
    with open(name % get_rank() + ".new", "wb") as f:
        pickle.dump(mine, f)
    os.rename(name % get_rank() + ".new", name % get_rank())
    for rank in range(len(out)):
        while not os.path.exists(name % rank):
            time.sleep(0.001)
        with open(name % rank, "rb") as f:
            out[rank] = pickle.load(f)
