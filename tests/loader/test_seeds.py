"""Bad seeds are refused by the constructor, by the name of its argument."""

import re

import numpy as np
import pytest
import torch
from torch_geometric.data import HeteroData

from tests.loader.batches import graph
from tests.samplers import graphs
from torch_gsample import NeighborSampler, ProgramSampler, SaintSampler
from torch_gsample.algorithms import graphsage
from torch_gsample.loader import (
    HGTLoader,
    LinkNeighborLoader,
    NeighborLoader,
    ShaDowKHopSampler,
)
from torch_gsample.storage import ChunkedGraph, RandomReadSampler

DATA, TYPED = graph(), graphs.heterogeneous()
STORES = graphs.as_stores(DATA)
TYPED_STORES = graphs.as_stores(TYPED)


def mask(size):
    return torch.ones(size, dtype=torch.bool)


def own(data):
    return ProgramSampler(data, graphsage, [2], seed=0)


#: Everybody who takes nodes of a homogeneous graph, by name and argument.
NODES = {
    'NeighborLoader input_nodes': lambda v: NeighborLoader(DATA, [2], v),
    'NeighborLoader input_nodes with a program': (
        lambda v: NeighborLoader(DATA, sampler=own(DATA), input_nodes=v)
    ),
    'NeighborLoader input_nodes with stores': (
        lambda v: NeighborLoader(
            STORES,
            [2],
            v if isinstance(v, (str, dict)) else torch.as_tensor(v),
        )
    ),
    'NeighborLoader input_nodes with types': (
        lambda v: NeighborLoader(typed_60(), [2], ('a', v))
    ),
    'HGTLoader input_nodes': lambda v: HGTLoader(typed_60(), [2], ('a', v)),
    'ShaDowKHopSampler node_idx': (lambda v: ShaDowKHopSampler(DATA, 1, 2, v)),
    'SaintSampler input_nodes': (
        lambda v: SaintSampler(DATA, 2, 1, batch_size=4, input_nodes=v)
    ),
}
BAD_NODES = {
    'negative': ([3, -1], IndexError, 'must be in [0, 60) (got -1)'),
    'too large': ([60], IndexError, 'must be in [0, 60) (got 60)'),
    'far too large': ([2**40], IndexError, f'[0, 60) (got {2**40})'),
    'float': ([1.5, 2.0], TypeError, 'must be int32 or int64 (got torch.fl'),
    'matrix': ([[1, 2]], ValueError, 'must be a vector (got shape [1, 2])'),
    'number': (3, ValueError, 'must be a vector (got shape [])'),
    'short mask': ([True] * 59, ValueError, 'must have 60 elements (got sha'),
    'long mask': ([True] * 61, ValueError, 'must have 60 elements (got shap'),
    'mask column': ([[True]] * 60, ValueError, '60 elements (got shape [60, '),
    'text': ('abc', None, 'must be'),
    'dictionary': ({'a': 1}, TypeError, 'must be a'),
}


def typed_60():
    data = HeteroData(a={'num_nodes': 60}, b={'num_nodes': 7})
    data['a', 'to', 'b'].edge_index = graphs.random_edges(60, 7, 20)
    return data


@pytest.mark.parametrize('kind', ['list', 'tensor'])
@pytest.mark.parametrize('bad', BAD_NODES)
@pytest.mark.parametrize('who', NODES)
def test_bad_nodes_are_refused_at_the_constructor(who, bad, kind):
    name, argument = who.split()[:2]
    value, error, text = BAD_NODES[bad]
    if kind == 'tensor' and not isinstance(value, (str, dict)):
        value = torch.tensor(value)
    errors = (TypeError, ValueError) if error is None else error
    with pytest.raises(errors, match=re.escape(text)) as raised:
        NODES[who](value)
    assert re.match(rf"{name}: (a mask )?'{argument}' ", str(raised.value))


#: What PyG takes for the nodes 1, 2 and 5.
GOOD_NODES = {
    'list': [1, 2, 5],
    'tuple': (1, 2, 5),
    'array': np.array([1, 2, 5], dtype=np.int16),
    'int64': torch.tensor([1, 2, 5]),
    'int32': torch.tensor([1, 2, 5], dtype=torch.int32),
    'list of numbers': [torch.tensor(1), torch.tensor(2), torch.tensor(5)],
    'mask': torch.isin(torch.arange(60), torch.tensor([1, 2, 5])),
    'mask of an array': np.isin(np.arange(60), [1, 2, 5]),
}


@pytest.mark.parametrize('good', GOOD_NODES)
@pytest.mark.parametrize('typed', [False, True])
def test_all_forms_of_nodes_work(typed, good):
    value = GOOD_NODES[good]
    data = typed_60() if typed else DATA
    loader = NeighborLoader(data, [2], ('a', value) if typed else value)
    batch = next(iter(loader))
    store = batch['a'] if typed else batch
    assert store.n_id[:1].tolist() == [1]
    assert len(loader) == 3
    is_mask = 'mask' in good
    assert store.input_id.tolist() == [1 if is_mask else 0]


@pytest.mark.parametrize('value', [[], range(3), None])
def test_few_or_all_nodes_are_seeds(value):
    count = 60 if value is None else len(value)
    assert NeighborLoader(DATA, [2], value).input_data.node.numel() == count
    loader = NeighborLoader(typed_60(), [2], ['a', value])
    assert loader.input_data.node.numel() == count


def test_node_types_are_seeds():
    for value in ('b', ('b', None)):
        for data in (typed_60(), TYPED_STORES):
            value = 'item' if data is TYPED_STORES else value
            loader = NeighborLoader(data, [2], value, batch_size=20)
            size = 15 if data is TYPED_STORES else 7
            assert loader.input_data.node.tolist() == list(range(size))


FORM = "'input_nodes' must be a node type or a pair (node type, nodes)"
BAD_TYPES = {
    'none': (None, ValueError, f'{FORM} (got None)'),
    'no pair': (torch.tensor([1]), TypeError, f'{FORM} (got Tensor)'),
    'ids': ([0, 1], TypeError, f'{FORM} (got list)'),
    'three': (('a', 1, 2), TypeError, f'{FORM} (got tuple)'),
    'type': ('x', ValueError, "must be of a node type of the graph, ['a', "),
    'pair': (('x', [1]), ValueError, "['a', 'b'] (got 'x')"),
    'mask': (('b', mask(60)), ValueError, 'must have 7 elements (got shape'),
}


@pytest.mark.parametrize('bad', BAD_TYPES)
@pytest.mark.parametrize('loader', [NeighborLoader, HGTLoader])
def test_bad_node_types_are_refused_at_the_constructor(loader, bad):
    value, error, text = BAD_TYPES[bad]
    with pytest.raises(error, match=re.escape(text)) as raised:
        loader(typed_60(), [2], value)
    start = rf"{loader.__name__}: (a mask )?'input_nodes' must "
    assert re.match(start, str(raised.value))


def test_stores_without_types_need_nodes():
    with pytest.raises(ValueError, match="'input_nodes' must be a node type"):
        NeighborLoader(STORES, [2])


def test_a_sampler_on_disk_says_how_many_nodes_there_are(tmp_path):
    chunks = ChunkedGraph.write(tmp_path / 'graph', DATA.edge_index)
    sampler = RandomReadSampler(chunks, [2], seed=0)
    size = sampler.graph.counts[None]
    with pytest.raises(ValueError, match=f'must have {size} elements'):
        NeighborLoader(DATA, sampler=sampler, input_nodes=mask(size + 1))


def test_a_sampler_does_not_replace_a_graph():
    for loader in (NeighborLoader, LinkNeighborLoader):
        with pytest.raises(ValueError, match="'data' must be a Data"):
            loader(None, sampler=NeighborSampler(DATA, [2]))
