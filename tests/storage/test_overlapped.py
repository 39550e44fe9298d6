"""Two threads that sample a graph on disk change nothing but the time."""

import threading

import pytest
import torch
from torch_geometric.data import Data

from torch_gsample.algorithms import graphsage
from torch_gsample.loader import (
    LinkNeighborLoader,
    NeighborLoader,
    prefetch,
)
from torch_gsample.loader.prefetch import in_prefetch_thread
from torch_gsample.samplers import (
    FastGCNSampler,
    LaborSampler,
    LadiesSampler,
    ProgramSampler,
    ShaDowSampler,
)
from torch_gsample.storage import (
    ChunkedGraph,
    DiskFeatureStore,
    FeatureFile,
    RandomReadSampler,
)

NUM_NODES = 200

SAMPLERS = {
    'ladies': lambda g: LadiesSampler(g, [16, 16], seed=0),
    'fastgcn': lambda g: FastGCNSampler(g, [64, 64], seed=0),
    'labor': lambda g: LaborSampler(g, [4, 4], seed=0),
    'shadow': lambda g: ShaDowSampler(g, [4, 2], seed=0),
    'random reads': lambda g: RandomReadSampler(g, [4, 3], seed=0),
    'a program': lambda g: ProgramSampler(g, graphsage, [4, 3], seed=0),
}


@pytest.fixture
def stores(tmp_path):
    torch.manual_seed(0)
    edge_index = torch.randint(NUM_NODES, (2, 3000))
    graph = ChunkedGraph.write(
        tmp_path / 'graph', edge_index, num_nodes=NUM_NODES, chunk_bytes=4096
    )
    x = FeatureFile.write(tmp_path / 'x.gsf', torch.rand(NUM_NODES, 4))
    return DiskFeatureStore({'x': x}), graph


def make(stores, sampler, **options):
    return NeighborLoader(
        stores,
        input_nodes=torch.arange(NUM_NODES),
        sampler=sampler,
        batch_size=8,
        shuffle=True,
        **options,
    )


def assert_equal(found, want):
    assert len(found) == len(want)
    for a, b in zip(found, want, strict=True):
        assert torch.equal(a.n_id, b.n_id)
        assert torch.equal(a.edge_index, b.edge_index)
        assert torch.equal(a.x, b.x)


class Meeting:
    """Notes whether two samples are drawn at the same time."""

    def __init__(self, sampler, expected, fail_at=None):
        self.barrier = threading.Barrier(2) if expected else None
        self.calls, self.fail_at, self.marked = 0, fail_at, []
        self.sample = sampler.sample_from_nodes
        sampler.sample_from_nodes = self

    def __call__(self, inputs, **kwargs):
        self.calls += 1
        self.marked.append(in_prefetch_thread())
        number = self.calls
        if self.barrier is not None and number in (2, 3):
            self.barrier.wait(timeout=10)
        if number == self.fail_at:
            raise RuntimeError('out of ink')
        return self.sample(inputs, **kwargs)


@pytest.mark.parametrize('name', SAMPLERS)
@pytest.mark.parametrize('ahead', [1, 2, 5])
def test_batches_are_those_of_one_thread(stores, name, ahead):
    found = make(stores, SAMPLERS[name](stores[1]), prefetch=ahead)
    want = make(stores, SAMPLERS[name](stores[1]), prefetch=0)
    for _ in range(2):
        assert_equal(list(found), list(want))


@pytest.mark.parametrize('name', [n for n in SAMPLERS if n != 'a program'])
@pytest.mark.parametrize('planned', [False, True])
def test_a_second_batch_begins_while_the_first_is_sampled(
    stores, name, planned
):
    sampler = SAMPLERS[name](stores[1])
    if planned:
        stores[0].plan_reads(8 << 20, plan='single')
    meeting = Meeting(sampler, expected=True)
    assert len(list(make(stores, sampler))) == 25
    assert all(meeting.marked)


def threads_of(loader, sampler):
    """Returns the prefetching threads that sampled an epoch."""
    sample, threads = sampler.sample_from_nodes, set()

    def noted(inputs, **kwargs):
        if in_prefetch_thread() or loader.prefetch == 0:
            threads.add(threading.current_thread())
        return sample(inputs, **kwargs)

    sampler.sample_from_nodes = noted
    assert len(list(loader)) == 25
    return threads


def test_a_program_of_the_user_has_one_thread(stores):
    sampler = SAMPLERS['a program'](stores[1])
    assert len(threads_of(make(stores, sampler), sampler)) == 1


def test_a_graph_in_memory_has_one_thread():
    data = Data(edge_index=torch.randint(9, (2, 50)), num_nodes=9)
    sampler = LadiesSampler(data, [4], seed=0)
    loader = NeighborLoader(data, sampler=sampler, batch_size=1)
    assert not prefetch._overlaps(loader)


@pytest.mark.parametrize(
    'options',
    [
        {'transform_sampler_output': lambda out: out},
        {'static_shapes': True},
        {'prefetch': 0},
    ],
)
def test_functions_of_the_user_have_one_thread(stores, options):
    data = Data(x=torch.rand(NUM_NODES, 4)), stores[1]
    sampler = SAMPLERS['random reads'](stores[1])
    assert len(threads_of(make(data, sampler, **options), sampler)) == 1


@pytest.mark.parametrize('fail_at', [1, 2, 3, 25])
def test_an_error_comes_after_the_batches_before_it(stores, fail_at):
    sampler = SAMPLERS['ladies'](stores[1])
    Meeting(sampler, expected=False, fail_at=fail_at)
    before, seen = threading.active_count(), 0
    batches, error = iter(make(stores, sampler)), None
    while error is None:
        try:
            next(batches)
            seen += 1
        except RuntimeError as raised:
            error = raised
    assert str(error) == 'out of ink'
    del batches, error
    assert seen in (fail_at - 1, fail_at - 2)  # either thread makes a call
    assert threading.active_count() == before


def test_a_loader_that_is_left_early_ends_its_threads(stores):
    before = threading.active_count()
    batches = iter(make(stores, SAMPLERS['labor'](stores[1])))
    for _ in range(3):
        next(batches)
    assert threading.active_count() > before
    del batches
    assert threading.active_count() == before


def test_links_are_those_of_one_thread(stores):
    edges = torch.randint(NUM_NODES, (2, 40))

    def links(ahead):
        return LinkNeighborLoader(
            stores,
            edge_label_index=(None, edges),
            neg_sampling='binary',
            sampler=RandomReadSampler(stores[1], [4, 3], seed=0),
            batch_size=4,
            shuffle=True,
            prefetch=ahead,
        )

    assert_equal(list(links(2)), list(links(0)))
