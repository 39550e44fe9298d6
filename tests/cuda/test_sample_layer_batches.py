"""Layers of many batches in a launch against the CPU, bit for bit."""

from itertools import chain

import pytest
import torch

from tests.cuda.graphs import DTYPES, SHAPES, skewed_graph
from tests.cuda.simulated import OnCuda, Simulated, held
from tests.cuda.test_matrix import graph_of
from tests.cuda.test_walk import some_weights
from tests.ops import test_sample_layers as layers
from tests.ops.batches import SEEDS, make_keys, ptr_of
from tests.ops.cases import OPTIONS
from tests.ops.compare import assert_equal_tensors
from tests.ops.layers import plain_call
from tests.ops.neighbors import make_graph
from torch_gsample import ops

RULES = 'row', 'nodes'
FANOUTS = [[], [3], [2, 3], [3, 0, 2], [4, -1, 2]]
ON_CPU = torch.ops.gsample.sample_layers
#: Of each batch and type: duplicates, and empty ones.
TYPED = (
    ([3, 29, 3], [0, 49, 7, 7], [], []),
    ([], [7, 0, 7], [1], []),
    ([], [], [], []),
    ([5, 3], [], [2, 2], []),
    ([29], [1, 2, 3, 4, 5, 6], [0], []),
)


def joined(batches):
    return torch.tensor([*chain(*batches)], dtype=torch.int64)


def keys(count, hops):
    return [make_keys(count, hop) for hop in range(hops)]


def assert_same(cuda, args, options):
    out = cuda.operator('sample_layers')(*args, **options)
    assert_equal_tensors(out, ON_CPU(*args, **options))
    return out


def assert_same_batches(
    cuda, indptr, indices, fanouts, batches=SEEDS, **options
):
    """One launch against the CPU, batch by batch."""
    hops = len(fanouts)
    args, options = plain_call(
        *(indptr, indices, joined(batches), fanouts),
        *(keys(len(batches), hops), list(range(hops))),
        **options,
    )
    return assert_same(cuda, args, options | {'ptr': [ptr_of(batches)]})


@pytest.mark.parametrize('frontier', RULES)
@pytest.mark.parametrize('weighted', [False, True])
def test_batches_equal_single_ones_in_any_order(cuda, frontier, weighted):
    graph = skewed_graph(0)
    weight = some_weights(graph[0], graph[1].numel(), 1)
    for seed, fanouts in enumerate(FANOUTS):
        cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
        options = {
            'cum_weight': weight if weighted else None,
            'frontier': frontier,
            'replace': seed % 2 == 1,
            'return_frontier': seed != 2,
        }
        assert_same_batches(cuda, *graph, fanouts, **options)


@pytest.mark.parametrize('dtypes', DTYPES, ids=str)
def test_all_dtypes(cuda, dtypes):
    indptr, indices = skewed_graph(2)
    weight = some_weights(indptr, indices.numel(), 2)
    graph = indptr.to(dtypes[0]), indices.to(dtypes[1])
    cuda.configure(3)
    for frontier in RULES:
        options = {'frontier': frontier, 'return_frontier': True}
        assert_same_batches(cuda, *graph, [5, 2], **options)
        options['cum_weight'] = weight
        assert_same_batches(cuda, *graph, [5, 2], **options)


@pytest.mark.parametrize('count', [1, 2, 64, 130])
def test_any_number_of_batches(cuda, count):
    cuda.configure(count)
    batches = [[b % 80, 5][: b % 3] for b in range(count)]
    options = {'return_frontier': True}
    assert_same_batches(cuda, *skewed_graph(1), [3, 2], batches, **options)


def test_batches_without_seeds(cuda):
    cuda.configure()
    for frontier in RULES:
        options = {'frontier': frontier, 'return_frontier': True}
        graph = skewed_graph(1)
        assert_same_batches(cuda, *graph, [3, 2], [[], [], []], **options)


def test_hubs_of_batches_are_drawn_by_blocks(cuda):
    """Nothing bounds the sample of a hub that many seeds name, either."""
    cuda.configure(2)
    batches = [[5] * 8, [1], [5] * 7]
    out = assert_same_batches(
        cuda, *skewed_graph(0, hub=700), [-1, 1], batches
    )
    assert out[1][0].numel() == 15 * 700


# Batches of several types and relations.


def assert_same_types(cuda, fanouts, batches=TYPED, **options):
    of_types = list(zip(*batches, strict=True))
    args, given = layers.operator_call(
        layers.some_graphs(),
        [joined(of_type) for of_type in of_types],
        fanouts,
        keys(len(batches), len(fanouts[0])),
        **options,
    )
    given['ptr'] = [ptr_of(of_type) for of_type in of_types]
    return assert_same(cuda, args, given)


@pytest.mark.parametrize('frontier', RULES)
@pytest.mark.parametrize(
    'options', ['plain', 'replace', 'weighted', 'weighted-replace']
)
def test_batches_of_types_equal_single_ones(cuda, options, frontier):
    """Columns of a type come from several relations, in any order."""
    for seed, fanouts in enumerate(layers.FANOUTS):
        cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
        assert_same_types(
            cuda,
            fanouts,
            frontier=frontier,
            return_frontier=seed % 2 == 0,
            **OPTIONS[options],
        )


def test_many_batches_of_types(cuda):
    """More than threads of a block, and blocks that have several."""
    batches = [
        ([b % 30, 5][: b % 3], [b % 50] * (b % 2), [b % 8], [])
        for b in range(70)
    ]
    for blocks in (1, 3, 7):
        cuda.configure(blocks, blocks, 32)
        fanouts = [[2, 1]] * len(layers.RELATIONS)
        assert_same_types(cuda, fanouts, batches, return_frontier=True)


@pytest.mark.sanitize
@pytest.mark.parametrize('frontier', RULES)
def test_memory_and_order(cuda, frontier):
    """Few edges, as sanitizers take their time."""
    cuda.configure(1, 3, 32)
    graph = skewed_graph(1, hub=40, num_nodes=20)
    batches = [[5, 1, 5], [], [1]]
    options = {'frontier': frontier, 'return_frontier': True}
    assert_same_batches(cuda, *graph, [3, 2], batches, **options)
    fanouts = [[2, 1]] * len(layers.RELATIONS)
    assert_same_types(cuda, fanouts, frontier=frontier)


# The wrapper, and faults.


def test_the_wrapper_on_simulated_cuda(emulated):
    emulated.configure(5, 2, 64, 10)
    csc = graph_of(DTYPES[0])
    seeds = [torch.tensor(s, dtype=torch.int64) for s in SEEDS]
    given = {'fanouts': [3, 2], 'key': keys(len(SEEDS), 2)}

    def graph(indptr, indices):
        return make_graph([indptr], [indices], [(0, 0)], [indptr.numel() - 1])

    want = ops.sample_layer_batches(graph(*csc), seeds, **given)
    with Simulated(emulated) as simulated:
        out = ops.sample_layer_batches(
            graph(*map(OnCuda, csc)), [*map(OnCuda, seeds)], **given
        )
        assert simulated.kernels == {'sample_layers'}
    for a, b in zip(out, want, strict=True):
        assert_equal_tensors([[*map(held, of)] for of in a], b)


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'batches': [[5, 1], [], [1, 2, 80]]}, 'got 80 at position 2'),
        ({'ptr': [0, 3, 2]}, "'ptr' must ascend from 0 to 2"),
        ({'ptr': [0, 1, 1]}, "'ptr' must ascend from 0 to 2"),
        ({'ptr': [1, 1, 2]}, "'ptr' must ascend from 0 to 2"),
        ({'ptr': [-5, 9, 2]}, "'ptr' must ascend from 0 to 2"),
        ({'frontier': 'new'}, "'ptr' needs the frontiers 'row' or 'nodes'"),
        ({'sorted': True}, "'ptr' needs the frontiers 'row' or 'nodes'"),
        ({'disjoint': True}, "'ptr' and 'disjoint' must not be given"),
    ],
)
def test_bad_batches_end_in_an_error(cuda, change, message):
    batches = change.pop('batches', [[1], [5]])
    ptr = torch.tensor(change.pop('ptr', [0, *ptr_of(batches)[1:]]))
    args, options = plain_call(
        *(*skewed_graph(0), joined(batches), [2, 1]),
        *(keys(ptr.numel() - 1, 2), [0, 1]),
        **change,
    )
    for seed in range(3):
        cuda.configure(seed, *SHAPES[seed])
        with pytest.raises(RuntimeError, match=message):
            cuda.operator('sample_layers')(*args, **options, ptr=[ptr])


def test_too_many_batches_for_a_key_are_an_error(cuda):
    """A task is one number: hop, batch and node."""
    cuda.configure()
    args, options = layers.operator_call(
        layers.some_graphs(),
        *(layers.typed_seeds(), [[1]] * len(layers.RELATIONS), keys(4, 1)),
    )
    # A copy: graphs share theirs.
    args = (*args[:2], [*args[2][:-1], 2**61], *args[3:])
    ptr = [torch.tensor([0, *[s.numel()] * 4]) for s in layers.typed_seeds()]
    with pytest.raises(RuntimeError, match=r'too many batches \(4\) for tree'):
        cuda.operator('sample_layers')(*args, **options, ptr=ptr)
