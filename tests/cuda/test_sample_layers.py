"""Layers on the (emulated) GPU against the CPU, bit for bit."""

import pytest
import torch

from tests.cuda.graphs import SHAPES
from tests.cuda.simulated import OnCuda, Simulated, held
from tests.ops import test_sample_layers as layers
from tests.ops.cases import OPTIONS
from tests.ops.compare import assert_equal_tensors
from tests.ops.layers import sample_typed_layers, typed_call
from torch_gsample.rng import EPOCH_SCOPE, make_key
from torch_gsample.testing import INDEX_DTYPES, random_graph, to_dtypes

NONE = layers.NONE
THREE = [[2, 2, 2], [3, 1, 2], [-1, 2, 1], [1, 1, 1], [5, 5, 5], [1] * 3]


def assert_same(cuda, args, options):
    out = cuda.operator('sample_layers')(*args, **options)
    want = torch.ops.gsample.sample_layers(*args, **options)
    assert_equal_tensors(out, want)
    return out


def assert_same_layers(cuda, fanouts, seed=0, graphs=None, **options):
    keys = [make_key(seed, 1, hop // 2) for hop in range(len(fanouts[0]))]
    args, given = layers.operator_call(
        graphs or layers.some_graphs(),
        *(layers.typed_seeds(), fanouts, keys),
        **options,
    )
    return assert_same(cuda, args, given)


@pytest.mark.parametrize('frontier', layers.RULES)
@pytest.mark.parametrize('options', OPTIONS)
def test_it_equals_the_cpu_in_any_order(cuda, options, frontier):
    for seed, fanouts in enumerate([*layers.FANOUTS, THREE]):
        cuda.configure(seed, *SHAPES[(seed + len(options)) % len(SHAPES)])
        assert_same_layers(
            cuda,
            fanouts,
            seed,
            frontier=frontier,
            return_frontier=seed % 2 == 1,
            **OPTIONS[options],
        )


@pytest.mark.parametrize('frontier', layers.RULES)
def test_keys_of_relations(cuda, frontier):
    cuda.configure(5)
    key, call_id = layers.keys_of_relations(2)
    args, given = layers.operator_call(
        layers.some_graphs(),
        *(layers.typed_seeds(), layers.FANOUTS[2], key),
        frontier=frontier,
    )
    assert_same(cuda, (*args[:6], call_id, *args[7:]), given)


def test_sorted_columns_of_relations_are_refused(cuda):
    with pytest.raises(RuntimeError, match="'sorted' needs one node type and"):
        assert_same_layers(cuda, THREE, sorted=True)


@pytest.mark.parametrize('seed', range(8))
def test_the_order_of_execution_changes_nothing(cuda, seed):
    cuda.configure(seed, *SHAPES[seed % len(SHAPES)])
    assert_same_layers(cuda, THREE, disjoint=seed % 2 == 1)


@pytest.mark.parametrize('dtypes', INDEX_DTYPES[:2], ids=str)
def test_narrow_graphs(cuda, dtypes):
    cuda.configure(3)
    graphs = [to_dtypes(g, dtypes) for g in layers.some_graphs()]
    for options in ('plain', 'temporal-all'):
        assert_same_layers(
            cuda,
            THREE,
            graphs=graphs,
            return_frontier=True,
            **OPTIONS[options],
        )


def test_keys_of_the_epoch_scope(cuda):
    """One hop draws by trees, and the other does not."""
    cuda.configure(2)
    keys = [make_key(3, 1, EPOCH_SCOPE), make_key(3, 1, 4)]
    args, options = layers.operator_call(
        layers.some_graphs(),
        *(layers.typed_seeds(), [[2, 3]] * 6, keys),
        disjoint=True,
    )
    assert_same(cuda, args, options)


def two_types(degree=9, seeds=((0, 1), (4, 0)), **options):
    """Arguments of types of 3 and 70 nodes, which feed each other."""
    graphs = [
        random_graph(3, 3 * degree, num_rows=70, seed=0),
        random_graph(70, 200, num_rows=3, seed=1),
        random_graph(3, 2 * degree, num_rows=3, seed=2),
    ]
    given = {
        'indptr': [g.indptr for g in graphs],
        'indices': [g.indices for g in graphs],
        'src': [1, 0, 0],
        'dst': [0, 1, 0],
        'num_nodes': [3, 70],
        'seeds': [torch.as_tensor(s, dtype=torch.int64) for s in seeds],
        'fanouts': [-1, 2, 2, -1, 600, 3],
        'cum_weight': [],
        'edge_time': [],
        'seed_time': [],
        'key': [make_key(1), make_key(2)],
        'call_id': [0, 1],
    } | options
    return list(given.values())


@pytest.mark.parametrize('shape', SHAPES, ids=str)
def test_hubs_are_drawn_by_blocks(cuda, shape):
    for seed, fanouts in enumerate(
        [[-1, 2, 2, -1, 600, 3], [700, 1, 1, 1, 690, 2]]
    ):
        cuda.configure(seed, *shape)
        args = two_types(750, fanouts=fanouts)
        assert_same(cuda, *typed_call(*args, disjoint=seed == 1))


def test_seeds_that_repeat_share_a_draw(cuda):
    """So that a sample may have more edges than were drawn."""
    cuda.configure(2)
    for disjoint in (False, True):
        args = two_types(40, [[1] * 70, [3] * 20])
        assert_same(cuda, *typed_call(*args, disjoint=disjoint))


@pytest.mark.parametrize('frontier', layers.RULES)
def test_samples_that_need_more_room_are_drawn_again(cuda, frontier):
    """Nothing bounds what hubs have that many seeds name."""
    cuda.configure(1, 2, 64, 0)
    args = two_types(900, [[0] * 20, [3]], fanouts=[-1, 0, -1, -1, -1, 1])
    options = {'frontier': frontier, 'return_frontier': True}
    out = assert_same(cuda, *typed_call(*args, **options, disjoint=True))
    assert sum(edge.numel() for edge in out[2]) > 9000


def test_types_and_relations_may_be_empty(cuda):
    cuda.configure()
    seeds = torch.tensor([1, 0, 1])
    none = [], [], [], [], []
    for sizes, given in (([2], [seeds]), ([0, 3, 0], [NONE, seeds, NONE])):
        args = [], [], sizes, given, [], [], []
        assert cuda.operator('sample_layers')(*args) == none
    # Relations into, between and from types without nodes.
    nothing = torch.zeros(1, dtype=torch.int64)
    isolated = torch.zeros(4, dtype=torch.int64)
    graph = random_graph(3, 9, seed=3)
    for disjoint in (False, True):
        args = (
            [isolated, graph.indptr, nothing, nothing],
            [NONE, graph.indices, NONE, NONE],
            *([0, 1, 1, 2], [1, 1, 0, 0], [0, 3, 0]),
            *([NONE, seeds, NONE], [2, 2, -1, 2, 2, 2, 2, 2]),
            *([], [], [], [make_key(0)] * 2, [0, 1]),
        )
        options = {'disjoint': disjoint, 'return_frontier': True}
        assert_same(cuda, *typed_call(*args, **options))


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        (
            {'seeds': [[0, 1], [4, 70]]},
            r"'seeds' must be in \[0, 70\) \(got 70 at position 1",
        ),
        (
            {'num_nodes': [3, 70, 0], 'seeds': [[], [], [0]]},
            r"'seeds' must be in \[0, 0\) \(got 0 at position 0",
        ),
        (
            {'indptr': 1},
            "'indptr' must ascend from 0 to the 200 .* of relation 1",
        ),
        (
            {'indices': 2},
            r"'indices' must be in \[0, 3\) .* of relation 2",
        ),
        ({'src': [1, 2, 0]}, "'ends' must name one of 2 node types"),
        ({'key': [make_key(0)]}, "'key' and 'call_id' must have one item"),
    ],
)
def test_bad_input_ends_in_an_error(cuda, change, message):
    change = dict(change)
    broken = {k: change.pop(k) for k in ('indptr', 'indices') if k in change}
    if 'seeds' in change:
        change['seeds'] = [
            torch.tensor(s, dtype=torch.int64) for s in change['seeds']
        ]
    args = two_types(**change)
    for name, r in broken.items():
        part = args[['indptr', 'indices'].index(name)]
        part[r] = part[r] + 70
    for seed in range(3):
        cuda.configure(seed, *SHAPES[seed])
        with pytest.raises(RuntimeError, match=message):
            cuda.operator('sample_layers')(*typed_call(*args)[0])


def test_too_many_trees_for_a_key_are_an_error(cuda):
    """A task is one number: hop, tree and node."""
    cuda.configure()
    args = two_types(num_nodes=[3, 70, 2**59], seeds=[[0, 1], [4, 0], []])
    assert_same(cuda, *typed_call(*args))
    args = two_types(num_nodes=[3, 70, 2**60], seeds=[[0, 1], [4, 0], []])
    with pytest.raises(RuntimeError, match=r'too many seeds \(4\) for trees'):
        cuda.operator('sample_layers')(*typed_call(*args)[0], disjoint=True)


@pytest.mark.sanitize
@pytest.mark.parametrize('frontier', layers.RULES)
@pytest.mark.parametrize('options', ['plain', 'temporal-all'])
def test_memory_and_order(cuda, options, frontier):
    cuda.configure(1, 3, 32)
    assert_same_layers(cuda, THREE, frontier=frontier, **OPTIONS[options])


def test_layers_on_simulated_cuda(emulated):
    emulated.configure(5, 2, 64, 10)
    graphs, seeds = layers.some_graphs(), layers.typed_seeds()
    args = (
        [g.indptr for g in graphs],
        [g.indices for g in graphs],
        *(layers.RELATIONS, layers.NUM_NODES, seeds, THREE),
    )
    options = {'key': [make_key(1)] * 3, 'disjoint': True}
    want = sample_typed_layers(*args, **options)
    put = [[OnCuda(x) for x in args[i]] for i in (0, 1, 4)]
    with Simulated(emulated) as simulated:
        out = sample_typed_layers(
            *(put[0], put[1], *args[2:4], put[2], THREE), **options
        )
        assert simulated.kernels == {'sample_layers'}
    assert [held(x).tolist() for part in layers.flat(out) for x in part] == [
        x.tolist() for part in layers.flat(want) for x in part
    ]
    assert not simulated.on_cpu
