"""Padded batches: the same samples, in tensors of a few shapes."""

import warnings

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.sampler import BaseSampler

from tests.loader.batches import values
from tests.loader.padded import unpadded
from tests.samplers import graphs
from torch_gsample import LaborSampler
from torch_gsample.loader import LinkNeighborLoader, NeighborLoader
from torch_gsample.loader.batch_shape import BatchShape
from torch_gsample.loader.padding import Padding

HETERO = graphs.heterogeneous()


def homogeneous():
    """Features of several kinds, wide ones too; all but 64 of the edges."""
    data = graphs.homogeneous(num_nodes=90, num_edges=700)
    data.wide = torch.rand(90, 16)
    data.train_mask = torch.rand(90) < 0.5
    data.time = torch.arange(90) % 5
    return data


def pair(data, num_neighbors=(4, 3), loader=NeighborLoader, **options):
    """The same loader without and with static shapes."""
    options = {'batch_size': 20} | options
    static = options.pop('static_shapes', True)
    if 'sampler' not in options:
        options |= {'num_neighbors': num_neighbors, 'seed': 0}
    return (
        loader(data, **options),
        loader(data, static_shapes=static, **options),
    )


def hetero_options():
    fanouts = graphs.each(HETERO, [3, 2])
    return dict(num_neighbors=fanouts, batch_size=4, input_nodes='item')


LINKS = dict(loader=LinkNeighborLoader, neg_sampling_ratio=1.0)
CASES = {
    'plain': dict(data=homogeneous()),
    'three buckets': dict(data=homogeneous(), static_shapes=3),
    'disjoint': dict(data=homogeneous(), disjoint=True),
    'induced': dict(data=homogeneous(), subgraph_type='induced'),
    'bidirectional': dict(data=homogeneous(), subgraph_type='bidirectional'),
    'links': dict(data=homogeneous(), **LINKS),
    'triplets': dict(
        data=homogeneous(), loader=LinkNeighborLoader, neg_sampling='triplet'
    ),
    'hetero': dict(data=HETERO, **hetero_options()),
    'hetero links': dict(
        data=HETERO,
        **LINKS,
        num_neighbors=graphs.each(HETERO, [3, 2]),
        edge_label_index=graphs.RATES,
    ),
    'program': dict(
        data=homogeneous(),
        sampler=LaborSampler(homogeneous(), [4, 3], seed=0),
    ),
    'stores': dict(
        data=graphs.as_stores(graphs.homogeneous(60, 400)),
        input_nodes=torch.arange(60),
    ),
}


@pytest.mark.parametrize('case', CASES)
def test_unpadded_batches_equal_plain_batches(case):
    plain, padded = pair(**CASES[case])
    batches = list(padded)
    expected = list(plain)
    assert len(batches) == len(expected) > 1
    for batch, other in zip(batches, expected, strict=True):
        want = values(other)
        if case == 'induced':  # padding is not in the order of columns
            assert 'blocks' not in batch
            del want['blocks']
        assert values(unpadded(batch)) == want


@pytest.mark.parametrize('case', CASES)
def test_batches_have_the_shapes_of_the_buckets(case):
    _, loader = pair(**CASES[case])
    shapes = set()
    for batch in loader:
        for store in batch.node_stores:
            counts = store.get('num_sampled_nodes')
            assert counts is None or store.n_id.numel() == sum(counts)
        shapes.add(
            tuple(s.n_id.numel() for s in batch.node_stores)
            + tuple(s.edge_index.shape[1] for s in batch.edge_stores)
        )
    assert len(shapes) <= len(loader.buckets) == len(loader.stats()['buckets'])


def test_padding_is_zero_and_ids_are_negative():
    _, loader = pair(homogeneous(), disjoint=True)
    for batch in loader:
        none = ~batch.node_mask
        assert bool((batch.n_id[none] == -1).all())
        assert not batch.wide[none].any()
        assert not batch.train_mask[none].any()
        assert bool((batch.e_id[~batch.edge_mask] == -1).all())
        # Pooling by trees leaves those of the seeds without padding.
        seeds = batch.num_sampled_nodes[0]
        assert bool((batch.batch[none] == seeds - 1).all())
        assert batch.batch_size < seeds
        assert not batch.node_mask[batch.batch_size : seeds].any()


def test_padding_edges_are_no_self_loops_and_stay_in_a_layer():
    _, loader = pair(homogeneous())
    for batch in loader:
        row, col = batch.edge_index[:, ~batch.edge_mask]
        assert bool((row != col).all())
        end = 0
        for hop, count in enumerate(batch.num_sampled_edges):
            nodes = sum(batch.num_sampled_nodes[: hop + 2])
            assert batch.edge_index[:, end : end + count].max() < nodes
            end += count


@pytest.mark.parametrize('options', [{}, dict(filter_per_worker=True)])
def test_workers_make_the_same_padded_batches(options):
    runs = []
    data = homogeneous()
    for workers in (0, 2):
        loader = NeighborLoader(
            data,
            [4, 3],
            batch_size=20,
            seed=0,
            shuffle=True,
            static_shapes=2,
            num_workers=workers,
            **options,
        )
        torch.manual_seed(3)
        batches = [values(batch) for batch in loader]
        runs.append((batches, loader.buckets))
        stats = loader.stats()
        assert stats['batches'] == len(batches)
        assert sum(b['batches'] for b in stats['buckets']) == len(batches)
    assert runs[0] == runs[1]


def test_choosing_buckets_draws_nothing():
    torch.manual_seed(3)
    plain, padded = pair(homogeneous(), shuffle=True)
    torch.manual_seed(4)
    expected = [values(batch) for batch in plain]
    torch.manual_seed(4)
    assert [values(unpadded(batch)) for batch in padded] == expected


def test_oversized_batches_get_their_own_bucket():
    small = BatchShape({None: (24, 32, 8)}, {None: (80, 8)})
    plain, loader = pair(homogeneous(), static_shapes=[small])
    with pytest.warns(UserWarning, match='did not fit the largest bucket'):
        batches = list(loader)
    for batch, other in zip(batches, plain, strict=True):
        assert values(unpadded(batch)) == values(other)
    used = loader.stats()['buckets']
    assert len(used) > 1
    assert loader.buckets == [small]  # the new ones depend on their batch
    with warnings.catch_warnings():  # each warns once
        warnings.simplefilter('error')
        loader.set_epoch(0)
        list(loader)


def test_new_sizes_have_few_values():
    base = BatchShape({None: (8, 16)}, {None: (16,)})
    grown = {
        base.grown(BatchShape({None: (8, n)}, {None: (n,)}))
        for n in range(17, 200)
    }
    assert len(grown) == 6
    zero = BatchShape({None: (0,)}, {})
    assert zero.grown(zero) == zero


def test_stats_report_the_cost_of_padding():
    plain, loader = pair(homogeneous())
    batches = list(plain)
    padded = list(loader)
    nodes = sum(batch.num_nodes for batch in batches)
    stats = loader.stats()
    assert stats['nodes'] == plain.stats()['nodes']
    assert sum(stats['nodes']) == nodes
    assert stats['edges'] == plain.stats()['edges']
    more = sum(batch.num_nodes for batch in padded) / nodes - 1
    assert stats['padding']['nodes'] == pytest.approx(more)
    assert 0 < stats['padding']['edges'] < 1


def test_a_graph_with_as_many_nodes_as_edges_is_padded():
    edge_index = torch.stack([torch.arange(30), (torch.arange(30) + 1) % 30])
    data = Data(
        edge_index=edge_index,
        x=torch.arange(30.0),
        edge_attr=torch.arange(30),
    )
    plain, loader = pair(data, [1], batch_size=7)
    for batch, other in zip(loader, plain, strict=True):
        assert values(unpadded(batch)) == values(other)


def test_bad_static_shapes_are_refused():
    def loader(value, **options):
        return NeighborLoader(
            graphs.homogeneous(), [2], static_shapes=value, **options
        )

    with pytest.raises(TypeError, match="'static_shapes' must be an integer"):
        loader(2.5)
    with pytest.raises(ValueError, match="'static_shapes' must be at least 1"):
        loader(0)
    with pytest.raises(TypeError, match='list of BatchShape'):
        loader([3])
    with pytest.raises(ValueError, match='must have at least one bucket'):
        loader([])
    no_room = BatchShape({None: (1, 8)}, {None: (8,)})
    with pytest.raises(ValueError, match='must have room for 2 seeds'):
        loader([no_room])
    other = BatchShape({None: (8, 8, 8)}, {None: (8, 8)})
    with pytest.raises(ValueError, match='same types and numbers of hops'):
        next(iter(loader([other])))
    with pytest.raises(ValueError, match='needs seeds'):
        iter(loader(True, input_nodes=torch.empty(0, dtype=torch.long)))
    batches = [[0, 1], [2]]
    with pytest.raises(ValueError, match="needs a 'batch_size'"):
        iter(loader(True, batch_sampler=batches))


def test_samplers_without_keys_are_refused():
    class Sampler(BaseSampler):
        sample_from_nodes = sample_from_edges = None

    with pytest.raises(ValueError, match='needs a KeyedSampler'):
        NeighborLoader(
            graphs.homogeneous(), sampler=Sampler(), static_shapes=True
        )


def test_batches_without_an_edge_index_are_refused():
    counts = BatchShape({None: (1,)}, {None: (1,)})
    with pytest.raises(ValueError, match="must have an 'edge_index'"):
        Padding(counts, counts, None).apply(Data(n_id=torch.arange(1)))
