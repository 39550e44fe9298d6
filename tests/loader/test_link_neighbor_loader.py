"""PyG's contract of LinkNeighborLoader: the contents of a mini-batch."""

import pytest
import torch
from torch_geometric import loader as pyg
from torch_geometric.data import Data, HeteroData

from tests.loader.batches import graph, run
from tests.samplers import graphs
from tests.samplers.graphs import RATES, REV_RATES
from torch_gsample import NeighborSampler
from torch_gsample.loader import LinkNeighborLoader


def loader_of(data=None, num_neighbors=(3, 2), **options):
    options = {'batch_size': 16, 'seed': 0} | options
    return LinkNeighborLoader(data or graph(), list(num_neighbors), **options)


def pairs_of(batch):
    """The nodes at the ends of a homogeneous batch's label pairs."""
    return batch.n_id[batch.edge_label_index]


def test_it_is_a_pyg_loader():
    loader = loader_of()
    assert isinstance(loader, pyg.LinkNeighborLoader)
    assert isinstance(loader.link_sampler, NeighborSampler)
    assert str(loader) == 'LinkNeighborLoader()'
    assert len(loader) == 57


@pytest.mark.parametrize('prefetch', [0, 2])
@pytest.mark.parametrize('neg_sampling_ratio', [None, 0.0, 1.0, 0.5])
def test_a_batch_holds_its_seed_edges(neg_sampling_ratio, prefetch):
    data = graph()
    seed_edges = data.edge_index[:, 100:140]
    loader = loader_of(
        data,
        edge_label_index=seed_edges,
        neg_sampling_ratio=neg_sampling_ratio,
        prefetch=prefetch,
    )
    seen = []
    for batch in loader:
        size = batch.input_id.numel()
        seen += batch.input_id.tolist()
        pairs = pairs_of(batch)
        assert torch.equal(pairs[:, :size], seed_edges[:, batch.input_id])
        assert torch.equal(batch.x, data.x[batch.n_id])
        ends = data.edge_index[:, batch.e_id]
        assert torch.equal(batch.n_id[batch.edge_index], ends)
        num_neg = -(-size * (neg_sampling_ratio or 0) // 1)
        assert pairs.size(1) == size + num_neg
        if neg_sampling_ratio:
            label = [1.0] * size + [0.0] * int(num_neg)
            assert batch.edge_label.tolist() == label
        else:
            assert 'edge_label' not in batch
    assert seen == list(range(40))


@pytest.mark.parametrize('kind', ['all', 'typed', 'typed_ids'])
def test_seed_edges_come_in_all_of_pygs_forms(kind):
    data = graph() if kind == 'all' else graphs.heterogeneous()
    some = torch.tensor([[0, 1], [2, 3]])
    given = {'all': None, 'typed': RATES, 'typed_ids': (RATES, some)}[kind]
    batches = list(loader_of(data, edge_label_index=given))
    counts = {'all': 900, 'typed': 60, 'typed_ids': 2}
    stores = [b if kind == 'all' else b[RATES] for b in batches]
    assert sum(s.input_id.numel() for s in stores) == counts[kind]
    if kind == 'typed_ids':
        (batch,) = batches
        src, dst = batch[RATES].edge_label_index
        assert batch['user'].n_id[src].tolist() == [0, 1]
        assert batch['item'].n_id[dst].tolist() == [2, 3]


def test_labels_are_shifted_for_negatives_as_in_pyg():
    label = torch.arange(900) % 3
    loader = loader_of(edge_label=label, neg_sampling='binary')
    for batch in loader:
        size = batch.input_id.numel()
        expected = label[batch.input_id] + 1
        assert torch.equal(batch.edge_label[:size], expected)
        assert batch.edge_label[size:].tolist() == [0] * size
        assert batch.edge_label.dtype == torch.long


@pytest.mark.parametrize('amount', [1, 3])
@pytest.mark.parametrize('typed', [False, True])
def test_triplets_hold_a_source_and_destinations(typed, amount):
    data = graphs.heterogeneous() if typed else graph()
    index = data[RATES].edge_index if typed else data.edge_index
    loader = loader_of(
        data,
        edge_label_index=RATES if typed else None,
        neg_sampling={'mode': 'triplet', 'amount': amount},
    )
    for batch in loader:
        src, dst = (batch['user'], batch['item']) if typed else (batch, batch)
        ids = batch[RATES].input_id if typed else batch.input_id
        assert torch.equal(src.n_id[src.src_index], index[0, ids])
        assert torch.equal(dst.n_id[dst.dst_pos_index], index[1, ids])
        shape = (ids.numel(),) if amount == 1 else (ids.numel(), amount)
        assert dst.dst_neg_index.shape == shape


def test_no_link_is_predicted_from_itself():
    data = graphs.heterogeneous()
    data[REV_RATES].edge_index = data[RATES].edge_index.flip(0)
    del data[REV_RATES].edge_attr
    for batch in loader_of(
        data, edge_label_index=RATES, exclude_seed_edges='reverse'
    ):
        src, dst = batch['user'].n_id, batch['item'].n_id
        row, col = batch[RATES].edge_label_index
        seeds = set(zip(src[row].tolist(), dst[col].tolist(), strict=True))
        row, col = batch[RATES].edge_index
        edges = set(zip(src[row].tolist(), dst[col].tolist(), strict=True))
        col, row = batch[REV_RATES].edge_index
        edges |= set(zip(src[row].tolist(), dst[col].tolist(), strict=True))
        assert seeds
        assert not seeds & edges


def test_true_negatives_are_no_edges():
    data = graph(num_nodes=40)
    edges = set(map(tuple, data.edge_index.t().tolist()))
    for options, found in (({'true_negatives': True}, False), ({}, True)):
        drawn = set()
        for batch in loader_of(data, neg_sampling='binary', **options):
            negatives = pairs_of(batch)[:, batch.input_id.numel() :]
            drawn |= set(map(tuple, negatives.t().tolist()))
        assert bool(drawn & edges) == found


def test_true_negatives_are_prepared_once_for_all_workers():
    loader = loader_of(
        graphs.heterogeneous(), edge_label_index=RATES, true_negatives=True
    )
    assert list(loader.link_sampler._negatives._neighbors) == [RATES]


def test_temporal_batches_hold_the_past():
    data = graph()
    data.time = torch.arange(60)
    time = data.time[data.edge_index].max(dim=0).values
    loader = loader_of(
        data,
        time_attr='time',
        edge_label_time=time,
        neg_sampling='binary',
        prefetch=0,
    )
    for batch in loader:
        size = batch.input_id.numel()
        assert torch.equal(batch.edge_label_time[:size], time[batch.input_id])
        latest = batch.edge_label_time[:size][batch.batch]
        assert bool((batch.time <= latest).all())


@pytest.mark.parametrize('typed', [False, True])
def test_graphs_without_edges_give_the_ends(typed):
    pairs = graphs.random_edges(20, 20, 30)
    data = HeteroData(a={'num_nodes': 20}) if typed else Data(num_nodes=20)
    given = (('a', 'a'), pairs) if typed else pairs
    for batch in LinkNeighborLoader(
        data, [], edge_label_index=given, batch_size=7
    ):
        store = batch['a', 'a'] if typed else batch
        nodes = batch['a'].n_id if typed else batch.n_id
        assert torch.equal(
            nodes[store.edge_label_index], pairs[:, store.input_id]
        )


def test_stores_give_pygs_batches():
    """Of typed graphs: PyG takes no seed edges for others."""
    data = graphs.heterogeneous()
    del data['lone']
    some = (RATES, data[RATES].edge_index[:, :20])
    own = loader_of(graphs.as_stores(data), edge_label_index=some)
    for batch, other in zip(
        own, loader_of(data, edge_label_index=some), strict=True
    ):
        for t in data.node_types:
            assert torch.equal(batch[t].x, other[t].x)
        index = batch[RATES].edge_label_index
        assert torch.equal(index, other[RATES].edge_label_index)


@pytest.mark.parametrize('subgraph_type', ['directional', 'bidirectional'])
def test_a_loader_can_be_called_with_indices(subgraph_type):
    data = graph()
    batch = loader_of(data, subgraph_type=subgraph_type)([5, 3])
    assert torch.equal(pairs_of(batch), data.edge_index[:, [5, 3]])


def test_shuffled_links_keep_their_negatives_apart():
    """The order decides the batch, and the batch its draws."""
    options = dict(neg_sampling='binary', shuffle=True)
    loader = loader_of(**options)
    torch.manual_seed(1)
    first = run(loader)
    loader.set_epoch(0)
    torch.manual_seed(1)
    assert run(loader) == first
    assert run(loader) != first
