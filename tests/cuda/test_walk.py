"""Walks on the GPU against the CPU, bit for bit."""

import pytest
import torch

from tests.cuda.graphs import DTYPES, SHAPES, skewed_graph
from tests.ops.compare import assert_equal_tensors, numbers
from torch_gsample.ops import cumulate_weights
from torch_gsample.rng import make_key

SEEDS = torch.tensor([5, 1, 5, 0, 37, 79, 12, 40, 77])
FIRST_ORDER = {
    'uniform': {},
    'restart': {'restart': 0.3},
    'always': {'restart': 1.0},
}
#: Return and in-out parameters; the last are rejected 64 times at once.
LAWS = [(1.0, 1.0), (0.5, 2.0), (4.0, 0.25), (1e-9, 1.0), (1e9, 1.0)]


def assert_same(cuda, name, *args, **options):
    options = numbers(name, options)
    out = cuda.operator(name)(*args, **options)
    want = getattr(torch.ops.gsample, name)(*args, **options)
    assert_equal_tensors(out, want)
    return out


def some_weights(indptr, num_edges, seed):
    """With zeros, and columns of nothing else."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.rand(num_edges, generator=generator).double()
    weight[torch.rand(num_edges, generator=generator) < 0.2] = 0
    weight[indptr[3] : indptr[5]] = 0
    return cumulate_weights(indptr, weight)


def sorted_columns(indptr, indices):
    column = torch.repeat_interleave(indptr.diff())
    order = torch.argsort(column * 10**6 + indices)
    return indptr, indices[order]


@pytest.mark.parametrize('shape', SHAPES, ids=str)
@pytest.mark.parametrize('weighted', [False, True])
@pytest.mark.parametrize('options', FIRST_ORDER.values(), ids=FIRST_ORDER)
def test_first_order_walks(cuda, options, weighted, shape):
    graph = skewed_graph(0)
    if weighted:
        options = options | {
            'cum_weight': some_weights(graph[0], graph[1].numel(), 1)
        }
    for seed, length in enumerate([0, 1, 2, 9]):
        cuda.configure(seed, *shape)
        key = make_key(seed, 1, 2)
        args = (*graph, SEEDS, length, key, 3)
        assert_same(cuda, 'random_walk', *args, **options)


@pytest.mark.parametrize('law', LAWS, ids=str)
@pytest.mark.parametrize('weighted', [False, True])
@pytest.mark.parametrize('is_sorted', [False, True])
def test_second_order_walks(cuda, is_sorted, weighted, law):
    graph = skewed_graph(1)
    if is_sorted:
        graph = sorted_columns(*graph)
    options = {'is_sorted': is_sorted}
    if not is_sorted and law is LAWS[0]:
        options = {'ascending': sorted_columns(*graph)[1]}
    if weighted:
        options['cum_weight'] = some_weights(graph[0], graph[1].numel(), 1)
    for seed, length in enumerate([0, 1, 8]):
        cuda.configure(seed, *SHAPES[seed])
        args = (*graph, SEEDS, length, *law, make_key(seed), 3)
        assert_same(cuda, 'node2vec_walk', *args, **options)


def test_candidates_that_are_nearly_always_rejected(cuda):
    """A walk between a hub and its leaves: then masses decide."""
    leaves = 40
    indptr = torch.tensor([0, leaves, *range(leaves + 1, 2 * leaves + 1)])
    indices = torch.cat([torch.arange(1, leaves + 1), torch.zeros(leaves)])
    indices = indices.long()
    for is_sorted in (False, True):
        args = indptr, indices, SEEDS[:4], 12, 1e-7, 1.0, make_key(0)
        cuda.configure()
        nodes, _ = assert_same(
            cuda, 'node2vec_walk', *args, is_sorted=is_sorted
        )
        assert (nodes[:, 2:] == nodes[:, :-2]).all()  # they always return


@pytest.mark.parametrize('restart', [0.0, 0.3])
@pytest.mark.parametrize('path', [[0], [1], [0, 1, 1, 0, 0, 1, 0]])
def test_walks_along_a_path(cuda, path, restart):
    graphs = skewed_graph(0), skewed_graph(1)
    indptr, indices = map(list, zip(*graphs, strict=True))
    for seed, shape in enumerate(SHAPES):
        cuda.configure(seed, *shape)
        args = indptr, indices, path, SEEDS, make_key(seed), 3
        assert_same(cuda, 'metapath_walk', *args, restart=restart)


@pytest.mark.parametrize('seed', range(25))
def test_the_order_of_execution_changes_nothing(cuda, seed):
    graph = skewed_graph(2)
    cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
    key = make_key(4)
    assert_same(cuda, 'random_walk', *graph, SEEDS, 7, key, restart=0.1)
    assert_same(cuda, 'node2vec_walk', *graph, SEEDS, 7, 0.5, 2.0, key)


@pytest.mark.parametrize('dtypes', DTYPES, ids=str)
def test_all_dtypes(cuda, dtypes):
    graph = [t.to(d) for t, d in zip(skewed_graph(2), dtypes, strict=True)]
    cuda.configure()
    key = make_key(4)
    assert_same(cuda, 'random_walk', *graph, SEEDS, 5, key)
    assert_same(cuda, 'node2vec_walk', *graph, SEEDS, 5, 2.0, 0.5, key)
    lists = [graph[0]], [graph[1]]
    assert_same(cuda, 'metapath_walk', *lists, [0, 0], SEEDS, key)


def test_walks_of_nobody(cuda):
    empty = torch.empty(0, dtype=torch.int64)
    cuda.configure()
    graph = torch.zeros(1, dtype=torch.int64), empty
    assert_same(cuda, 'random_walk', *graph, empty, 3, make_key(0))
    args = *graph, empty, 3, 1.0, 1.0, make_key(0)
    assert_same(cuda, 'node2vec_walk', *args)


FAULTS = [
    ({'seeds': [0, 4]}, "'seeds' must be in \\[0, 4\\) \\(got 4 at pos"),
    ({'seeds': [-1]}, "'seeds' must be in \\[0, 4\\) \\(got -1 at pos"),
    ({'indptr': [0, 2, 1, 3, 4]}, "'indptr' must ascend from 0 to the 4"),
    ({'indptr': [0, 1, 2, 3, 9]}, "'indptr' must ascend from 0 to the 4"),
    ({'indptr': [-5, 1, 2, 3, 4]}, "'indptr' must ascend from 0 to the 4"),
    ({'indices': [1, 4, 2, 1]}, 'graph of the next step \\(got 4 at edge 1 o'),
    ({'indices': [-7, 2, 3, 0]}, 'graph of the next step \\(got -7 at edge 0'),
]


def bad_call(name, change):
    given = {
        'indptr': [0, 1, 2, 3, 4],
        'indices': [1, 2, 3, 0],
        'seeds': [0, 1, 2, 3],
    } | change
    graph = torch.tensor(given['indptr']), torch.tensor(given['indices'])
    seeds = torch.tensor(given['seeds'])
    key = make_key(0)
    if name == 'random_walk':
        return *graph, seeds, 8, key
    if name == 'node2vec_walk':
        return *graph, seeds, 8, 2.0, 0.5, key
    return [graph[0]], [graph[1]], [0] * 8, seeds, key


@pytest.mark.parametrize(('change', 'message'), FAULTS)
@pytest.mark.parametrize(
    'name', ['random_walk', 'node2vec_walk', 'metapath_walk']
)
def test_bad_input_ends_in_an_error(cuda, name, change, message):
    cuda.configure()
    with pytest.raises(RuntimeError, match=f'{name}: .*{message}'):
        cuda.operator(name)(*bad_call(name, change))


@pytest.mark.parametrize('cum', [-1, 0, 2**62, -(2**63)])
def test_weights_that_are_no_sums_do_no_harm(cuda, cum):
    indptr, indices = skewed_graph(0)
    cum_weight = some_weights(indptr, indices.numel(), 1)
    cum_weight[::3] = cum
    args = indptr, indices, SEEDS, 6, make_key(0)
    cuda.configure()
    assert_same(cuda, 'random_walk', *args, cum_weight=cum_weight)
