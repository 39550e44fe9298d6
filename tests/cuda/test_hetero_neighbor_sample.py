"""hetero_neighbor_sample on the (emulated) GPU against the CPU."""

import pytest
import torch

from tests.ops import test_hetero_neighbor_sample as hetero
from tests.ops.cases import OPTIONS
from tests.ops.compare import assert_equal_tensors
from torch_gsample.ops import _check
from torch_gsample.rng import EPOCH_SCOPE, make_key
from torch_gsample.testing import random_graph

#: Blocks and threads of a launch, and how often threads take turns.
SHAPES = [(1, 32, 20), (2, 64, 50), (3, 96, 5), (5, 32, 20)]


def some_seeds():
    return [torch.tensor(s, dtype=torch.int64) for s in hetero.SEEDS]


def sample_on(cuda, *args, **options):
    """The sample of a device, through the front of the CPU's."""
    operator = cuda.operator('hetero_neighbor_sample')
    with pytest.MonkeyPatch.context() as patch:
        known = _check.call
        patch.setattr(
            _check,
            'call',
            lambda _, *a, **k: known(operator, *a, **k),
        )
        return hetero.sample(*args, **options)


def assert_same(cuda, *args, **options):
    out = sample_on(cuda, *args, **options)
    assert_equal_tensors(out, hetero.sample(*args, **options))
    return out


@pytest.mark.parametrize('options', OPTIONS)
def test_it_equals_the_cpu_in_any_order(cuda, options):
    graphs = hetero.some_graphs()
    for seed, fanouts in enumerate(hetero.FANOUTS):
        cuda.configure(seed, *SHAPES[(seed + len(options)) % len(SHAPES)])
        key = make_key(seed, 1, 2)
        args = (graphs, some_seeds(), fanouts, key)
        assert_same(cuda, *args, call_id=3, **OPTIONS[options])


@pytest.mark.parametrize('seed', range(8))
def test_the_order_of_execution_changes_nothing(cuda, seed):
    cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
    fanouts = [[2, 2, 2], [3, 1, 2], [-1, 2, 1], [1, 1, 1], [5, 5, 5], [1] * 3]
    args = (hetero.some_graphs(), some_seeds(), fanouts, make_key(1))
    assert_same(cuda, *args, return_edge_id=seed % 2 == 0)


@pytest.mark.sanitize
@pytest.mark.parametrize('options', ['plain', 'temporal-all'])
def test_memory_and_order(cuda, options):
    cuda.configure(1, 3, 32)
    args = (hetero.some_graphs(), some_seeds(), hetero.FANOUTS[2], make_key(1))
    assert_same(cuda, *args, **OPTIONS[options])


def test_keys_of_the_epoch_scope(cuda):
    cuda.configure()
    key = make_key(3, 1, EPOCH_SCOPE)
    args = (hetero.some_graphs(), some_seeds(), hetero.FANOUTS[2], key)
    assert_same(cuda, *args, disjoint=True)


def test_graphs_without_relations_or_types(cuda):
    operator = cuda.operator('hetero_neighbor_sample')
    cuda.configure()
    seeds = torch.tensor([1, 0, 1])
    for sizes, given in (([], []), ([2], [seeds]), ([2, 3], [seeds, seeds])):
        args = ([], [], [], [], sizes, given, [], [], [], [], make_key(0))
        want = torch.ops.gsample.hetero_neighbor_sample(*args)
        assert_equal_tensors(operator(*args), want)


def test_a_sample_larger_than_its_bound_is_tried_again(cuda):
    """Nothing bounds the sample of hubs that many seeds name."""
    cuda.configure()
    graphs = [random_graph(2, 900, num_rows=70, seed=r) for r in range(2)]
    args = (
        [g.indptr for g in graphs],
        [g.indices for g in graphs],
        [1, 1],
        [0, 0],
        [2, 70],
        [torch.zeros(20, dtype=torch.int64), torch.tensor([3])],
        [-1, -1],
        *[[], [], [], make_key(0)],
    )
    out = cuda.operator('hetero_neighbor_sample')(*args)
    want = torch.ops.gsample.hetero_neighbor_sample(*args)
    assert_equal_tensors(out, want)
    assert sum(row.numel() for row in out[0]) > 9000


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (
            {'seeds': [[0, 1], [4]]},
            "'seeds' must be in \\[0, 4\\) \\(got 4 at position 0",
        ),
        (
            {'indptr': [[0, 1, 2], [0, 2, 1, 3, 4]]},
            "'indptr' must ascend from 0 to the 4 .* of relation 1",
        ),
        (
            {'indices': [[2, 1], [0, 1, 0, -1]]},
            "'indices' must be in \\[0, 2\\) .* edge 3 of relation 1",
        ),
        (
            {'src': [1, 2]},
            "'src' and 'dst' must name one of 2 node types",
        ),
        (
            {'fanouts': [1, 1, 1]},
            "'fanouts' must have the same number of hops for each of 2",
        ),
        ({'call_id': 65536}, "'call_id' plus the number of hops"),
    ],
)
def test_bad_input_ends_in_an_error(cuda, change, message):
    given = {
        'indptr': [[0, 1, 2], [0, 1, 2, 3, 4]],
        'indices': [[2, 3], [0, 1, 0, 1]],
        'src': [1, 0],
        'dst': [0, 1],
        'sizes': [2, 4],
        'seeds': [[0, 1], [0, 1, 2, 3]],
        'fanouts': [-1, -1],
        'call_id': 0,
    } | change
    for name in ('indptr', 'indices', 'seeds'):
        given[name] = [torch.tensor(item) for item in given[name]]
    *given, call_id = given.values()
    cuda.configure()
    with pytest.raises(RuntimeError, match=message):
        cuda.operator('hetero_neighbor_sample')(
            *given, [], [], [], make_key(0), call_id
        )
