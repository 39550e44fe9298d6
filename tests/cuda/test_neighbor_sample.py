"""neighbor_sample on the (emulated) GPU against the CPU, bit for bit."""

import itertools
import resource
from pathlib import Path

import pytest
import torch

from tests.cuda.gpu import Gpu
from tests.ops import cases
from tests.ops.compare import assert_equal_tensors, numbers
from torch_gsample.formats import CSC
from torch_gsample.ops import _check
from torch_gsample.rng import make_key

DTYPES = [
    (torch.int64, torch.int64),
    (torch.int64, torch.int32),
    (torch.int32, torch.int32),
]
OPTIONS = {**cases.OPTIONS, 'no-edge': {'return_edge_id': False}}
#: Blocks and threads of a launch, and how often threads take turns.
SHAPES = [(1, 32, 20), (2, 64, 50), (3, 96, 5), (5, 32, 20)]


def skewed_graph(seed, hub=70, num_nodes=80):
    """Many short columns, some empty ones and a few long ones."""
    generator = torch.Generator().manual_seed(seed)
    degree = torch.randint(0, 9, (num_nodes,), generator=generator)
    degree[::37] += 30
    degree[5] = hub
    indptr = torch.cat([torch.zeros(1, dtype=torch.int64), degree.cumsum(0)])
    size = (int(indptr[-1]),)
    indices = torch.randint(0, num_nodes, size, generator=generator)
    return indptr, indices


def some_seeds(seed, num_nodes=80):
    """Seeds with duplicates, and among them the hub."""
    generator = torch.Generator().manual_seed(seed)
    seeds = torch.randint(0, num_nodes, (9,), generator=generator)
    seeds[4] = seeds[1]
    seeds[2] = 5
    return seeds


def assert_same(cuda, indptr, indices, *args, **options):
    graph = CSC(indptr, indices, indptr.numel() - 1)
    options = numbers(cases.arguments(graph, args[0], **options)[0])
    args = (indptr, indices, *args)
    out = cuda.operator('neighbor_sample')(*args, **options)
    want = torch.ops.gsample.neighbor_sample(*args, **options)
    assert_equal_tensors(out, want)
    return out


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
    """A path, of which each hop takes a step."""
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
    operator = emulated.operator('neighbor_sample')
    resource.setrlimit(resource.RLIMIT_AS, (limit, most))
    try:
        with pytest.raises(RuntimeError, match='out of memory on') as raised:
            operator(*args)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (held, most))
    assert '16777216 edges and 89 nodes, about 384 MiB' in str(raised.value)
    assert operator(*args[:3], [2], args[4])[0].numel() > 0


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
            cuda.operator('neighbor_sample'),
            *list(given.values())[:4],
            make_key(0),
            given['call_id'],
        )
