"""Workers: the same batches, and one graph in memory for all of them."""

import multiprocessing

import pytest
import torch
from torch.utils.data import get_worker_info

from tests.fresh import FORKS
from tests.loader.batches import (
    end_workers,
    graph,
    loader_of,
    passes,
    run,
    values,
)
from tests.samplers import graphs
from tests.samplers.graphs import FOLLOWS, RATES
from torch_gsample import NeighborSampler
from torch_gsample.loader import (
    GraphSAINTEdgeSampler,
    GraphSAINTNodeSampler,
    GraphSAINTRandomWalkSampler,
    HGTLoader,
    LinkNeighborLoader,
    NeighborLoader,
    ShaDowKHopSampler,
)


def node_loader(**options):
    return loader_of(graph(), shuffle=True, **options)


def typed_loader(**options):
    data = graphs.heterogeneous()
    data[RATES].weight = torch.arange(60.0)
    return loader_of(
        data,
        input_nodes='item',
        weight_attr='weight',
        disjoint=True,
        batch_size=2,
        **options,
    )


def link_loader(**options):
    data = graphs.heterogeneous()
    for node_type in ('user', 'item'):
        data[node_type].time = torch.arange(data[node_type].num_nodes)
    return LinkNeighborLoader(
        data,
        [3, 2],
        edge_label_index=FOLLOWS,
        edge_label_time=torch.arange(30) % 12,
        time_attr='time',
        neg_sampling={'mode': 'triplet', 'amount': 2},
        exclude_seed_edges=True,
        batch_size=4,
        seed=0,
        **options,
    )


def hgt_loader(**options):
    return HGTLoader(
        graphs.heterogeneous(),
        [3, 2],
        'item',
        batch_size=4,
        seed=0,
        shuffle=True,
        **options,
    )


def shadow_loader(**options):
    return ShaDowKHopSampler(
        graphs.homogeneous(2000, 40_000),
        2,
        5,
        batch_size=400,
        seed=0,
        shuffle=True,
        **options,
    )


def saint_loader(kind, *args):
    return lambda **options: kind(
        graph(),
        6,
        *args,
        num_steps=6,
        sample_coverage=2,
        log=False,
        seed=0,
        **options,
    )


LOADERS = {
    'node': node_loader,
    'typed': typed_loader,
    'link': link_loader,
    'hgt': hgt_loader,
    'shadow': shadow_loader,
    'saint node': saint_loader(GraphSAINTNodeSampler),
    'saint edge': saint_loader(GraphSAINTEdgeSampler),
    'saint walk': saint_loader(GraphSAINTRandomWalkSampler, 2),
}


def shuffled_passes(loader):
    torch.manual_seed(2)
    return passes(loader)


@pytest.mark.parametrize('name', LOADERS)
def test_batches_are_the_same_for_any_number_of_workers_and_threads(name):
    make, before = LOADERS[name], torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        expected = shuffled_passes(make(prefetch=0))
        for threads, options in (
            *((2, {}), (1, {'num_workers': 1}), (2, {'num_workers': 2})),
            (2, {'num_workers': 4, 'prefetch': 0}),
        ):
            torch.set_num_threads(threads)
            assert shuffled_passes(make(**options)) == expected, options
    finally:
        torch.set_num_threads(before)
    assert expected[0] != expected[1]


@pytest.mark.parametrize(
    ('name', 'context'),
    [('node', 'spawn'), ('shadow', FORKS), ('saint edge', FORKS)],
)
def test_workers_that_are_spawned_change_no_batch(name, context):
    make = LOADERS[name]
    outs = []
    for options in (
        {},
        {'num_workers': 1, 'multiprocessing_context': context},
    ):
        torch.manual_seed(2)
        outs.append(run(make(**options)))
    assert outs[0] == outs[1]


@pytest.mark.parametrize('options', [{}, {'prefetch': 0}], ids=str)
@pytest.mark.parametrize('name', LOADERS)
def test_workers_that_persist_end_with_their_loader(name, options):
    """By themselves: of a cycle, torch ends them by force, after 5 s each."""
    loader = LOADERS[name](num_workers=1, persistent_workers=True, **options)
    assert len(list(loader)) == len(loader)
    next(iter(loader))  # leaves work behind
    workers = loader._iterator._workers
    del loader
    assert [worker.exitcode for worker in workers] == [0]


@pytest.mark.parametrize(
    'options', [{'prefetch': 2}, {'prefetch': 0}, {'filter_per_worker': True}]
)
def test_a_pass_goes_on_without_its_loader(options):
    batches = iter(
        node_loader(num_workers=1, persistent_workers=True, **options)
    )
    assert len([values(batch) for batch in batches]) == 4


@pytest.mark.parametrize('filter_per_worker', [False, True])
def test_features_are_taken_in_workers_or_in_the_caller(filter_per_worker):
    def where(batch):
        batch.in_worker = get_worker_info() is not None
        return batch

    loader = loader_of(
        num_workers=2, filter_per_worker=filter_per_worker, transform=where
    )
    out = run(loader)
    assert all(b.pop('in_worker') == filter_per_worker for b in out)
    assert out == run(loader_of())


def shared(loader):
    sampler = loader.node_sampler
    csc = sampler.graph[None]
    return {csc.indptr.is_shared(), csc.indices.is_shared()}


def test_the_graph_is_in_shared_memory_if_there_are_workers():
    assert shared(loader_of()) == {False}
    assert shared(loader_of(num_workers=2)) == {True}


def test_workers_read_the_callers_graph():
    """Workers see later writes to the graph: they have no copy."""
    seen = []
    loader = loader_of(
        num_neighbors=[-1],
        num_workers=1,
        prefetch_factor=1,
        prefetch=0,
        batch_size=1,
    )
    indices = loader.node_sampler.graph[None].indices
    for i, batch in enumerate(loader):
        seen.append(batch.n_id[1:].tolist())
        if i == 0:
            indices.fill_(7)
    assert {v for n_id in seen[3:] for v in n_id} == {7}


def test_an_error_in_a_worker_reaches_the_caller():
    def fail(out):
        raise RuntimeError('out of ink')

    loader = loader_of(
        num_workers=1, filter_per_worker=True, transform_sampler_output=fail
    )
    with pytest.raises(RuntimeError, match='out of ink'):
        next(iter(loader))
    end_workers()


class FailsAt40(NeighborSampler):
    """Cannot sample node 40."""

    def sample_from_nodes(self, inputs):
        if 40 in inputs.node:
            raise RuntimeError('out of ink')
        return super().sample_from_nodes(inputs)


@pytest.mark.parametrize('prefetch', [0, 2])
def test_an_error_comes_in_its_place(prefetch):
    sampler = FailsAt40(graph(), [2], seed=0)
    loader = NeighborLoader(
        graph(),
        sampler=sampler,
        num_workers=1,
        prefetch=prefetch,
        batch_size=16,
    )
    batches = iter(loader)
    assert [next(batches).input_id[0].item() for _ in range(2)] == [0, 16]
    with pytest.raises(RuntimeError, match='out of ink'):
        next(batches)
    end_workers()


@pytest.mark.parametrize('prefetch', [0, 2])
def test_workers_end_where_features_cannot_be_joined(prefetch):
    def fail(out):
        raise RuntimeError('out of ink')

    loader = loader_of(
        num_workers=1,
        prefetch=prefetch,
        filter_per_worker=False,
        transform_sampler_output=fail,
    )
    before = multiprocessing.active_children()
    batches = iter(loader)
    workers = set(multiprocessing.active_children()).difference(before)
    with pytest.raises(RuntimeError, match='out of ink'):
        next(batches)
    del batches
    assert [worker.exitcode for worker in workers] == [0]


@pytest.mark.parametrize('num_workers', [0, 1])
@pytest.mark.filterwarnings('ignore:.*pin_memory')
def test_pinned_memory_changes_no_batch(num_workers):
    loader = loader_of(num_workers=num_workers, pin_memory=True)
    assert run(loader) == run(loader_of())


def test_threads_inside_workers_change_no_batch():
    """Forked after the caller used its threads."""
    options = dict(num_neighbors=[10, 10], batch_size=1000)
    data = graph(num_nodes=3000, num_edges=60_000)
    expected = run(loader_of(data, num_threads=2, **options))
    for num_threads in (1, 4):
        loader = loader_of(
            data, num_threads=num_threads, num_workers=2, **options
        )
        assert run(loader) == expected
