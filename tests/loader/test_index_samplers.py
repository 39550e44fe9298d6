"""The order of seeds: shuffling, and torch's samplers of indices."""

import itertools

import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
)
from torch_geometric.loader import ImbalancedSampler

from tests.loader.batches import graph, loader_of, run
from torch_gsample.loader import LinkNeighborLoader


def ids(loader):
    return [batch.input_id.tolist() for batch in loader]


def order(loader):
    return list(itertools.chain.from_iterable(ids(loader)))


def test_drop_last_drops_the_rest():
    loader = loader_of(drop_last=True)
    assert len(loader) == 3
    assert ids(loader) == [list(range(i, i + 16)) for i in (0, 16, 32)]


def test_a_generator_shuffles():
    generator = torch.Generator().manual_seed(4)
    loader = loader_of(shuffle=True, generator=generator)
    first = ids(loader)
    assert sorted(itertools.chain(*first)) == list(range(60))
    assert ids(loader) != first
    generator.manual_seed(4)
    assert ids(loader) == first


@pytest.mark.parametrize('num_workers', [0, 2])
@pytest.mark.parametrize(
    'make',
    [
        lambda: RandomSampler(range(60), replacement=True, num_samples=40),
        lambda: SubsetRandomSampler(range(40)),
        lambda: ImbalancedSampler(torch.arange(60) % 7, num_samples=40),
        lambda: DistributedSampler(range(40), num_replicas=1, rank=0),
    ],
    ids=['random', 'subset', 'imbalanced', 'distributed'],
)
def test_samplers_of_indices_are_passed_to_torch(make, num_workers):
    loader = loader_of(sampler=make(), num_workers=num_workers, seed=None)
    assert len(loader) == 3
    torch.manual_seed(5)
    # Workers and iterators draw a base seed first, as without a sampler.
    torch.empty((), dtype=torch.int64).random_()
    expected = list(make())
    torch.manual_seed(5)
    assert order(loader) == expected


@pytest.mark.parametrize(
    'make',
    [
        lambda: RandomSampler(range(60), replacement=True, num_samples=40),
        lambda: SubsetRandomSampler(range(40)),
        lambda: ImbalancedSampler(torch.arange(60) % 7, num_samples=40),
    ],
    ids=['random', 'subset', 'imbalanced'],
)
def test_index_samplers_draw_by_seed_and_epoch(make):
    def epochs(seed, **options):
        loader = loader_of(sampler=make(), seed=seed, **options)
        out = []
        for _ in range(2):
            torch.rand(3)  # as a model does
            out.append(order(loader))
        return out

    torch.manual_seed(5)
    want = epochs(1)
    assert want[0] != want[1]
    assert epochs(1, num_workers=2, persistent_workers=True) == want
    assert epochs(2) != want
    state = torch.get_rng_state()
    loader = loader_of(sampler=make(), seed=1, prefetch=0)
    list(loader)
    after = torch.get_rng_state()
    torch.set_rng_state(state)
    torch.empty((), dtype=torch.int64).random_()  # torch's base seed
    assert torch.equal(torch.get_rng_state(), after)


def test_a_sampler_with_epochs_is_told_them_unless_someone_else_does():
    sampler = DistributedSampler(range(40), num_replicas=1, rank=0)
    loader = loader_of(sampler=sampler)
    first, second = order(loader), order(loader)
    assert first != second
    loader.set_epoch(0)
    assert order(loader) == first
    sampler.set_epoch(7)  # by its user, from here on
    assert order(loader) != second
    assert sampler.epoch == 7
    sampler.set_epoch(0)
    assert order(loader) == first


@pytest.mark.parametrize('prefetch', [0, 2])
def test_a_batch_sampler_makes_the_batches(prefetch):
    batches = [[3, 1], [5], [9, 9, 2]]
    options = dict(batch_size=1, prefetch=prefetch)
    loader = loader_of(batch_sampler=batches, **options)
    assert ids(loader) == batches
    assert len(loader) == 3
    loader = loader_of(
        batch_sampler=BatchSampler(SequentialSampler(range(60)), 25, False),
        **options,
    )
    assert [len(b) for b in ids(loader)] == [25, 25, 10]


def test_batch_samplers_may_yield_tensors():
    batches = [torch.tensor([3, 1]), torch.tensor([5])]
    loader = loader_of(batch_sampler=batches, batch_size=1)
    assert ids(loader) == [[3, 1], [5]]


def test_the_place_of_a_batch_decides_its_draws_not_its_seeds():
    loader = loader_of(batch_sampler=[[3, 1]] * 3, batch_size=1)
    first, second, third = run(loader)
    assert first['n_id'][:2] == second['n_id'][:2] == [3, 1]
    assert first['e_id'] != second['e_id'] != third['e_id']
    other = loader_of(batch_sampler=[[3, 1], [5], [3, 1]], batch_size=1)
    assert run(other)[2] == third


def test_links_take_samplers_of_indices():
    loader = LinkNeighborLoader(
        graph(), [2], sampler=SubsetRandomSampler(range(8)), batch_size=4
    )
    assert sorted(order(loader)) == list(range(8))


def test_an_index_sampler_that_fails_fails_in_the_caller():
    class Broken:
        def __iter__(self):
            yield 1
            raise RuntimeError('no more')

        def __len__(self):
            return 2

    loader = loader_of(sampler=Broken(), batch_size=1)
    with pytest.raises(RuntimeError, match='no more'):
        list(loader)
