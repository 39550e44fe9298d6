"""Batches leave nothing behind in the memory of malloc."""

import ctypes
import gc
import itertools

import pytest
import torch

import torch_gsample.loader
from tests.ops.compare import operator_names
from tests.samplers import graphs
from tests.storage import disk
from torch_gsample import NeighborSampler
from torch_gsample.loader import (
    GraphSAINTEdgeSampler,
    GraphSAINTNodeSampler,
    GraphSAINTRandomWalkSampler,
    HGTLoader,
    LastNeighborLoader,
    LinkLoader,
    LinkNeighborLoader,
    NeighborLoader,
    NodeLoader,
    ShaDowKHopSampler,
)
from torch_gsample.nn import Node2Vec
from torch_gsample.storage import RandomReadSampler

BATCHES = 200
#: Where a batch takes long, which many operators do.
FEW_BATCHES = {'HGTLoader': 20, 'NeighborLoader from disk': 50}
OPTIONS = {'batch_size': 2, 'prefetch': 0, 'seed': 0}
LOADING = {'batch_size': 2, 'prefetch': 0}
SAINT = {'batch_size': 4, 'num_steps': 50, 'log': False}


class Counts(ctypes.Structure):
    """What mallinfo2() returns."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *('arena', 'ordblks', 'smblks', 'hblks', 'hblkhd', 'usmblks'),
            *('fsmblks', 'uordblks', 'fordblks', 'keepcost'),
        )
    ]


def used():
    """The bytes that malloc has given out."""
    gc.collect()
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = Counts
    counts = mallinfo2()
    return counts.uordblks + counts.hblkhd


def small():
    return graphs.homogeneous(num_nodes=40, num_edges=120)


def temporal():
    data = small()
    data.time = torch.arange(120)
    times = torch.arange(40) * 3
    return NeighborLoader(
        *(data, [2, 2]),
        time_attr='time',
        input_time=times,
        temporal_strategy='last',
        **OPTIONS,
    )


def from_disk(folder):
    data = small()
    graph = disk.write(folder / 'graph', data)
    sampler = RandomReadSampler(graph, [2, 2], seed=0)
    return NeighborLoader(data, sampler=sampler, batch_size=2, prefetch=0)


def last_neighbors(_):
    """An epoch of a temporal graph network: events are looked up and added."""
    src, dst = small().edge_index[:, :40]
    loader = LastNeighborLoader(small().num_nodes, size=2)
    for i in itertools.count():
        if i % 20 == 0:
            loader.reset_state()
        part = slice(i % 20 * 2, i % 20 * 2 + 2)
        yield loader(torch.cat([src[part], dst[part]]))
        loader.insert(src[part], dst[part])


LOADERS = {
    'NeighborLoader': lambda _: NeighborLoader(small(), [2, 2], **OPTIONS),
    'NeighborLoader in a thread': lambda _: NeighborLoader(
        small(), [2, 2], **{**OPTIONS, 'prefetch': 2}
    ),
    'NeighborLoader by time': lambda _: temporal(),
    'NeighborLoader of types': lambda _: NeighborLoader(
        graphs.heterogeneous(), [2, 2], input_nodes='item', **OPTIONS
    ),
    'NeighborLoader from disk': from_disk,
    'LinkNeighborLoader': lambda _: LinkNeighborLoader(
        small(), [2, 2], neg_sampling='binary', **OPTIONS
    ),
    'NodeLoader shuffled': lambda _: NodeLoader(
        small(),
        NeighborSampler(small(), [2, 2], seed=0),
        shuffle=True,
        **LOADING,
    ),
    'LinkLoader': lambda _: LinkLoader(
        small(), NeighborSampler(small(), [2, 2], seed=0), **LOADING
    ),
    'HGTLoader': lambda _: HGTLoader(
        graphs.heterogeneous(), [3, 3], input_nodes='item', **OPTIONS
    ),
    'ShaDowKHopSampler': lambda _: ShaDowKHopSampler(
        small(), depth=2, num_neighbors=2, **OPTIONS
    ),
    'GraphSAINTSampler': lambda _: GraphSAINTNodeSampler(small(), **SAINT),
    'GraphSAINTNodeSampler': lambda _: GraphSAINTNodeSampler(small(), **SAINT),
    'GraphSAINTEdgeSampler': lambda _: GraphSAINTEdgeSampler(small(), **SAINT),
    'GraphSAINTRandomWalkSampler': lambda _: GraphSAINTRandomWalkSampler(
        small(), walk_length=2, **SAINT
    ),
    'LastNeighborLoader': last_neighbors,
    'WalkLoader': lambda _: Node2Vec(
        small().edge_index, 4, walk_length=4, context_size=2
    ).loader(batch_size=2),
}


def read(loader, batches):
    """Reads some batches, in as many epochs as that takes."""
    epochs = itertools.chain.from_iterable(itertools.repeat(loader))
    for _ in itertools.islice(epochs, batches):
        pass


@pytest.mark.parametrize('name', LOADERS)
def test_batches_leave_no_memory_behind(tmp_path, name):
    loader = LOADERS[name](tmp_path)
    batches = FEW_BATCHES.get(name, BATCHES)
    growth = []
    while len(growth) < 8 and not (growth and growth[-1] < 24 * batches):
        before = used()
        read(loader, batches)
        growth.append(used() - before)
    # A string took 48 bytes in each call; a cache grows once.
    assert growth[-1] < 24 * batches, growth


def test_every_loader_is_measured():
    names = {name.split()[0] for name in LOADERS}
    assert names == set(torch_gsample.loader.__all__) - {
        'BatchShape',
        'ClusterData',
    }


def test_no_operator_takes_a_string():
    """Torch loses the memory of those that cross the stable ABI."""
    for name in operator_names():
        schema = getattr(torch.ops.gsample, name).default._schema
        assert not [a for a in schema.arguments if 'str' in str(a.type)], name
