"""Layers of one relation on the (emulated) GPU against the CPU."""

import pytest
import torch

from tests.cuda.gpu import Gpu
from tests.cuda.graphs import (
    DTYPES,
    SHAPES,
    skewed_graph,
    some_seeds,
)
from tests.cuda.simulated import OnCuda, Simulated, held
from tests.cuda.test_matrix import graph_of
from tests.cuda.test_walk import some_weights
from tests.ops.compare import assert_equal_tensors
from tests.ops.layers import plain_call, sample_plain_layers
from torch_gsample.ops.sample_layers import FRONTIERS
from torch_gsample.rng import make_key

RULES = FRONTIERS[:4]  # those of a GPU
KEYS = [make_key(seed, 1, 2) for seed in range(4)]
FANOUTS = [[], [3], [2, 3], [3, 0, 2], [4, -1, 2], [5, 2, 1, 3]]


def assert_same(cuda, indptr, indices, seeds, fanouts, **options):
    hops = len(fanouts)
    args = indptr, indices, seeds, fanouts, KEYS[:hops], list(range(hops))
    args, options = plain_call(*args, **options)
    out = cuda.operator('sample_layers')(*args, **options)
    want = torch.ops.gsample.sample_layers(*args, **options)
    assert_equal_tensors(out, want)


def test_the_way_to_a_gpu_changes_no_argument():
    """As far as that can be seen without one."""
    assert_same(Gpu('cpu'), *skewed_graph(0), some_seeds(0), [3, 2])


@pytest.mark.parametrize('shape', SHAPES, ids=str)
@pytest.mark.parametrize('frontier', RULES)
def test_hops_equal_the_cpu_in_any_order(cuda, frontier, shape):
    graph = skewed_graph(0)
    for seed, fanouts in enumerate(FANOUTS):
        cuda.configure(seed, *shape)
        options = {
            'replace': seed % 2 == 1 and -1 not in fanouts,
            'return_frontier': seed > 2,
            'sorted': seed in (2, 4),
        }
        seeds = some_seeds(seed)
        assert_same(cuda, *graph, seeds, fanouts, frontier=frontier, **options)


@pytest.mark.parametrize('frontier', RULES)
def test_weighted_hops(cuda, frontier):
    graph = skewed_graph(1)
    weight = some_weights(graph[0], graph[1].numel(), 1)
    for seed, fanouts in enumerate(FANOUTS[1:]):
        cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
        options = {
            'cum_weight': weight,
            'frontier': frontier,
            'replace': seed == 1,
            'return_frontier': seed == 0,
        }
        assert_same(cuda, *graph, some_seeds(seed), fanouts, **options)


@pytest.mark.parametrize('dtypes', DTYPES[1:], ids=str)
def test_narrow_graphs(cuda, dtypes):
    cuda.configure(3)
    for frontier in RULES:
        args = *graph_of(dtypes), some_seeds(1), [4, 3]
        assert_same(cuda, *args, frontier=frontier, sorted=True)


def test_hubs_are_drawn_by_blocks(cuda):
    graph = skewed_graph(3, hub=700)
    seeds = torch.tensor([5, 1, 5])
    for seed, fanouts in enumerate([[-1, 1], [600, 1], [1, 690]]):
        cuda.configure(seed)
        assert_same(cuda, *graph, seeds, fanouts)


def test_seeds_that_repeat_share_a_draw(cuda):
    """So that a sample may have more edges than were drawn."""
    graph = skewed_graph(0)
    for frontier in RULES:
        cuda.configure(2)
        args = *graph, torch.tensor([5]).repeat(70), [-1, 1]
        assert_same(cuda, *args, frontier=frontier)


@pytest.mark.parametrize('frontier', RULES)
def test_samples_that_need_more_room_are_drawn_again(cuda, frontier):
    """A graph of one column says little of what all its edges need."""
    num_nodes = 5000
    indptr = torch.full((num_nodes + 1,), num_nodes - 1)
    indptr[0] = 0
    indices = torch.arange(num_nodes - 1) + 1
    cuda.configure(1, 2, 64, 0)
    options = {'frontier': frontier, 'return_frontier': True}
    assert_same(cuda, indptr, indices, torch.tensor([0]), [-1], **options)
    seeds = torch.zeros(3, dtype=torch.int64)
    assert_same(cuda, indptr, indices, seeds, [-1], frontier=frontier)


def test_small_graphs(cuda):
    one = torch.tensor([0, 1]), torch.tensor([0])  # a self-loop
    for graph in (one, (torch.tensor([0, 0]), torch.tensor([]).long())):
        for seeds in ([], [0], [0, 0]):
            for frontier in RULES:
                args = *graph, torch.tensor(seeds).long(), [2, 2]
                assert_same(cuda, *args, frontier=frontier)
    none = torch.tensor([0]), torch.tensor([]).long()
    assert_same(cuda, *none, torch.tensor([]).long(), [2], sorted=True)


@pytest.mark.parametrize('frontier', ['nodes', 'unseen'])
def test_bad_input_is_named(cuda, frontier):
    indptr, indices = skewed_graph(0)
    seeds, keys = torch.tensor([5, 1]), KEYS[:2]
    call = cuda.operator('sample_layers')

    def fails(indptr, indices, seeds, message):
        args = indptr, indices, seeds, [-1, 2], keys, [0, 1]
        args, options = plain_call(*args, frontier=frontier)
        with pytest.raises(RuntimeError, match=message):
            call(*args, **options)

    fails(indptr, indices, seeds + 75, r"'seeds' must be in \[0, 80\) \(got ")
    fails(indptr, indices - 99, seeds, r"'indices' must be in \[0, 80\) ")
    fails(indptr - 200, indices, seeds, "'indptr' must ascend from 0 to the ")
    none = torch.tensor([0]), torch.tensor([]).long()
    fails(*none, seeds, r"'seeds' must be in \[0, 0\) \(got 5 at position 0")


@pytest.mark.sanitize
@pytest.mark.parametrize('frontier', RULES)
def test_hops_under_a_sanitizer(cuda, frontier):
    graph = skewed_graph(0, hub=20)
    cuda.configure(7, 2, 64, 30)
    weight = some_weights(graph[0], graph[1].numel(), 1)
    for cum_weight in (None, weight):
        args = *graph, some_seeds(0), [3, 2]
        options = {'cum_weight': cum_weight, 'sorted': frontier == 'new'}
        assert_same(cuda, *args, frontier=frontier, **options)


@pytest.mark.parametrize('frontier', RULES)
def test_hops_on_simulated_cuda(emulated, frontier):
    emulated.configure(5, 2, 64, 10)
    graph, seeds = graph_of(DTYPES[0]), some_seeds(0)
    options = {'key': KEYS[:2], 'frontier': frontier}
    want = sample_plain_layers(*graph, seeds, [3, 2], **options)
    with Simulated(emulated) as simulated:
        graph = map(OnCuda, graph)
        out = sample_plain_layers(*graph, OnCuda(seeds), [3, 2], **options)
        assert simulated.kernels == {'sample_layers'}
        bad = OnCuda(seeds + 80)
        with pytest.raises(IndexError, match="'seeds' must be in"):
            sample_plain_layers(
                *map(OnCuda, graph_of(DTYPES[0])), bad, [1], key=KEYS[:1]
            )
    assert [held(x).tolist() for part in out for x in part] == [
        x.tolist() for part in want for x in part
    ]
    assert not simulated.on_cpu


@pytest.mark.parametrize('frontier', FRONTIERS[4:])
def test_columns_as_edges_come_are_refused(cuda, frontier):
    args = *skewed_graph(0), torch.tensor([0]), [1, 1]
    with pytest.raises(RuntimeError, match="'edges' and 'walk' need a graph"):
        assert_same(cuda, *args, frontier=frontier)
