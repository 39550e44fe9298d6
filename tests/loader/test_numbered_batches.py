"""A loader's samples depend on (seed, epoch, batch) and on nothing else."""

import threading

import pytest
import torch
import torch_geometric.loader as pyg_loader
from torch_geometric.data import Data

from tests.loader.batches import stop_workers
from torch_gsample import NeighborSampler
from torch_gsample.loader import LinkNeighborLoader, NeighborLoader

NUM_NODES = 300


@pytest.fixture(scope='module')
def data() -> Data:
    generator = torch.Generator().manual_seed(3)
    edge_index = torch.randint(NUM_NODES, (2, 4000), generator=generator)
    return Data(
        edge_index=edge_index,
        x=torch.arange(NUM_NODES).float().view(-1, 1),
        y=torch.arange(NUM_NODES),
    )


def make(data, **kwargs):
    kwargs = dict(dict(batch_size=64, seed=7), **kwargs)
    return NeighborLoader(data, [4, 3], **kwargs)


def read(loader):
    return [
        (b.n_id.tolist(), b.edge_index.tolist(), b.e_id.tolist())
        for b in loader
    ]


@pytest.fixture(scope='module')
def expected(data):
    """Two epochs without workers and without a thread."""
    loader = make(data, prefetch=0)
    return [read(loader), read(loader)]


def test_epochs_and_batches_draw_differently(data, expected):
    assert expected[0] != expected[1]
    same_seeds = NeighborLoader(
        data,
        [4],
        input_nodes=torch.arange(20).repeat(2),
        batch_size=20,
        seed=7,
        prefetch=0,
    )
    first, second = read(same_seeds)
    assert first[0][:20] == second[0][:20]
    assert first != second


@pytest.mark.parametrize('prefetch', [1, 2, 5])
def test_prefetching_does_not_change_samples(data, expected, prefetch):
    loader = make(data, prefetch=prefetch)
    assert [read(loader), read(loader)] == expected


@pytest.mark.parametrize('workers', [1, 2, 4])
def test_workers_do_not_change_samples(data, expected, workers):
    loader = make(data, num_workers=workers)
    assert [read(loader), read(loader)] == expected


def test_persistent_workers_do_not_change_samples(data, expected):
    loader = make(data, num_workers=2, persistent_workers=True)
    third = make(data, prefetch=0)
    third.set_epoch(2)
    assert [read(loader) for _ in range(3)] == [*expected, read(third)]
    for _ in loader:  # an epoch that is left early
        break
    loader.set_epoch(1)
    assert read(loader) == expected[1]
    stop_workers(loader._iterator)


def test_spawned_workers_do_not_change_samples(data, expected):
    loader = make(
        data,
        num_workers=1,
        multiprocessing_context='spawn',
        persistent_workers=True,
    )
    assert [read(loader), read(loader)] == expected
    stop_workers(loader._iterator)


@pytest.mark.parametrize('dtype', [torch.int32, torch.int64])
def test_dtypes_do_not_change_samples(data, expected, dtype):
    assert read(make(data, index_dtype=dtype)) == expected[0]


def test_set_epoch_returns_to_an_epoch(data, expected):
    loader = make(data)
    loader.set_epoch(1)
    assert read(loader) == expected[1]
    loader.set_epoch(0)
    assert read(loader) == expected[0]
    with pytest.raises(ValueError, match='must not be negative'):
        loader.set_epoch(-1)


def test_seed_is_drawn_from_the_default_generator(data):
    torch.manual_seed(5)
    first = read(make(data, seed=None))
    torch.manual_seed(5)
    assert read(make(data, seed=None)) == first
    assert read(make(data, seed=None)) != first


def test_shuffling_is_the_same_as_in_pyg(data):
    sampler = NeighborSampler(data, [4, 3], seed=7)
    torch.manual_seed(0)
    theirs = pyg_loader.NodeLoader(
        data, node_sampler=sampler, batch_size=64, shuffle=True
    )
    order = [b.input_id.tolist() for b in theirs]
    for prefetch in (0, 2):
        torch.manual_seed(0)
        ours = make(data, seed=1, shuffle=True, prefetch=prefetch)
        assert [b.input_id.tolist() for b in ours] == order


def test_epoch_scope_draws_alike_in_all_batches(data):
    loader = make(
        data,
        input_nodes=torch.arange(20).repeat(2),
        batch_size=20,
        rng_scope='epoch',
    )
    first, second = read(loader)
    assert first == second
    assert read(loader)[0] != first


def test_leaving_an_epoch_early_leaves_no_thread(data, expected):
    loader = make(data)
    for _ in loader:
        break
    names = [t.name for t in threading.enumerate()]
    assert 'torch_gsample_prefetch' not in names
    assert read(loader) == expected[1]


def test_errors_in_the_thread_reach_the_caller(data):
    def fail(batch):
        raise RuntimeError('no good')

    with pytest.raises(RuntimeError, match='no good'):
        read(make(data, transform=fail))


def test_a_sampler_of_indices_is_passed_on(data):
    weights = torch.ones(NUM_NODES)
    sampler = torch.utils.data.WeightedRandomSampler(weights, 100)
    batches = list(make(data, sampler=sampler))
    assert sum(b.batch_size for b in batches) == 100
    with pytest.raises(TypeError, match="'sampler' must be"):
        make(data, sampler=3)


def test_a_graph_sampler_is_used(data, expected):
    sampler = NeighborSampler(data, [4, 3], seed=7)
    loader = NeighborLoader(data, sampler=sampler, batch_size=64)
    assert read(loader) == expected[0]
    with pytest.raises(ValueError, match='must be given to the'):
        NeighborLoader(data, sampler=sampler, replace=True)
    with pytest.raises(ValueError, match='num_neighbors'):
        NeighborLoader(data)


@pytest.mark.parametrize('workers', [0, 2])
def test_pyg_loaders_take_our_sampler(data, workers):
    sampler = NeighborSampler(data, [4, 3], seed=7)
    for loader in (
        pyg_loader.NeighborLoader(
            data, [4], neighbor_sampler=sampler, num_workers=workers
        ),
        pyg_loader.NodeLoader(
            data, node_sampler=sampler, num_workers=workers, batch_size=50
        ),
    ):
        batch = next(iter(loader))
        assert torch.equal(batch.x.view(-1).long(), batch.n_id)
        edges = batch.n_id[batch.edge_index]
        assert torch.equal(edges, data.edge_index[:, batch.e_id])


def test_batches_hold_the_features_of_their_nodes(data):
    loader = make(data, shuffle=True, drop_last=True)
    assert len(loader) == NUM_NODES // 64
    for batch in loader:
        assert torch.equal(batch.y, batch.n_id)
        assert torch.equal(batch.n_id[:64], batch.input_id)
        edges = batch.n_id[batch.edge_index]
        assert torch.equal(edges, data.edge_index[:, batch.e_id])


@pytest.mark.parametrize('workers', [0, 2])
def test_link_batches_do_not_depend_on_workers(data, workers):
    def batches(**kwargs):
        loader = LinkNeighborLoader(
            data,
            [3, 2],
            edge_label_index=data.edge_index[:, :200],
            neg_sampling='binary',
            batch_size=50,
            seed=2,
            true_negatives=True,
            exclude_seed_edges=True,
            **kwargs,
        )
        return [
            (b.n_id.tolist(), b.edge_label_index.tolist(), b.e_id.tolist())
            for b in loader
        ]

    assert batches(num_workers=workers) == batches(prefetch=0)
