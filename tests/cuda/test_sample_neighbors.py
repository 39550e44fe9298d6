"""sample_neighbors on the (emulated) GPU against the CPU, bit for bit."""

import itertools
import resource
from functools import partial
from pathlib import Path

import pytest
import torch

from tests.cuda.conftest import ON_CUDA
from tests.cuda.gpu import Gpu
from tests.cuda.graphs import DTYPES, SHAPES, skewed_graph, some_seeds
from tests.ops import cases
from tests.ops import typed as types
from tests.ops.compare import assert_equal_tensors
from tests.ops.neighbors import (
    call_one,
    make_graph,
    operator_arguments,
)
from torch_gsample import ops
from torch_gsample.csc import CSC
from torch_gsample.ops import _check
from torch_gsample.rng import EPOCH_SCOPE, make_key
from torch_gsample.testing import random_graph

ON_CPU = torch.ops.gsample.sample_neighbors
OPTIONS = {**cases.OPTIONS, 'no-edge': {'return_edge_id': False}}


def assert_same(cuda, indptr, indices, seeds, *args, **options):
    """Samples of one relation."""
    graph = CSC(indptr, indices, indptr.numel() - 1)
    options, _ = cases.arguments(graph, seeds, **options)
    call = partial(call_one, **options)
    args = indptr, indices, seeds, *args
    want = call(ON_CPU, *args)
    out = call(cuda.operator('sample_neighbors'), *args)
    assert_equal_tensors(out, want)
    return out


def all_same(cuda, fanouts, key, more=0, **options):
    """Samples of several types and relations, padded and not."""
    graphs, seeds = types.some_graphs(), types.some_seeds()
    graph, times, given = types.graph_and_options(graphs, seeds, **options)
    flat = [fanout for of_relation in fanouts for fanout in of_relation]
    args = operator_arguments(
        graph, seeds, flat, key, 3, seed_time=times, **given
    )
    operator = cuda.operator('sample_neighbors')
    want = ON_CPU(*args)
    assert_equal_tensors(operator(*args), want)
    counts = want[5][len(seeds) * (len(fanouts[0]) + 1) :]
    edges = counts.view(len(fanouts), -1).sum(1).tolist()
    args = *args[:-1], [n + more * r for r, n in enumerate(edges)]
    assert_equal_tensors(operator(*args), ON_CPU(*args))


def test_the_way_to_a_gpu_changes_no_argument():
    """As far as that can be seen without one."""
    args = (*skewed_graph(0), some_seeds(0), [3, 2], make_key(5))
    assert_same(Gpu('cpu'), *args, weighted=True, temporal=True)


@pytest.mark.parametrize('shape', SHAPES, ids=str)
@pytest.mark.parametrize('options', OPTIONS)
def test_it_equals_the_cpu_in_any_order(cuda, options, shape):
    graph = skewed_graph(0)
    for seed, fanouts in enumerate(cases.FANOUTS):
        cuda.configure(seed, *shape)
        key = make_key(seed, 1, 2)
        seeds = some_seeds(seed)
        assert_same(cuda, *graph, seeds, fanouts, key, 3, **OPTIONS[options])


@pytest.mark.parametrize('seed', range(25))
def test_the_order_of_execution_changes_nothing(cuda, seed):
    cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
    seeds = some_seeds(7)
    assert_same(cuda, *skewed_graph(1), seeds, [4, 3, 2], make_key(1))


@pytest.mark.sanitize
@pytest.mark.parametrize('options', OPTIONS)
def test_memory_and_order(cuda, options):
    """Few edges, as sanitizers take their time."""
    cuda.configure(1, 3, 32)
    graph = skewed_graph(1, hub=40, num_nodes=20)
    for fanouts in ([3, 2], [40], [-1]):
        args = (*graph, torch.tensor([5, 1, 5]), fanouts, make_key(1))
        assert_same(cuda, *args, **OPTIONS[options])


@pytest.mark.parametrize('dtypes', DTYPES, ids=str)
def test_all_dtypes(cuda, dtypes):
    indptr, indices = skewed_graph(2)
    cuda.configure()
    graph = indptr.to(dtypes[0]), indices.to(dtypes[1])
    for options in OPTIONS.values():
        assert_same(
            cuda, *graph, some_seeds(1), [5, -1], make_key(4), **options
        )


@pytest.mark.parametrize('fanout', [500, 513, 600, 699, 700, 701, -1])
def test_hubs_are_taken_by_blocks(cuda, fanout):
    """More edges of a column than a warp should take."""
    graph = skewed_graph(3, hub=700)
    flags = [False, True]
    for replace, weighted in itertools.product(flags, flags):
        cuda.configure(fanout & 7, 3, 64 if weighted else 256)
        seeds = torch.tensor([5, 1])
        args = (*graph, seeds, [fanout], make_key(9))
        assert_same(cuda, *args, replace=replace, weighted=weighted)


def test_nearly_all_edges_of_a_column(cuda):
    """Then slots give way to one another in long chains."""
    size = 40
    indptr = torch.arange(size + 1) * size
    indices = torch.arange(size).repeat(size)
    seeds = torch.arange(size)
    cuda.configure()
    for k in (1, 4, 5, 8, 31, 32, 33, 38, 39):
        for seed in range(3):
            assert_same(cuda, indptr, indices, seeds, [k], make_key(seed))


def test_keys_of_the_epoch_scope(cuda):
    """Trees then share their draws."""
    key = make_key(3)
    key[0, 2] = -1
    cuda.configure()
    args = (*skewed_graph(1), some_seeds(3), [3, 2], key)
    assert_same(cuda, *args, disjoint=True)


def test_any_number_of_hops(cuda):
    """A path: each hop takes a step."""
    indptr, indices = torch.arange(41), torch.arange(1, 41) % 40
    cuda.configure()
    out = assert_same(
        cuda, indptr, indices, torch.tensor([0]), [1] * 30, make_key(0)
    )
    assert out[0].tolist() == list(range(1, 31))


@pytest.mark.parametrize('num_nodes', [0, 1, 3])
def test_graphs_without_edges(cuda, num_nodes):
    indptr = torch.zeros(num_nodes + 1, dtype=torch.int64)
    indices = torch.empty(0, dtype=torch.int64)
    cuda.configure()
    for seeds in (torch.arange(num_nodes), torch.empty(0, dtype=torch.int64)):
        assert_same(cuda, indptr, indices, seeds, [2, -1], make_key(0))


def test_a_sample_larger_than_its_bound_is_tried_again(cuda):
    """Nothing bounds the sample of a hub that many seeds name."""
    seeds = torch.full((15,), 5)
    cuda.configure()
    graph = skewed_graph(0, hub=700)
    out = assert_same(cuda, *graph, seeds, [-1], make_key(0))
    assert out[0].numel() == 15 * 700


def test_a_lack_of_memory_names_the_sizes(emulated):
    """Nothing is left of the call."""
    held, most = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path('/proc/self/statm').read_text().split()[0])
    limit = pages * resource.getpagesize() + 2**26
    args = (*skewed_graph(0), some_seeds(0), [2**30], make_key(0))
    operator = partial(call_one, emulated.operator('sample_neighbors'))
    resource.setrlimit(resource.RLIMIT_AS, (limit, most))
    try:
        with pytest.raises(RuntimeError, match='out of memory on') as raised:
            operator(*args)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (held, most))
    assert '16777216 edges and 89 nodes, about 384 MiB' in str(raised.value)
    assert operator(*args[:3], [2], args[4])[0].numel() > 0


@pytest.mark.parametrize('options', OPTIONS)
def test_padded_samples_equal_the_cpu(cuda, options):
    """Of one relation, with room and without."""
    graph, seeds = skewed_graph(0), some_seeds(1)
    for seed, (fanouts, more) in enumerate([([3, 2], 9), ([2], 0), ([], 3)]):
        cuda.configure(seed, *SHAPES[seed])
        args = *graph, seeds, fanouts, make_key(3)
        out = assert_same(cuda, *args, **OPTIONS[options])
        most = out[0].numel() + more
        assert_same(cuda, *args, max_edges=most, **OPTIONS[options])


# Several types and relations.


@pytest.mark.parametrize('options', cases.OPTIONS)
def test_types_equal_the_cpu_in_any_order(cuda, options):
    for seed, fanouts in enumerate(types.FANOUTS):
        cuda.configure(seed, *SHAPES[(seed + len(options)) % len(SHAPES)])
        key = make_key(seed, 1, 2)
        all_same(cuda, fanouts, key, seed % 3, **cases.OPTIONS[options])


@pytest.mark.parametrize('seed', range(8))
def test_the_order_of_execution_of_types_changes_nothing(cuda, seed):
    cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
    fanouts = [[2, 2, 2], [3, 1, 2], [-1, 2, 1], [1, 1, 1], [5, 5, 5], [1] * 3]
    all_same(cuda, fanouts, make_key(1), 2, return_edge_id=seed % 2 == 0)


@pytest.mark.sanitize
@pytest.mark.parametrize('options', ['plain', 'temporal-all'])
def test_memory_and_order_of_types(cuda, options):
    cuda.configure(1, 3, 32)
    args = types.FANOUTS[2], make_key(1), 1
    all_same(cuda, *args, **cases.OPTIONS[options])


def test_types_in_the_epoch_scope(cuda):
    cuda.configure()
    key = make_key(3, 1, EPOCH_SCOPE)
    all_same(cuda, types.FANOUTS[2], key, disjoint=True)


def test_graphs_without_relations_or_types(cuda):
    cuda.configure()
    seeds = torch.tensor([1, 0, 1])
    for sizes, given in (([], []), ([2], [seeds]), ([2, 3], [seeds, seeds])):
        for most in (None, []):
            args = [], [], sizes, given, [], make_key(0)
            out = cuda.operator('sample_neighbors')(*args, max_edges=most)
            assert_equal_tensors(out, ON_CPU(*args, max_edges=most))


def test_one_relation_between_two_types(cuda):
    """Its edges stay where they were sampled."""
    cuda.configure()
    graph = torch.tensor([0, 2, 3, 5]), torch.tensor([4, 1, 2, 0, 4])
    seeds = [torch.tensor([2, 0]), torch.tensor([4])]
    args = [*graph], [1, 0], [3, 5], seeds, [-1, 2], make_key(2, 1, 3)
    for most in (None, [4], [6]):
        for disjoint in (False, True):
            given = {'disjoint': disjoint, 'max_edges': most}
            out = cuda.operator('sample_neighbors')(*args, **given)
            assert_equal_tensors(out, ON_CPU(*args, **given))


def test_a_sample_of_types_larger_than_its_bound_is_tried_again(cuda):
    """Nothing bounds the sample of hubs that many seeds name."""
    cuda.configure()
    graphs = [random_graph(2, 900, num_rows=70, seed=r) for r in range(2)]
    args = (
        [tensor for g in graphs for tensor in (g.indptr, g.indices)],
        [1, 0, 1, 0],
        [2, 70],
        [torch.zeros(20, dtype=torch.int64), torch.tensor([3])],
        [-1, -1],
        make_key(0),
    )
    out = cuda.operator('sample_neighbors')(*args)
    assert_equal_tensors(out, ON_CPU(*args))
    assert out[0].numel() > 9000


# Faults.


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (
            {'seeds': [0, 4, 2]},
            "'seeds' must be in \\[0, 4\\) \\(got 4 at pos",
        ),
        ({'seeds': [-1]}, "'seeds' must be in \\[0, 4\\) \\(got -1 at pos"),
        ({'indptr': [0, 2, 1, 3, 4]}, "'indptr' must ascend from 0 to the 4"),
        ({'indptr': [0, 1, 2, 3, 9]}, "'indptr' must ascend from 0 to the 4"),
        ({'indptr': [-5, 1, 2, 3, 4]}, "'indptr' must ascend from 0 to the 4"),
        ({'indices': [0, 1, 4, 0]}, "'indices' must be in \\[0, 4\\)"),
        ({'indices': [0, -1, 3, 0]}, "'indices' must be in \\[0, 4\\)"),
        ({'call_id': 65536}, "'call_id' plus the number of hops"),
        ({'call_id': -1}, "'call_id' plus the number of hops"),
    ],
)
def test_bad_input_ends_in_an_error(cuda, change, message):
    given = {
        'indptr': [0, 1, 2, 3, 4],
        'indices': [3, 2, 1, 0],
        'seeds': [0, 1, 2, 3],
        'fanouts': [-1, 2],
        'call_id': 0,
    } | change
    for name in ('indptr', 'indices', 'seeds'):
        given[name] = torch.tensor(given[name])
    cuda.configure()
    error = IndexError if 'seeds' in change else RuntimeError
    with pytest.raises(error, match=message):
        _check.call(
            partial(call_one, cuda.operator('sample_neighbors')),
            *list(given.values())[:4],
            make_key(0),
            given['call_id'],
        )


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (
            {'seeds': [[0, 1], [4]]},
            "'seeds' must be in \\[0, 4\\) \\(got 4 at position 0",
        ),
        (
            {'graph': [[0, 1, 2], [2, 3], [0, 2, 1, 3, 4], [0, 1, 0, 1]]},
            "'indptr' must ascend from 0 to the 4 .* of relation 1",
        ),
        (
            {'graph': [[0, 1, 2], [2, 3], [0, 1, 2, 3, 4], [0, 1, 0, -1]]},
            "'indices' must be in \\[0, 2\\) .* edge 3 of relation 1",
        ),
        ({'ends': [1, 0, 2, 1]}, "'ends' must name one of 2 node types"),
        (
            {'fanouts': [1, 1, 1]},
            "'fanouts' must have the same number of hops for each of 2",
        ),
        ({'call_id': 65536}, "'call_id' plus the number of hops"),
    ],
)
def test_bad_input_of_types_ends_in_an_error(cuda, change, message):
    given = {
        'graph': [[0, 1, 2], [2, 3], [0, 1, 2, 3, 4], [0, 1, 0, 1]],
        'ends': [1, 0, 0, 1],
        'num_nodes': [2, 4],
        'seeds': [[0, 1], [0, 1, 2, 3]],
        'fanouts': [-1, -1],
    } | change
    for name in ('graph', 'seeds'):
        given[name] = [torch.tensor(item) for item in given[name]]
    cuda.configure()
    with pytest.raises(RuntimeError, match=message):
        cuda.operator('sample_neighbors')(**given, key=make_key(0))


def replayed(device, sample, seeds, change):
    """Samples of a CUDA graph and of the CPU, for some keys and seeds."""
    there = [s.to(device) for s in seeds]
    key = make_key(0).to(device)
    sample(device, there, key)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        out = sample(device, there, key)
    for batch in range(3):
        now, others = make_key(0, batch=batch), change(batch)
        key.copy_(now)
        for to, tensor in zip(there, others, strict=True):
            to.copy_(tensor)
        captured.replay()
        want = sample('cpu', others, now)
        out.check()
        assert_equal_tensors([x.cpu() for x in out[:6]], want[:6])


@pytest.mark.parametrize('relations', [1, 6])
@pytest.mark.parametrize('device', ON_CUDA)
def test_a_cuda_graph_samples_again_for_each_key(device, relations):
    """It takes a GPU: the key is read, and the seeds, at each replay."""
    if relations == 1:
        indptr, indices = skewed_graph(0)
        graph = make_graph([indptr], [indices], [(0, 0)], [80])
        seeds, most = [some_seeds(0)], [99]
    else:
        seeds, most = types.some_seeds(), [120, 120, 120, 120, 0, 120]
        graph, _, _ = types.graph_and_options(types.some_graphs(), seeds)

    def sample(where, seeds, key):
        return ops.sample_neighbors(
            *(graph.to(where), seeds, [[3, 2]] * relations, key),
            max_edges=most,
        )

    def change(batch):
        return [
            (s + batch) % max(n, 1)
            for s, n in zip(seeds, graph.num_nodes, strict=True)
        ]

    replayed(device, sample, seeds, change)
