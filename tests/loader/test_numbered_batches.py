"""A loader's samples depend on (seed, epoch, batch) and on nothing else."""

import pytest
import torch
import torch_geometric.loader as pyg_loader
from torch_geometric.data import Data

from torch_gsample import NeighborSampler
from torch_gsample.loader import NeighborLoader

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


@pytest.mark.parametrize(
    'options',
    [{'prefetch': 1}, {'prefetch': 5}, {'index_dtype': torch.int64}],
    ids=str,
)
def test_nothing_else_changes_samples(data, expected, options):
    loader = make(data, **options)
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


def test_set_epoch_returns_to_an_epoch(data, expected):
    loader = make(data)
    loader.set_epoch(1)
    assert read(loader) == expected[1]
    loader.set_epoch(0)
    assert read(loader) == expected[0]


def test_seed_is_drawn_from_the_default_generator(data):
    torch.manual_seed(5)
    first = read(make(data, seed=None))
    torch.manual_seed(5)
    assert read(make(data, seed=None)) == first
    assert read(make(data, seed=None)) != first


def test_without_a_seed_shuffling_is_the_same_as_in_pyg(data):
    sampler = NeighborSampler(data, [4, 3], seed=7)
    torch.manual_seed(0)
    theirs = pyg_loader.NodeLoader(
        data, node_sampler=sampler, batch_size=64, shuffle=True
    )
    order = [b.input_id.tolist() for b in theirs]
    for prefetch in (0, 2):
        ours = make(data, seed=None, shuffle=True, prefetch=prefetch)
        torch.manual_seed(0)
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


def test_a_graph_sampler_is_used(data, expected):
    sampler = NeighborSampler(data, [4, 3], seed=7)
    loader = NeighborLoader(data, sampler=sampler, batch_size=64)
    assert read(loader) == expected[0]
