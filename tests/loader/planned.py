"""Graphs with attributes of all kinds, and what PyG makes of samples."""

import copy

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.loader import LinkLoader, NodeLoader

from tests.samplers import graphs
from tests.samplers.graphs import FOLLOWS, RATES
from torch_gsample import LadiesSampler
from torch_gsample.loader import (
    HGTLoader,
    LinkNeighborLoader,
    NeighborLoader,
)
from torch_gsample.loader.base import KeyedLoader

TRIPLET = {'mode': 'triplet', 'amount': 2}


def rich(**attributes):
    """A graph with attributes of all kinds."""
    torch.manual_seed(0)
    data = graphs.homogeneous(40, 300)
    n, e = data.num_nodes, data.num_edges
    data.wide = torch.rand(n, 40)
    data.half = torch.rand(n, 4, 8).half()
    data.strided = torch.rand(40, n).t()
    data.learned = torch.nn.Parameter(torch.rand(n, 20))
    data.array = data.wide.numpy() * 2
    data.y = torch.arange(n) % 5
    data.train_mask = torch.arange(n) % 3 == 0
    data.node_index = torch.arange(2 * n).view(2, n)  # along the last
    data.table = torch.rand(3, 40)  # of no node
    data.wide_edge = torch.rand(e, 32)
    data.edge_weight = torch.rand(e, dtype=torch.float64)
    data.edge_label_index = torch.zeros(2, 7, dtype=torch.long)
    data.time = torch.arange(n) % 10
    data.names = [f'name {i}' for i in range(7)]
    data.title, data.scale, data.extra = 'a graph', 0.5, {'a': [1]}
    data.number = torch.tensor(3)
    for key, value in attributes.items():
        data[key] = value
    data.last = torch.arange(n)
    return data


def typed():
    torch.manual_seed(0)
    data = graphs.heterogeneous()
    for i, store in enumerate(data.node_stores):
        store.wide = torch.rand(store.num_nodes, 20)
        store.time = torch.arange(store.num_nodes) % 7
        store.mask = torch.arange(store.num_nodes) % 2 == i % 2
        store.label = f'type {i}'
    data[FOLLOWS].weight = torch.rand(30)
    data[FOLLOWS].wide = torch.rand(30, 16)
    data['user'].y = torch.arange(12)
    data.of_all = torch.ones(2)
    return data


def of_nodes(data, fanouts=(4, 3), **options):
    options = {'batch_size': 8, 'prefetch': 0} | options
    if 'sampler' not in options:
        options['seed'] = 0
    return NeighborLoader(data, list(fanouts), **options)


def of_links(data, **options):
    options = {'batch_size': 8, 'seed': 0, 'prefetch': 0} | options
    return LinkNeighborLoader(data, [4, 3], **options)


def of_hgt(data):
    return HGTLoader(
        data, [6, 6], input_nodes='item', batch_size=5, seed=0, prefetch=0
    )


def symmetric():
    """A graph of as many edges as nodes, which names must tell apart."""
    data = graphs.homogeneous(30, 30)
    data.edge_thing, data.thing = torch.rand(30, 20), torch.rand(30, 20)
    return data


def sparse():
    """A graph with edge ids that refer to compressed columns."""
    dense = torch.zeros(30, 30)
    row, col = graphs.homogeneous().edge_index
    dense[col, row] = torch.arange(150.0) + 1
    x = torch.rand(30, 20)
    return Data(x=x, adj_t=dense.to_sparse_csr(), num_nodes=30)


USERS, ITEMS = ('user', None), ('item', torch.arange(3, 14))
IDS = {'input_id': torch.arange(100, 140)}
TIMED = {'time_attr': 'time'}
LOADERS = {
    'plain': lambda: of_nodes(graphs.homogeneous()),
    'rich': lambda: of_nodes(rich()),
    'own_ids': lambda: of_nodes(
        rich(
            n_id=torch.arange(40) * 3,
            e_id=torch.arange(300) * 3,
            batch=torch.ones(40),
            input_id='mine',
            batch_size='mine',
            seed_time='mine',
            num_sampled_nodes='mine',
        )
    ),
    'no_edge_attributes': lambda: of_nodes(
        Data(edge_index=graphs.homogeneous().edge_index, num_nodes=30)
    ),
    'as_many_edges': lambda: of_nodes(symmetric()),
    'no_seeds': lambda: of_nodes(rich(), input_nodes=torch.tensor([3])),
    'input_id': lambda: of_nodes(
        rich(), input_nodes=torch.arange(40).flip(0), **IDS
    ),
    'mask': lambda: of_nodes(rich(), input_nodes=torch.arange(40) % 2 == 0),
    'sorted': lambda: of_nodes(
        rich(edge_index=rich().edge_index[:, rich().edge_index[1].argsort()]),
        is_sorted=True,
    ),
    'disjoint': lambda: of_nodes(rich(), disjoint=True),
    'temporal': lambda: of_nodes(
        rich(), input_time=torch.full((40,), 6), **TIMED
    ),
    'weighted': lambda: of_nodes(rich(), weight_attr='edge_weight'),
    'induced': lambda: of_nodes(rich(), subgraph_type='induced'),
    'both_ways': lambda: of_nodes(rich(), subgraph_type='bidirectional'),
    'adj_t': lambda: of_nodes(sparse()),
    'typed': lambda: of_nodes(typed(), input_nodes=USERS),
    'typed_some': lambda: of_nodes(typed(), input_nodes=ITEMS),
    'typed_disjoint': lambda: of_nodes(
        typed(), input_nodes=USERS, disjoint=True
    ),
    'typed_temporal': lambda: of_nodes(typed(), input_nodes=ITEMS, **TIMED),
    'typed_induced': lambda: of_nodes(
        typed(), input_nodes=ITEMS, subgraph_type='induced'
    ),
    'program': lambda: of_nodes(
        rich(), sampler=LadiesSampler(rich(), [4, 3], seed=0)
    ),
    'hgt': lambda: of_hgt(typed()),
    'links': lambda: of_links(rich()),
    'links_binary': lambda: of_links(
        rich(), neg_sampling={'mode': 'binary'}, edge_label=torch.ones(300)
    ),
    'links_triplet': lambda: of_links(rich(), neg_sampling=TRIPLET),
    'links_temporal': lambda: of_links(
        rich(), edge_label_time=torch.full((300,), 6), **TIMED
    ),
    'typed_links': lambda: of_links(
        typed(),
        edge_label_index=RATES,
        neg_sampling_ratio=1.0,
        exclude_seed_edges=True,
    ),
    'typed_triplet': lambda: of_links(
        typed(), edge_label_index=RATES, neg_sampling=TRIPLET
    ),
    'same_type_triplet': lambda: of_links(
        typed(),
        edge_label_index=FOLLOWS,
        neg_sampling=TRIPLET,
        edge_label_time=torch.full((30,), 6),
        **TIMED,
    ),
}


def outs(loader):
    """Some samples of a loader, which its ``filter_fn`` did not see."""
    loader.filter_per_worker = False
    size, step = len(loader.dataset), loader.batch_size
    index = [[*range(i, min(i + step, size))] for i in range(0, size, step)]
    return [loader._make_sample(i) for i in index[:3]]


def pygs(loader, out):
    """The batch that PyG's own function makes of a sample."""
    kind = NodeLoader if isinstance(loader, NodeLoader) else LinkLoader
    batch = kind.filter_fn(loader, copy.deepcopy(out))  # PyG changes it
    if hasattr(out, 'attributes'):
        out.attributes.write_to(batch)
    return batch


def planned(loader, out):
    filter_fn = super(KeyedLoader, loader).filter_fn
    return loader.planned.batch(loader, filter_fn.__func__, out)


def assert_same_values(ours, pyg):
    assert type(ours) is type(pyg)
    if isinstance(pyg, torch.Tensor):
        assert ours.dtype == pyg.dtype
        assert ours.shape == pyg.shape
        assert ours.stride() == pyg.stride()
        assert ours.requires_grad == pyg.requires_grad
        assert torch.equal(ours, pyg)
    elif isinstance(pyg, np.ndarray):
        assert np.array_equal(ours, pyg)
    else:
        assert ours == pyg


def assert_same_batches(ours, pyg):
    """The same classes, keys in the same order, and values."""
    for batch in ours, pyg:
        for key in 'blocks', 'adj_t':  # which only our loaders add
            if key in batch:
                del batch[key]
    assert type(ours) is type(pyg)
    assert ours.__dict__.keys() == pyg.__dict__.keys()
    stores, theirs = ours.stores, pyg.stores
    assert [s.__dict__.get('_key') for s in stores] == [
        s.__dict__.get('_key') for s in theirs
    ]
    for store, want in zip(stores, theirs, strict=True):
        assert type(store) is type(want)
        assert store._parent() is ours
        assert store.__dict__.keys() == want.__dict__.keys()
        assert list(store) == list(want)
        for key in want:
            assert_same_values(store[key], want[key])
