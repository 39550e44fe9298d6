"""Bad seed edges are refused by the constructor."""

import re

import pytest
import torch
from torch_geometric.data import Data

from tests.loader.batches import graph
from tests.samplers import graphs
from tests.samplers.graphs import RATES
from torch_gsample.loader import LinkNeighborLoader

DATA, TYPED = graph(), graphs.heterogeneous()
STORES = graphs.as_stores(DATA)
TYPED_STORES = graphs.as_stores(TYPED)


def edges(*pairs, dtype=torch.int64):
    return torch.tensor(pairs, dtype=dtype).t()


START = "LinkNeighborLoader: 'edge_label_index' must "
EDGE_FORM = "'edge_label_index' must be an edge type or a pair (edge type,"
BAD_EDGES = {
    'rows': (torch.zeros(7, 2).long(), ValueError, 'es] (got [7, 2])'),
    'vector': (torch.zeros(4).long(), ValueError, '[2, num_edges] (got [4])'),
    'negative': (edges((3, -1)), IndexError, 'must be in [0, 15) (got -1)'),
    'source': (edges((12, 1)), IndexError, 'must be in [0, 12) (got 12)'),
    'target': (edges((3, 15)), IndexError, 'must be in [0, 15) (got 15)'),
    'float': (torch.ones(2, 3), TypeError, 'must be int32 or int64 (got'),
    'mask': (
        torch.ones(2, 3).bool(),
        TypeError,
        'int32 or int64 (got torch.bool)',
    ),
    'list': ([[1, 2], [3, 4]], TypeError, 'must be a tensor (got list)'),
}


@pytest.mark.parametrize('bad', BAD_EDGES)
@pytest.mark.parametrize('typed', [False, True])
def test_bad_seed_edges_are_refused_at_the_constructor(typed, bad):
    value, error, text = BAD_EDGES[bad]
    data = TYPED
    if not typed:
        data = Data(edge_index=TYPED[RATES].edge_index, num_nodes=15)
        text = text.replace('12)', '15)').replace('got 12', 'got')
        value = edges((15, 1)) if bad == 'source' else value
    with pytest.raises(error, match=re.escape(text)) as raised:
        LinkNeighborLoader(data, [2], (RATES, value) if typed else value)
    assert str(raised.value).startswith(START)


BAD_EDGE_TYPES = {
    'none': (None, ValueError, f'{EDGE_FORM} edges of shape [2, num'),
    'tensor': (edges((0, 1)), TypeError, EDGE_FORM),
    'text': ('user', TypeError, EDGE_FORM),
    'numbers': ((1, 2, 3), TypeError, EDGE_FORM),
    'unknown': (
        ('user', 'likes', 'item'),
        ValueError,
        "must be an edge type of the graph, [('user', 'rates', 'item')",
    ),
    'unknown pair': (('tag', 'user'), ValueError, 'must be an edge type of'),
    'no edges': ((('tag', 'user'), None), ValueError, 'must be an edge type'),
    'node type': (
        (('user', 'to', 'x'), edges((0, 1))),
        ValueError,
        "must be of a node type of the graph, ['user', 'item',",
    ),
}


@pytest.mark.parametrize('bad', BAD_EDGE_TYPES)
@pytest.mark.parametrize('data', [TYPED, TYPED_STORES], ids=['data', 'stores'])
def test_bad_edge_types_are_refused_at_the_constructor(data, bad):
    value, error, text = BAD_EDGE_TYPES[bad]
    with pytest.raises(error, match=re.escape(text)) as raised:
        LinkNeighborLoader(data, [2], value)
    assert str(raised.value).startswith(START)


def test_all_forms_of_seed_edges_work():
    some = TYPED[RATES].edge_index[:, :5]
    for value, count in (
        (RATES, 60),
        (list(RATES), 60),
        (('user', 'item'), 60),
        ((RATES, None), 60),
        ((RATES, some), 5),
        ([RATES, some.int()], 5),
        ((('user', 'item'), some), 5),
        ((('user', 'new', 'item'), some), 5),
    ):
        loader = LinkNeighborLoader(TYPED, [2], value, batch_size=60)
        assert loader.input_data.row.numel() == count
        batch = next(iter(loader))
        assert batch.num_nodes > 0
    for value, count in ((None, 900), (DATA.edge_index[:, :4].int(), 4)):
        loader = LinkNeighborLoader(DATA, [2], value)
        assert loader.input_data.row.numel() == count
    loader = LinkNeighborLoader(STORES, [2], (None, DATA.edge_index))
    assert loader.input_data.row.numel() == 900
