"""Batch after batch, nothing of a sample is left in memory."""

import gc
import resource
from functools import partial
from pathlib import Path

import pytest
import torch

from tests.cuda.gpu import Gpu
from tests.cuda.graphs import skewed_graph, some_seeds
from tests.ops.neighbors import call_one
from torch_gsample.rng import make_key

WARM_UP = 40
ROOM = 2**16  # bytes that come and go


def calls(cuda):
    """Operators that allocate for the worst case, of a small graph."""
    graph, seeds = skewed_graph(0), some_seeds(0)[:4]
    sample = partial(call_one, cuda.operator('sample_neighbors'))
    layers = cuda.operator('sample_layers')
    of = [*graph], [0, 0], [80], [seeds], [3, 2]
    yield lambda key: sample(*graph, seeds, [3, 2], key)
    yield lambda key: layers(*of, [key] * 2, [0, 1])
    yield lambda key: layers(*of, [key] * 2, [0, 1], disjoint=True)


def used(cuda):
    """Bytes of the process, or of the GPU."""
    gc.collect()
    if isinstance(cuda, Gpu):
        return torch.cuda.memory_allocated()
    pages = int(Path('/proc/self/statm').read_text().split()[1])
    return pages * resource.getpagesize()


def assert_flat(cuda, call, batches):
    """What a call leaves grows each time, pages of the allocator only once."""
    grown = []
    while len(grown) < 3 and min(grown, default=ROOM) >= ROOM:
        before = used(cuda)
        for i in range(batches):
            call(i)
        grown.append(used(cuda) - before)
    assert min(grown) < ROOM, grown


@pytest.mark.parametrize(
    'operator', [0, 1, 2], ids=['neighbors', 'hops', 'layers']
)
def test_memory_stays_flat(cuda, operator):
    cuda.configure(1, 1, 32, 0)
    call = list(calls(cuda))[operator]
    for i in range(WARM_UP):
        call(make_key(0, 1, i))
    batches = 10_000 if isinstance(cuda, Gpu) else 260
    assert_flat(cuda, lambda i: call(make_key(0, 0, i)), batches)
