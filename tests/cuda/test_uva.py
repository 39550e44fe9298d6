"""Operators that read a graph, or features, in pinned memory of the host.

In the emulator kernels see such memory at another address, and the tensor
itself holds rubbish; on a GPU it is pinned.
"""

from functools import partial

import pytest
import torch

from tests.cuda.graphs import skewed_graph, some_seeds
from tests.cuda.test_walk import some_weights
from tests.ops.layers import plain_call, typed_call
from torch_gsample.ops.sample_layers import FRONTIERS
from torch_gsample.rng import make_key

RULES = FRONTIERS[:4]  # those of a GPU
KEY = make_key(3, 1, 2)
SIZE = 80
PTR = torch.tensor([0, 4, some_seeds(0).numel()])  # of two batches


def hops(indptr, indices, seeds, cum_weight=None, **options):
    args = indptr, indices, seeds, [4, 3], [KEY] * 2, [0, 1]
    return plain_call(*args, cum_weight, **options)


def neighbors(indptr, indices, seeds, cum_weight=None, **options):
    graph = [indptr, indices]
    if cum_weight is not None:
        graph += [cum_weight, seeds[:0]]
    return (graph, [0, 0], [SIZE], [seeds], [4, 3], KEY), options


def layers(indptr, indices, seeds, cum_weight=None):
    weights = [] if cum_weight is None else [cum_weight]
    types = [0] * 2, [0] * 2, [SIZE]  # of rows and columns, and nodes
    graph = [indptr] * 2, [indices] * 2, *types, [seeds], [4, 3] * 2
    return typed_call(*graph, weights * 2, [], [], [KEY] * 2, [0, 1])


def walk(indptr, indices, seeds, cum_weight=None):
    return (indptr, indices, seeds, 5, KEY), {'cum_weight': cum_weight}


def node2vec(indptr, indices, seeds, cum_weight=None):
    args = indptr, indices, seeds, 5, 0.5, 2.0, KEY
    return args, {'cum_weight': cum_weight}


def metapath(indptr, indices, seeds, cum_weight=None):
    return ([indptr] * 2, [indices] * 2, [0, 1, 0], seeds, KEY), {}


def negatives(indptr, indices, seeds, cum_weight=None):
    args = torch.arange(seeds.numel()), SIZE, True, KEY
    graph = {'indptr': indptr, 'indices': indices}
    return args, {'anchor': seeds, **graph}


CALLS = {
    'slice_cols': lambda *graph: (graph[:3], {}),
    'sample_columns': lambda *graph: (
        (graph[0], 3, KEY),
        {'cols': graph[2], 'cum_weight': graph[3]},
    ),
    'slice_rows': lambda *graph: ((*graph[:2], SIZE, graph[2]), {}),
    'slice_rows, of batches': lambda *graph: (
        (*graph[:2], SIZE, graph[2], graph[2], PTR, PTR),
        {},
    ),
    'induce_subgraph': lambda *graph: (
        (*graph[:2], SIZE, graph[2].unique(), graph[2]),
        {},
    ),
    'random_walk': walk,
    'node2vec_walk': node2vec,
    'metapath_walk': metapath,
    'forest_fire': lambda *graph: ((*graph[:3], 0.3, KEY), {}),
    'negative_sample': negatives,
    'sample_neighbors': neighbors,
    'sample_neighbors, padded': partial(neighbors, max_edges=[400]),
    'sample_layers': hops,
    'sample_layers, typed': layers,
}


def assert_equal(out, want):
    for x, y in zip(out, want, strict=True):
        if isinstance(y, (list, tuple)):
            assert_equal(x, y)
        else:
            assert x.dtype == y.dtype
            assert torch.equal(x, y)


def on_cpu(name, args, options):
    """The CPU's results; ThreadSanitizer does not know its threads."""
    name = name.partition(',')[0]
    operator = getattr(torch.ops.gsample, name).default
    if 'num_threads' in [a.name for a in operator._schema.arguments]:
        options = {**options, 'num_threads': 1}
    return operator(*args, **options)


def graph_parts(weighted, seed=0):
    graph = skewed_graph(seed)
    weight = some_weights(*graph[:1], graph[1].numel(), 1)
    return (*graph, some_seeds(seed), weight if weighted else None)


def on_host(cuda, parts, pinned=True):
    """The graph on the host, and the seeds where kernels run."""
    indptr, indices, seeds, weight = parts
    if weight is not None:
        weight = cuda.on_host(weight, pinned)
    return (
        cuda.on_host(indptr, pinned),
        cuda.on_host(indices, pinned),
        seeds,
        weight,
    )


@pytest.mark.sanitize
@pytest.mark.parametrize('weighted', [False, True])
@pytest.mark.parametrize('name', CALLS)
def test_graphs_are_read_in_pinned_memory(cuda, name, weighted):
    cuda.configure(3, 2, 64, 20)
    parts = graph_parts(weighted)
    args, options = CALLS[name](*parts)
    want = on_cpu(name, args, options)
    args, options = CALLS[name](*on_host(cuda, parts))
    operator = cuda.operator(name.partition(',')[0])
    assert_equal(operator(*args, **options), want)


@pytest.mark.parametrize('seed', range(6))
@pytest.mark.parametrize('frontier', RULES)
def test_each_frontier_reads_pinned_memory(cuda, frontier, seed):
    cuda.configure(seed, 3, 64, 20)
    parts = graph_parts(seed % 2 == 1, seed)
    options = {'frontier': frontier}
    args, given = hops(*parts, **options)
    want = torch.ops.gsample.sample_layers(*args, **given)
    args, given = hops(*on_host(cuda, parts), **options)
    assert_equal(cuda.operator('sample_layers')(*args, **given), want)


@pytest.mark.parametrize('name', CALLS)
def test_memory_that_is_not_pinned_is_an_error(cuda, name):
    cuda.configure()
    args, options = CALLS[name](*on_host(cuda, graph_parts(False), False))
    message = 'the graph must be on the device of .* or in pinned host memory'
    with pytest.raises(RuntimeError, match=message):
        cuda.operator(name.partition(',')[0])(*args, **options)


def test_rows_are_read_in_pinned_memory(cuda):
    cuda.configure()
    values, index = torch.rand(50, 7), torch.tensor([3, 49, 3, 0])
    there = cuda.on_host(values)
    out = cuda.operator('gather_rows')(there, index)
    assert torch.equal(out, values[index])
    with pytest.raises(RuntimeError, match='or in pinned host memory'):
        cuda.operator('gather_rows')(cuda.on_host(values, False), index)


def test_scaled_rows_are_read_in_pinned_memory(cuda):
    cuda.configure()
    values, scale = torch.ones(50, 7, dtype=torch.int8), torch.rand(50)
    index, gather = torch.tensor([3, 49, 3, 0]), cuda.operator('gather_rows')
    there, scales = cuda.on_host(values), cuda.on_host(scale)
    assert torch.equal(gather(there, index, scales)[:, 0], scale[index])
    with pytest.raises(RuntimeError, match="'scale' must be on the device of"):
        gather(there, index, cuda.on_host(scale, False))
