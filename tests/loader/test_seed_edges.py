"""Bad seed edges, labels and times are refused by the constructor."""

import re

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.sampler import NegativeSampling

from tests.loader.batches import graph
from tests.samplers import graphs
from tests.samplers.graphs import RATES
from torch_gsample import NeighborSampler
from torch_gsample.loader import (
    HGTLoader,
    LinkNeighborLoader,
    NeighborLoader,
)

DATA, TYPED = graph(), graphs.heterogeneous()
TIMED = graphs.homogeneous(60, 900, time=torch.arange(60))
STORES = graphs.as_stores(DATA)
TYPED_STORES = graphs.as_stores(TYPED)


def mask(size):
    return torch.ones(size, dtype=torch.bool)


def links(**options):
    return LinkNeighborLoader(DATA, [2], **options)


def typed_links(edges, **options):
    return LinkNeighborLoader(TYPED, [2], edges, **options)


def edges(*pairs, dtype=torch.int64):
    return torch.tensor(pairs, dtype=dtype).t()


EDGE_FORM = "'edge_label_index' must be an edge type, or a pair of one and"
BAD_EDGES = {
    'rows': (
        torch.zeros(7, 2).long(),
        ValueError,
        '[2, num_edges] (got [7, 2])',
    ),
    'vector': (torch.zeros(4).long(), ValueError, '[2, num_edges] (got [4])'),
    'negative': (edges((3, -1)), IndexError, 'must be in [0, 15) (got -1)'),
    'source': (edges((12, 1)), IndexError, 'must be in [0, 12) (got 12)'),
    'target': (edges((3, 15)), IndexError, 'must be in [0, 15) (got 15)'),
    'float': (torch.ones(2, 3), TypeError, 'must be int32 or int64 (got'),
    'mask': (mask(6).view(2, 3), TypeError, 'int32 or int64 (got torch.bool)'),
    'list': ([[1, 2], [3, 4]], TypeError, 'must be a tensor (got list)'),
}


@pytest.mark.parametrize('bad', BAD_EDGES)
@pytest.mark.parametrize('typed', [False, True])
def test_bad_seed_edges_are_refused_at_the_constructor(typed, bad):
    value, error, text = BAD_EDGES[bad]
    data = (
        TYPED
        if typed
        else Data(edge_index=TYPED[RATES].edge_index, num_nodes=15)
    )
    if not typed:
        text = text.replace('12)', '15)').replace('got 12', 'got')
        value = edges((15, 1)) if bad == 'source' else value
    with pytest.raises(error, match=re.escape(text)) as raised:
        LinkNeighborLoader(data, [2], (RATES, value) if typed else value)
    start = "LinkNeighborLoader: 'edge_label_index' must "
    assert str(raised.value).startswith(start)


BAD_EDGE_TYPES = {
    'none': (
        None,
        ValueError,
        f'{EDGE_FORM} edges of shape [2, num',
    ),
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
    start = "LinkNeighborLoader: 'edge_label_index' must "
    assert str(raised.value).startswith(start)


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
        loader = typed_links(value, batch_size=60)
        assert loader.input_data.row.numel() == count
        batch = next(iter(loader))
        assert batch.num_nodes > 0
    for value, count in ((None, 900), (DATA.edge_index[:, :4].int(), 4)):
        loader = links(edge_label_index=value)
        assert loader.input_data.row.numel() == count
    loader = LinkNeighborLoader(STORES, [2], (None, DATA.edge_index))
    assert loader.input_data.row.numel() == 900


def timed(**options):
    return NeighborLoader(TIMED, [2], time_attr='time', **options)


def timed_links(**options):
    return LinkNeighborLoader(TIMED, [2], time_attr='time', **options)


LONG = torch.zeros(901).long()
BESIDE_SEEDS = {
    'input_time': (
        timed,
        {'input_time': LONG[:59]},
        ValueError,
        "NeighborLoader: 'input_time' must have 60 elements, one for each s",
    ),
    'input_time of a mask': (
        timed,
        {'input_nodes': torch.arange(60) < 5, 'input_time': LONG[:60]},
        ValueError,
        "'input_time' must have 5 elements, one for each seed (got shape [60",
    ),
    'float input_time': (
        timed,
        {'input_time': torch.zeros(60)},
        TypeError,
        "NeighborLoader: 'input_time' must hold integers (got torch.float32)",
    ),
    'input_time matrix': (
        timed,
        {'input_time': LONG[:60].view(60, 1)},
        ValueError,
        "'input_time' must be a vector (got shape [60, 1])",
    ),
    'input_time list': (
        timed,
        {'input_time': [0] * 60},
        TypeError,
        "'input_time' must be a tensor (got list)",
    ),
    'input_time for nothing': (
        lambda **k: NeighborLoader(
            DATA, sampler=NeighborSampler(DATA, [2]), **k
        ),
        {'input_time': LONG[:60]},
        ValueError,
        "NeighborLoader: 'input_time' needs a 'sampler' with times",
    ),
    'no input_time': (
        lambda **k: NeighborLoader(EDGE_TIMED, [2], time_attr='time', **k),
        {},
        ValueError,
        "NeighborLoader: 'input_time' must be given in temporal sampling",
    ),
    'input_id': (
        lambda **k: NeighborLoader(DATA, [2], [1, 2], **k),
        {'input_id': LONG[:3]},
        ValueError,
        "NeighborLoader: 'input_id' must have 2 elements, one for each seed",
    ),
    'HGT input_id': (
        lambda **k: HGTLoader(TYPED, [2], 'item', **k),
        {'input_id': LONG[:3]},
        ValueError,
        "HGTLoader: 'input_id' must have 15 elements, one for each seed",
    ),
    'edge_label': (
        links,
        {'edge_label': torch.ones(901)},
        ValueError,
        "LinkNeighborLoader: 'edge_label' must have 900 elements, one for ea",
    ),
    'typed edge_label': (
        lambda **k: typed_links(RATES, **k),
        {'edge_label': torch.ones(59)},
        ValueError,
        "'edge_label' must have 60 elements, one for each seed (got shape [5",
    ),
    'edge_label number': (
        links,
        {'edge_label': torch.tensor(1)},
        ValueError,
        "'edge_label' must have 900 elements",
    ),
    'edge_label list': (
        links,
        {'edge_label': [1] * 900},
        TypeError,
        "'edge_label' must be a tensor (got list)",
    ),
    'edge_label_time': (
        timed_links,
        {'edge_label_time': LONG},
        ValueError,
        "'edge_label_time' must have 900 elements, one for each seed (got sh",
    ),
    'float edge_label_time': (
        timed_links,
        {'edge_label_time': torch.zeros(900)},
        TypeError,
        "LinkNeighborLoader: 'edge_label_time' must hold integers (got torch",
    ),
    'link input_id': (
        links,
        {'input_id': LONG},
        ValueError,
        "LinkNeighborLoader: 'input_id' must have 900 elements",
    ),
    'weights of negatives': (
        links,
        {'neg_sampling': NegativeSampling('binary', 1, torch.ones(59))},
        ValueError,
        "NegativeSampling: 'src_weight' must have 60 elements, one for each",
    ),
    'no edge_index': (
        lambda **k: LinkNeighborLoader(Data(num_nodes=3), [], **k),
        {},
        ValueError,
        "'edge_label_index' must be given where 'data' has no 'edge_index'",
    ),
}
EDGE_TIMED = Data(
    edge_index=DATA.edge_index, time=torch.zeros(900).long(), num_nodes=60
)


@pytest.mark.parametrize('bad', BESIDE_SEEDS)
def test_what_belongs_to_seeds_is_checked_at_the_constructor(bad):
    make, options, error, text = BESIDE_SEEDS[bad]
    with pytest.raises(error, match=re.escape(text)):
        make(**options)


def test_labels_and_times_that_fit_are_taken():
    batch = next(iter(timed(input_time=LONG[:60], batch_size=4)))
    assert batch.seed_time.tolist() == [0] * 4
    nodes = torch.arange(60) < 5
    loader = timed(input_nodes=nodes, input_time=LONG[:5])
    assert len(loader) == 5
    label = torch.rand(900, 3)
    loader = links(edge_label=label, input_id=LONG[:900], batch_size=4)
    assert torch.equal(next(iter(loader)).edge_label, label[:4])
