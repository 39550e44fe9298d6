"""Options that were taken for true, and graphs and hops that sample nothing.

Each is refused by the constructor of each sampler that takes it.
"""

import re

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.sampler import NumNeighbors

from tests.samplers import graphs
from tests.samplers.graphs import RATES
from torch_gsample import (
    FastGCNSampler,
    HGTSampler,
    LaborSampler,
    LadiesSampler,
    NeighborSampler,
    PinSAGESampler,
    ProgramSampler,
    SaintSampler,
    ShaDowSampler,
)
from torch_gsample.algorithms import graphsage
from torch_gsample.loader import LinkNeighborLoader, NeighborLoader
from torch_gsample.storage import (
    ChunkedGraph,
    RandomReadSampler,
    StreamingSampler,
)

DATA, TYPED = graphs.homogeneous(), graphs.heterogeneous()
OF_ALL = ('share_memory', 'true_negatives')
OF_PROGRAMS = (*OF_ALL, 'compile')
#: Each sampler, and those of its options that are true or false.
FLAGS = {
    NeighborSampler: (
        lambda **k: NeighborSampler(DATA, [2], **k),
        (*OF_ALL, 'replace', 'disjoint', 'is_sorted', 'directed'),
    ),
    ProgramSampler: (
        lambda **k: ProgramSampler(DATA, graphsage, [2], **k),
        (*OF_PROGRAMS, 'own_edges', 'disjoint', 'is_sorted'),
    ),
    HGTSampler: (
        lambda **k: HGTSampler(TYPED, [2], **k),
        (*OF_PROGRAMS, 'is_sorted'),
    ),
    LadiesSampler: (
        lambda **k: LadiesSampler(DATA, [2], **k),
        (*OF_PROGRAMS, 'replace', 'normalize'),
    ),
    FastGCNSampler: (lambda **k: FastGCNSampler(DATA, [2], **k), OF_PROGRAMS),
    LaborSampler: (
        lambda **k: LaborSampler(DATA, [2], **k),
        (*OF_PROGRAMS, 'normalize'),
    ),
    PinSAGESampler: (lambda **k: PinSAGESampler(DATA, [2], **k), OF_PROGRAMS),
    ShaDowSampler: (
        lambda **k: ShaDowSampler(DATA, [2], **k),
        (*OF_PROGRAMS, 'replace'),
    ),
    SaintSampler: (lambda **k: SaintSampler(DATA, 2, **k), OF_PROGRAMS),
}
CASES = [(cls, flag) for cls, (_, flags) in FLAGS.items() for flag in flags]


def name_of(value):
    return getattr(value, '__name__', str(value))


@pytest.mark.parametrize(
    'value', ['last', [1, 2], 2, 1.0, None, torch.ones(2)], ids=str
)
@pytest.mark.parametrize(('cls', 'flag'), CASES, ids=name_of)
def test_rejects_flags_that_are_not_bool(cls, flag, value):
    text = f"{cls.__name__}: '{flag}' must be True or False (got {value!r})"
    with pytest.raises(TypeError, match=f'^{re.escape(text)}'):
        FLAGS[cls][0](**{flag: value})


@pytest.mark.parametrize('value', [True, 1, np.True_], ids=repr)
@pytest.mark.parametrize('flag', ['replace', 'disjoint'])
def test_flags_accept_truthy_values_of_pyg(flag, value):
    sampler = NeighborSampler(DATA, [2, 2], seed=0, **{flag: value})
    expected = NeighborSampler(DATA, [2, 2], seed=0, **{flag: True})
    out, same = (
        s.sample_from_nodes(graphs.nodes([3, 5])) for s in (sampler, expected)
    )
    assert torch.equal(out.edge, same.edge)


@pytest.mark.parametrize('cls', [RandomReadSampler, StreamingSampler])
@pytest.mark.parametrize(
    'flag', ['replace', 'disjoint', 'use_weights', 'use_times']
)
def test_samplers_on_disk_refuse_it_as_well(tmp_path, cls, flag):
    graph = ChunkedGraph.write(tmp_path / 'graph', DATA.edge_index)
    text = rf"^{cls.__name__}: '{flag}' must be True or False \(got 'last'\)"
    with pytest.raises(TypeError, match=text):
        cls(graph, [2], **{flag: 'last'})


NO_HOPS = r"^NeighborSampler: 'num_neighbors' must have a number for each hop"
TAKERS = {
    'sampler': NeighborSampler,
    'loader': lambda data, hops: NeighborLoader(
        data, hops, 'user' if isinstance(data, HeteroData) else None
    ),
    'link_loader': lambda data, hops: LinkNeighborLoader(
        data, hops, RATES if isinstance(data, HeteroData) else None
    ),
}


@pytest.mark.parametrize('who', TAKERS)
@pytest.mark.parametrize(
    ('data', 'hops'),
    [
        (DATA, []),
        (DATA, ()),
        (DATA, NumNeighbors([])),
        (TYPED, []),
        (TYPED, graphs.each(TYPED, [])),
        (TYPED, NumNeighbors({}, default=[])),
    ],
    ids=str,
)
def test_a_hop_at_least_is_sampled_where_there_are_edges(who, data, hops):
    with pytest.raises(ValueError, match=NO_HOPS):
        TAKERS[who](data, hops)


def test_no_hops_can_be_set_later_or_be_of_a_graph_on_disk(tmp_path):
    sampler = NeighborSampler(DATA, [2])
    with pytest.raises(ValueError, match=NO_HOPS):
        sampler.num_neighbors = []
    assert sampler.num_neighbors.values == [2]
    graph = ChunkedGraph.write(tmp_path / 'graph', DATA.edge_index)
    with pytest.raises(ValueError, match=NO_HOPS):
        RandomReadSampler(graph, [])


def test_each_edge_type_has_a_list_of_hops():
    text = r"'num_neighbors' must have a list for each edge type \(got 2\)"
    with pytest.raises(TypeError, match=text):
        NeighborSampler(TYPED, dict.fromkeys(TYPED.edge_types, 2))


NO_EDGES = "'data' must have edges, as 'edge_index', 'adj_t' or 'adj'"
WITHOUT = {
    'homogeneous': Data(x=torch.ones(5, 2)),
    'typed': HeteroData(user={'x': torch.ones(5, 2)}),
}
SAMPLERS = {
    'NeighborSampler': lambda data: NeighborSampler(data, [2]),
    'ProgramSampler': lambda data: ProgramSampler(data, graphsage, [2]),
    'LadiesSampler': lambda data: LadiesSampler(data, [2]),
    'ShaDowSampler': lambda data: ShaDowSampler(data, [2]),
    'SaintSampler': lambda data: SaintSampler(data, 2),
}


@pytest.mark.parametrize(
    ('name', 'data'),
    [
        *((name, 'homogeneous') for name in SAMPLERS),
        *((name, 'typed') for name in SAMPLERS if name != 'ShaDowSampler'),
    ],
)
def test_data_without_edges_is_refused(name, data):
    with pytest.raises(ValueError, match=f'^{name}: {NO_EDGES}'):
        SAMPLERS[name](WITHOUT[data])


def test_stores_without_edges_are_refused():
    features, _ = graphs.as_stores(DATA)
    empty = graphs.as_stores(TYPED)[1]
    for attr in empty.get_all_edge_attrs():
        empty.remove_edge_index(attr)
    with pytest.raises(ValueError, match=f'^NeighborSampler: {NO_EDGES}'):
        NeighborSampler((features, empty), [2])


def test_hops_that_are_set_later_need_edges():
    sampler = NeighborSampler(WITHOUT['homogeneous'], [])
    with pytest.raises(ValueError, match=NO_EDGES):
        sampler.num_neighbors = [2]


def test_an_edge_type_without_edges_is_named():
    data = graphs.heterogeneous()
    del data[RATES].edge_index
    text = r"NeighborSampler: \('user', .*, 'item'\) must have an 'edge_index'"
    with pytest.raises(ValueError, match=text):
        NeighborSampler(data, [2])


def test_an_edge_index_may_be_empty():
    data = Data(edge_index=torch.empty(2, 0).long(), num_nodes=3)
    sampler = NeighborSampler(data, [2])
    assert sampler.sample_from_nodes(graphs.nodes([1])).node.tolist() == [1]
