"""Documented options are accepted: lists of them are compared, not copied."""

import inspect
import re

import pytest
import torch
from torch.utils.data import DataLoader, SequentialSampler
from torch_geometric import loader as pyg_loader

from tests.samplers import graphs
from torch_gsample import KeyedSampler, NeighborSampler, options, patch
from torch_gsample import loader as loaders
from torch_gsample import samplers as samplers_module
from torch_gsample.loader import neighbor_loader
from torch_gsample.samplers.neighbor.bidirectional import (
    BidirectionalNeighborSampler,
)
from torch_gsample.storage import (
    ChunkedGraph,
    RandomReadSampler,
    StreamingSampler,
)
from torch_gsample.storage.sampler import DiskSampler

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
    'time_bound': 'batch',
    'time_inclusive': 'left',
    'index_dtype': torch.int64,
    'num_threads': 1,
    'order': 'random',
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


def parameters(cls):
    return inspect.signature(cls).parameters


def documented(cls, linked=False):
    """The names in the ``Args`` of a class, and of those it refers to."""
    sections = [
        re.search(r'\n *Args:\n(.*?)(\n\n|\Z)', base.__doc__ or '', re.S)
        for base in cls.__mro__
    ]
    section = next(filter(None, sections)).group(1)
    found = re.findall(r'^(\w+) \(', inspect.cleandoc('\n' + section), re.M)
    if not linked:
        return set(found)
    found += re.findall(r'``(\w+)``', section)
    for name in set(re.findall(r':class:`([\w.]+)`', section)):
        other = NAMED.get(name, cls)
        if other is DataLoader:
            found += parameters(other)
        elif other is not cls:
            found += documented(other, linked=True)
    return set(found)


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
    given = {option: OF_NEIGHBOR_SAMPLER[option]}
    if option.startswith('time_'):
        given |= {'time_attr': 'time', **seed_edges(name)}
    data = sorted_by_destination()
    loader = getattr(loaders, name)(data, [2], batch_size=9, **given)
    assert got[option] == OF_NEIGHBOR_SAMPLER[option]
    assert next(iter(loader)).n_id.numel() > 0


def test_the_tables_of_options_are_complete():
    for cls, table, other in (
        (NeighborSampler, OF_NEIGHBOR_SAMPLER, {'data', 'num_neighbors'}),
        (
            samplers_module.HGTSampler,
            OF_PROGRAM_SAMPLER,
            {'data', 'num_samples', 'is_sorted', 'time_attr', 'max_time'},
        ),
    ):
        assert parameters(cls).keys() == set(table) | other


NO_LOADER = 'BatchShape'
CLASSES = [
    *(getattr(loaders, name) for name in loaders.__all__ if name != NO_LOADER),
    *(getattr(samplers_module, name) for name in samplers_module.__all__),
    BidirectionalNeighborSampler,
    RandomReadSampler,
    StreamingSampler,
]
NAMED = {
    **{cls.__name__: cls for cls in (*CLASSES, DiskSampler)},
    'torch.utils.data.DataLoader': DataLoader,
}
NAMES = {'ids': lambda value: getattr(value, '__name__', None)}


@pytest.mark.parametrize('cls', CLASSES, **NAMES)
def test_arguments_of_constructors_are_documented(cls):
    taken = parameters(cls).keys() - {'program_kwargs'}
    assert documented(cls) <= taken
    assert taken <= documented(cls, linked=True)


@pytest.mark.parametrize(
    ('table', 'cls'),
    [
        (options.KeyOptions, KeyedSampler),
        (options.NeighborOptions, NeighborSampler),
        (options.DiskOptions, DiskSampler),
        (options.ForwardedOptions, NeighborSampler),
        (options.ProgramOptions, samplers_module.ProgramSampler),
    ],
    **NAMES,
)
def test_option_tables_equal_constructor_arguments(table, cls):
    taken = parameters(cls)
    for name, kind in table.__annotations__.items():
        assert taken[name].annotation == kind
    own = {n for n, p in taken.items() if p.kind is p.KEYWORD_ONLY}
    missing = own - table.__annotations__.keys()
    assert missing == ({'disjoint'} if cls.__name__[0] == 'P' else set())


@pytest.mark.parametrize(('theirs', 'ours'), patch._OURS.items(), **NAMES)
def test_constructors_have_the_arguments_of_pyg_in_order(theirs, ours):
    expected = parameters(theirs).values()
    for own, other in zip(parameters(ours).values(), expected, strict=False):
        if other.kind is not other.VAR_KEYWORD:
            assert (own.name, own.kind) == (other.name, other.kind)
            assert own.default in (other.default, None)


@pytest.mark.parametrize(
    ('theirs', 'ours'),
    [
        (DataLoader, loaders.NeighborLoader),
        (DataLoader, loaders.WalkLoader),
        (pyg_loader.NodeLoader, loaders.NeighborLoader),
        (pyg_loader.NodeLoader, loaders.HGTLoader),
        (pyg_loader.LinkLoader, loaders.LinkNeighborLoader),
    ],
    **NAMES,
)
def test_loaders_accept_the_arguments_of_their_bases(theirs, ours):
    own = {'node_sampler', 'link_sampler', 'kwargs'}
    assert parameters(theirs).keys() - own <= parameters(ours).keys()


@pytest.mark.parametrize(
    ('cls', 'wrong', 'right'),
    [
        (loaders.NeighborLoader, 'num_neighbor', 'num_neighbors'),
        (loaders.LinkNeighborLoader, 'neg_sample', 'neg_sampling'),
        (loaders.HGTLoader, 'num_worker', 'num_workers'),
        (loaders.ShaDowKHopSampler, 'persistent_worker', 'persistent_workers'),
        (loaders.GraphSAINTNodeSampler, 'sample_cover', 'sample_coverage'),
        (loaders.WalkLoader, 'batchsize', 'batch_size'),
        (NeighborSampler, 'sed', 'seed'),
        (samplers_module.LadiesSampler, 'normalisation', 'normalization'),
        (RandomReadSampler, 'cachebytes', 'cache_bytes'),
    ],
    **NAMES,
)
def test_an_unknown_argument_is_told_with_the_nearest(cls, wrong, right):
    start = f'^{cls.__name__}: unknown argument '
    with pytest.raises(
        TypeError, match=rf"{start}'{wrong}' \(did you mean '{right}'\?\)$"
    ):
        cls(DATA, 2, **{wrong: 1})
    with pytest.raises(TypeError, match=rf"{start}'zzz'$"):
        cls(DATA, 2, zzz=1)


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


@pytest.mark.parametrize('name', LOADERS)
def test_loaders_accept_all_documented_arguments(name):
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
    assert loader._epochs.shard.rank == 1
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
def test_ready_samplers_accept_forwarded_options(name, option):
    data = TYPED if name == 'HGTSampler' else DATA
    kwargs = {option: OF_PROGRAM_SAMPLER[option]}
    getattr(samplers_module, name)(data, READY[name], **kwargs)


@pytest.mark.parametrize('option', OF_DISK_SAMPLER)
@pytest.mark.parametrize('cls', [RandomReadSampler, StreamingSampler])
def test_samplers_on_disk_take_the_options_of_both(tmp_path, cls, option):
    graph = ChunkedGraph.write(tmp_path / 'graph', DATA.edge_index)
    cls(graph, [2], **{option: OF_DISK_SAMPLER[option]})
