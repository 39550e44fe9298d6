"""Features are joined in reused memory, and equal PyG's."""

import pytest
import torch
from torch_geometric.loader import NeighborLoader as PyGLoader

from tests.loader.batches import graph, loader_of, run, values
from tests.samplers import graphs
from torch_gsample import NeighborSampler
from torch_gsample.loader.blocks import add_blocks
from torch_gsample.loader.features import WideFeatures


def wide_graph():
    """A graph with all kinds of attributes."""
    data = graph()
    n = data.num_nodes
    generator = torch.Generator().manual_seed(0)
    data.x = torch.rand(n, 40, generator=generator)
    data.half = torch.rand(n, 4, 8, generator=generator).half()
    data.strided = torch.rand(40, n, generator=generator).t()
    data.array = data.x.numpy() * 2
    data.table = torch.rand(3, 40, generator=generator)  # of no node
    return data


def typed_graph():
    data = graphs.heterogeneous()
    for i, store in enumerate(data.node_stores):
        store.x = torch.arange(store.num_nodes * 32).view(-1, 32) + i
    return data


def pygs(data, input_nodes=None):
    """The batches of PyG's own loader on the same sampler."""
    sampler = NeighborSampler(data, [4, 3], seed=0, rng_scope='epoch')
    batches = list(
        PyGLoader(
            data,
            [4, 3],
            input_nodes=input_nodes,
            neighbor_sampler=sampler,
            batch_size=16,
        )
    )
    for batch in batches:
        add_blocks(batch, is_known=False)
    return run(batches)


def wide(data):
    """The names of the attributes that PyG does not see."""
    return {key for _, key, _ in WideFeatures(data).features}


def test_only_wide_plain_node_features_are_taken_out():
    data = wide_graph()
    before = data.to_dict()
    assert wide(data) == {'x', 'half'}
    assert all(data[key] is value for key, value in before.items())
    data.x = data.x[:, :15]  # 60 bytes
    assert wide(data) == {'half'}


@pytest.mark.parametrize('num_workers', [0, 2])
def test_batches_equal_pygs(num_workers):
    data = wide_graph()
    options = dict(rng_scope='epoch', num_workers=num_workers)
    want = pygs(data)
    batches = run(loader_of(data, **options))
    assert batches == want
    assert [list(b) for b in batches] == [list(b) for b in want]  # in order


@pytest.mark.parametrize('num_workers', [0, 2])
def test_typed_batches_equal_pygs(num_workers):
    data = typed_graph()
    assert len(WideFeatures(data).features) == len(data.node_types)
    batches = run(
        loader_of(
            data,
            input_nodes='item',
            rng_scope='epoch',
            num_workers=num_workers,
        )
    )
    assert batches == pygs(data, 'item')


def test_batches_keep_their_features_while_they_live():
    """Memory is used again when a batch is gone, and not before."""
    data = graph(num_nodes=3000, num_edges=60_000)
    data.x = torch.arange(3000.0)[:, None].repeat(1, 100)
    kept = list(loader_of(data, batch_size=500))
    for batch in kept:
        assert torch.equal(batch.x, data.x[batch.n_id])
    for _ in loader_of(data, batch_size=500):
        pass
    for batch in kept:
        assert torch.equal(batch.x, data.x[batch.n_id])


def test_gradients_reach_features_that_need_them():
    data = wide_graph()
    data.learned = torch.rand(data.num_nodes, 40, requires_grad=True)
    batch = next(iter(loader_of(data, prefetch=0)))
    batch.learned.sum().backward()
    assert data.learned.grad[batch.n_id].eq(1).all()


def test_changed_features_are_read_again():
    data = wide_graph()
    loader = loader_of(data)
    next(iter(loader))
    loader.data.x = torch.ones(data.num_nodes, 50)
    assert next(iter(loader)).x.shape[1] == 50


@pytest.mark.parametrize('num_workers', [0, 1])
def test_transforms_see_the_features(num_workers):
    def transform(batch):
        batch.total = batch.x.sum()
        return batch

    def shorten(out):
        out.node = out.node.clone()
        return out

    options = dict(transform=transform, transform_sampler_output=shorten)
    loader = loader_of(wide_graph(), num_workers=num_workers, **options)
    assert loader.filter_per_worker is True
    for batch in loader:
        assert torch.equal(batch.total, batch.x.sum())


@pytest.mark.parametrize('given', [None, True, False])
def test_workers_join_features_if_asked(given):
    loader = loader_of(
        wide_graph(), num_workers=1, filter_per_worker=given, prefetch=0
    )
    assert loader.filter_per_worker is bool(given)
    shared = next(iter(loader)).x.is_shared()
    assert shared is bool(given)


def test_stores_are_left_to_pyg():
    data = wide_graph()
    stores = graphs.as_stores(data)
    loader = loader_of(
        stores,
        input_nodes=torch.arange(data.num_nodes),
        num_workers=1,
        rng_scope='epoch',
    )
    assert loader.filter_per_worker is True
    for batch, want in zip(loader, pygs(data), strict=True):
        assert values(batch.x) == want['x']
