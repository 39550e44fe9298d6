"""Documented options are accepted: lists of them are compared, not copied."""

import inspect
import re

import pytest
import torch
from torch.utils.data import SequentialSampler

from tests.samplers import graphs
from torch_gsample import NeighborSampler
from torch_gsample import loader as loaders
from torch_gsample import samplers as samplers_module
from torch_gsample.loader import neighbor_loader
from torch_gsample.storage import (
    ChunkedGraph,
    RandomReadSampler,
    StreamingSampler,
)

DATA = graphs.homogeneous(
    time=torch.zeros(30, dtype=torch.long), weight=torch.ones(150)
)
TYPED = graphs.heterogeneous()

#: A value of each option of a neighbour sampler, none of them the default.
OF_NEIGHBOR_SAMPLER = {
    'subgraph_type': 'induced',
    'replace': True,
    'disjoint': True,
    'temporal_strategy': 'last',
    'time_attr': 'time',
    'weight_attr': 'weight',
    'is_sorted': True,
    'share_memory': True,
    'directed': False,
    'sample_direction': 'backward',
    'seed': 3,
    'rng_scope': 'epoch',
    'time_window': 2,
    'index_dtype': torch.int64,
    'num_threads': 1,
    'exclude_seed_edges': 'reverse',
    'true_negatives': True,
    'device': torch.device('cpu'),
    'graph_placement': 'gpu',
    'cache_bytes': 10,
}
#: The same of what ready samplers pass on to a program sampler.
OF_PROGRAM_SAMPLER = {
    'seed': 3,
    'rng_scope': 'epoch',
    'share_memory': True,
    'true_negatives': True,
    'exclude_seed_edges': 'reverse',
    'compile': True,
    'options': {'strict': True},
}
OF_DISK_SAMPLER = {
    'subgraph_type': 'bidirectional',
    'replace': True,
    'disjoint': True,
    'temporal_strategy': 'last',
    'use_weights': False,
    'use_times': False,
    'seed': 3,
    'rng_scope': 'epoch',
    'num_threads': 1,
}
OF_ALL_LOADERS = {'rank': 1, 'world_size': 2, 'num_workers': 0}


def keywords(cls):
    """The names of a constructor's arguments, but for ``**kwargs``."""
    return {
        name
        for name, p in inspect.signature(cls).parameters.items()
        if p.kind is not p.VAR_KEYWORD
    }


def documented(cls):
    """The names in the ``Args`` section of a class, or of what it extends."""
    sections = [
        re.search(r'\n *Args:\n(.*?)(\n\n|\Z)', base.__doc__ or '', re.S)
        for base in cls.__mro__
    ]
    section = next(filter(None, sections))
    text = inspect.cleandoc('\n' + section.group(1))
    return set(re.findall(r'^(\w+) \(', text, re.M))


def seed_edges(name):
    needed = name == 'LinkNeighborLoader'
    return {'edge_label_time': torch.zeros(150).long()} if needed else {}


def sorted_by_destination():
    data = DATA.clone()
    order = data.edge_index[1].argsort(stable=True)
    data.edge_index = data.edge_index[:, order]
    return data


@pytest.mark.parametrize('option', OF_NEIGHBOR_SAMPLER)
@pytest.mark.parametrize('name', ['NeighborLoader', 'LinkNeighborLoader'])
def test_loaders_take_each_option_of_their_sampler(monkeypatch, name, option):
    got = {}

    class Noting(NeighborSampler):
        def __init__(self, *args, **kwargs):
            got.update(kwargs)
            super().__init__(*args, **kwargs)

    monkeypatch.setattr(neighbor_loader, 'NeighborSampler', Noting)
    options = {option: OF_NEIGHBOR_SAMPLER[option]}
    if option in ('time_window', 'time_attr'):
        options |= {'time_attr': 'time', **seed_edges(name)}
    data = sorted_by_destination()
    loader = getattr(loaders, name)(data, [2], batch_size=9, **options)
    assert got[option] == OF_NEIGHBOR_SAMPLER[option]
    assert next(iter(loader)).n_id.numel() > 0


def test_the_tables_of_options_are_complete():
    for cls, table, other in (
        (NeighborSampler, OF_NEIGHBOR_SAMPLER, {'data', 'num_neighbors'}),
        (
            samplers_module.HGTSampler,
            OF_PROGRAM_SAMPLER,
            {'data', 'num_samples', 'is_sorted'},
        ),
    ):
        assert keywords(cls) == set(table) | other


CLASSES = [
    *(getattr(loaders, name) for name in loaders.__all__ if name[0].isupper()),
    *(getattr(samplers_module, name) for name in samplers_module.__all__),
    RandomReadSampler,
    StreamingSampler,
]


@pytest.mark.parametrize('cls', CLASSES, ids=lambda cls: cls.__name__)
def test_what_a_constructor_takes_is_documented(cls):
    extra = {'args'} if issubclass(cls, NeighborSampler) else set()
    assert keywords(cls) - extra <= documented(cls) | extra


LOADERS = {
    'NeighborLoader': lambda **k: loaders.NeighborLoader(DATA, [2], **k),
    'LinkNeighborLoader': lambda **k: loaders.LinkNeighborLoader(
        DATA, [2], **k
    ),
    'HGTLoader': lambda **k: loaders.HGTLoader(TYPED, [2], 'user', **k),
    'ShaDowKHopSampler': lambda **k: loaders.ShaDowKHopSampler(
        DATA, 1, 2, **k
    ),
    'GraphSAINTNodeSampler': lambda **k: loaders.GraphSAINTNodeSampler(
        DATA, 4, **k
    ),
    'GraphSAINTEdgeSampler': lambda **k: loaders.GraphSAINTEdgeSampler(
        DATA, 4, **k
    ),
    'GraphSAINTRandomWalkSampler': (
        lambda **k: loaders.GraphSAINTRandomWalkSampler(DATA, 4, 2, **k)
    ),
    'WalkLoader': lambda **k: loaders.WalkLoader(30, list, **k),
}
#: Documented arguments that a constructor finds in its ``**kwargs``.
IN_KWARGS = {'rank', 'world_size'}


@pytest.mark.parametrize('name', LOADERS)
def test_loaders_take_what_they_document(name):
    cls = getattr(loaders, name)
    assert documented(cls) - keywords(cls) <= IN_KWARGS
    kwargs = {'seed': 0, 'rank': 1, 'world_size': 2}
    of_torch = {
        'num_workers': 0,
        'drop_last': True,
        'timeout': 0,
        'pin_memory': False,
        'generator': torch.Generator(),
        'worker_init_fn': print,
        'persistent_workers': False,
        'in_order': True,
    }
    loader = LOADERS[name](**kwargs, **of_torch)
    for option in ('timeout', 'drop_last', 'generator'):
        assert getattr(loader, option) == of_torch[option]
    assert loader._shard.rank == 1
    LOADERS[name](sampler=SequentialSampler(range(4)))


READY = {
    'LadiesSampler': [2],
    'FastGCNSampler': [2],
    'LaborSampler': [2],
    'PinSAGESampler': [2],
    'ShaDowSampler': [2],
    'SaintSampler': 2,
    'HGTSampler': [2],
}


@pytest.mark.parametrize('option', OF_PROGRAM_SAMPLER)
@pytest.mark.parametrize('name', READY)
def test_ready_samplers_take_what_they_pass_on(name, option):
    data = TYPED if name == 'HGTSampler' else DATA
    kwargs = {option: OF_PROGRAM_SAMPLER[option]}
    getattr(samplers_module, name)(data, READY[name], **kwargs)


@pytest.mark.parametrize('option', OF_DISK_SAMPLER)
@pytest.mark.parametrize('cls', [RandomReadSampler, StreamingSampler])
def test_samplers_on_disk_take_the_options_of_both(tmp_path, cls, option):
    graph = ChunkedGraph.write(tmp_path / 'graph', DATA.edge_index)
    cls(graph, [2], **{option: OF_DISK_SAMPLER[option]})
