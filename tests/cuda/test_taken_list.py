"""Many weighted draws without replacement in a column, by a warp."""

import pytest
import torch

from tests.cuda import test_plain_layers
from tests.cuda.graphs import SHAPES, skewed_graph
from tests.ops.compare import assert_equal_tensors
from tests.ops.neighbors import call_one
from torch_gsample.ops import cumulate_weights
from torch_gsample.rng import make_key

ON_CPU = torch.ops.gsample.sample_neighbors
SEEDS = torch.tensor([5, 1, 5, 0])
#: Where a warp takes over, merges, has more than one merge, and where a block
#: takes over; nearly all and all of a hub of 70, and of 700.
COUNTS = [16, 17, 31, 32, 33, 63, 64, 65, 69, 70, 97]
MANY = [200, 512, 513, 600, 699, 700]


def halves(size):
    """Each weight is half the one before: draws ascend, nearly always."""
    return torch.exp2(-(torch.arange(size) % 60).double())


WEIGHTS = {
    'random': lambda size: torch.rand(size).double(),
    'equal': lambda size: torch.ones(size).double(),
    'ascending draws': halves,
    'descending draws': lambda size: halves(size).flip(0),
    'many zeros': lambda size: (torch.rand(size) - 0.6).clamp(0).double(),
}


def weighted_graph(kind, hub):
    indptr, indices = skewed_graph(3, hub=hub)
    torch.manual_seed(hub)
    weight = WEIGHTS[kind](indices.numel())
    return (indptr, indices), cumulate_weights(indptr, weight)


def assert_same(cuda, graph, cum_weight, fanouts, seed):
    """Both operators that have several hops."""
    args = *graph, SEEDS, fanouts, make_key(seed)
    options = {'cum_weight': cum_weight}
    out = call_one(cuda.operator('sample_neighbors'), *args, **options)
    want = call_one(ON_CPU, *args, **options)
    assert_equal_tensors(out, want)
    test_plain_layers.assert_same(
        cuda, *graph, SEEDS, fanouts, frontier='nodes', **options
    )


@pytest.mark.parametrize('k', COUNTS)
@pytest.mark.parametrize('kind', WEIGHTS)
def test_draws_equal_the_cpu(cuda, kind, k):
    graph, cum_weight = weighted_graph(kind, 70)
    cuda.configure(k, *SHAPES[k % len(SHAPES)])
    assert_same(cuda, graph, cum_weight, [k, 3], k)


@pytest.mark.parametrize('k', MANY)
@pytest.mark.parametrize('kind', WEIGHTS)
def test_hubs_are_drawn_from_by_one_warp(cuda, kind, k):
    graph, cum_weight = weighted_graph(kind, 700)
    cuda.configure(k, 2, 32 << k % 3, 5)
    assert_same(cuda, graph, cum_weight, [k], k)


def test_the_list_is_searched_in_steps(cuda):
    """More intervals than 32 lanes look at in two looks."""
    graph, cum_weight = weighted_graph('random', 3000)
    cuda.configure(1, 1, 32, 0)
    args = *graph, SEEDS[:1], [1500], make_key(7)
    out = call_one(
        cuda.operator('sample_neighbors'), *args, cum_weight=cum_weight
    )
    want = call_one(ON_CPU, *args, cum_weight=cum_weight)
    assert_equal_tensors(out, want)


@pytest.mark.sanitize
def test_memory_and_order(cuda):
    graph, cum_weight = weighted_graph('random', 70)
    cuda.configure(1, 1, 32)
    assert_same(cuda, graph, cum_weight, [66], 1)


@pytest.mark.parametrize('seed', range(4))
def test_invalid_sums_give_some_sample(cuda, seed):
    """Nothing beyond the edges is read or written."""
    graph, cum_weight = weighted_graph('random', 700)
    torch.manual_seed(seed)
    edges = graph[1].numel()
    cum_weight[:edges] = cum_weight[:edges][torch.randperm(edges)]
    cuda.configure(seed)
    for k in (40, 600):
        args = *graph, SEEDS[:1], [k], make_key(seed)
        out = call_one(
            cuda.operator('sample_neighbors'), *args, cum_weight=cum_weight
        )
        first, last = graph[0][5], graph[0][6]
        assert bool(((out[3] >= first) & (out[3] < last)).all())
