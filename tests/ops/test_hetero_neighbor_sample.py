import pytest
import torch

from tests.ops.cases import OPTIONS, some_weights
from tests.ops.compare import (
    assert_equal_tensors,
    assert_equals_reference,
    digest,
    lists,
    numbers,
)
from torch_gsample import ops
from torch_gsample.rng import EPOCH_SCOPE, make_key
from torch_gsample.testing import (
    INDEX_DTYPES,
    from_columns,
    random_edge_time,
    random_graph,
    small_graph,
    to_dtypes,
    with_index_dtypes,
)

# Node types: 0 users, 1 items, 2 shops without any seed, 3 nothing at all.
NUM_NODES = [30, 50, 8, 0]
RELATIONS = [(0, 1), (1, 0), (1, 1), (2, 0), (0, 0), (0, 1)]
NUM_EDGES = [200, 150, 300, 40, 0, 90]
SEEDS = [[3, 29, 3], [0, 49, 7, 7], [], []]
FANOUTS = (
    [[], [], [], [], [], []],
    [[2], [2], [2], [2], [2], [2]],
    [[2, 1], [3, 0], [-1, 2], [1, 1], [5, 5], [0, 20]],
    [[0, 1, 1], [2, 2, 2], [1, 0, 1], [0, 0, -1], [1, 1, 1], [3, 1, 0]],
    [[70], [70], [70], [70], [70], [70]],
)


def some_graphs(scale=1):
    return [
        random_graph(
            scale * NUM_NODES[dst],
            scale * num_edges,
            num_rows=scale * NUM_NODES[src],
            seed=r,
        )
        for r, ((src, dst), num_edges) in enumerate(
            zip(RELATIONS, NUM_EDGES, strict=True)
        )
    ]


def arguments(graphs, seeds, weighted=False, temporal=False, **options):
    """Arguments of the operator; relations 2 and 4 have nothing optional."""
    given = dict(options)
    if weighted:
        given['cum_weight'] = [
            None
            if r in (2, 4)
            else ops.cumulate_weights(g.indptr, some_weights(g, seed=r))
            for r, g in enumerate(graphs)
        ]
    if temporal:
        given['disjoint'] = True
        given['edge_time'] = [
            None if r in (2, 4) else random_edge_time(g, 10, seed=r)
            for r, g in enumerate(graphs)
        ]
        given['seed_time'] = [torch.arange(len(s)) * 3 % 11 for s in seeds]
    return given


def sample(graphs, seeds, fanouts, key, scale=1, num_threads=0, **options):
    return ops.hetero_neighbor_sample(
        [g.indptr for g in graphs],
        [g.indices for g in graphs],
        RELATIONS,
        [scale * n for n in NUM_NODES],
        seeds,
        fanouts,
        key=key,
        num_threads=num_threads,
        **arguments(graphs, seeds, **options),
    )


def operator_arguments(graphs, seeds, fanouts, **options):
    """What the operator takes before its key, and what it takes by name."""
    given = arguments(graphs, seeds, **options)

    def optional(name):
        none = torch.empty(0, dtype=torch.int64)
        values = given.pop(name, [])
        return [none if value is None else value for value in values]

    before = (
        [g.indptr for g in graphs],
        [g.indices for g in graphs],
        [src for src, _ in RELATIONS],
        [dst for _, dst in RELATIONS],
        NUM_NODES,
        seeds,
        [fanout for fanouts_of in fanouts for fanout in fanouts_of],
        optional('cum_weight'),
        optional('edge_time'),
        optional('seed_time'),
    )
    return before, numbers(given)


def sample_checked(graphs, seeds, fanouts, key, **options):
    """Samples, and compares with the operator's reference."""
    before, given = operator_arguments(graphs, seeds, fanouts, **options)
    want = assert_equals_reference(
        'hetero_neighbor_sample', *before, key, **given
    )
    out = sample(graphs, seeds, fanouts, key, **options)
    assert_equal_tensors(out, want)
    return out


@with_index_dtypes
@pytest.mark.parametrize('options', OPTIONS)
def test_samples_equal_the_reference(options, index_dtypes):
    graphs = [to_dtypes(g, index_dtypes) for g in some_graphs()]
    seeds = [torch.tensor(s, dtype=torch.int64) for s in SEEDS]
    for call, fanouts in enumerate(FANOUTS):
        key = make_key(call, epoch=1, batch=7)
        sample_checked(graphs, seeds, fanouts, key, **OPTIONS[options])


def test_epoch_scope_equals_the_reference():
    seeds = [torch.tensor(s, dtype=torch.int64) for s in SEEDS]
    key = make_key(0, epoch=1, batch=EPOCH_SCOPE)
    out = sample_checked(some_graphs(), seeds, FANOUTS[1], key, disjoint=True)
    first, third = (out.edge[1][out.col[1] == i].tolist() for i in (0, 2))
    assert first == third  # duplicate seeds draw the same


def test_one_type_and_relation_equal_the_homogeneous_operator():
    graph = small_graph('random')
    seeds = torch.tensor([5, 0, 5])
    for disjoint in (False, True):
        hetero = ops.hetero_neighbor_sample(
            [graph.indptr],
            [graph.indices],
            [(0, 0)],
            [graph.num_cols],
            [seeds],
            [[3, 2]],
            key=make_key(0),
            disjoint=disjoint,
        )
        out = ops.neighbor_sample(
            graph.indptr,
            graph.indices,
            seeds,
            [3, 2],
            key=make_key(0),
            disjoint=disjoint,
        )
        assert_equal_tensors([item[0] for item in hetero], list(out))


def test_relations_draw_independently():
    graph = small_graph('hub')
    out = ops.hetero_neighbor_sample(
        [graph.indptr] * 3,
        [graph.indices] * 3,
        [(0, 0)] * 3,
        [graph.num_cols],
        [torch.tensor([0])],
        [[6]] * 3,
        key=make_key(0),
    )
    assert len({tuple(edge.tolist()) for edge in out.edge}) == 3


def test_trees_are_numbered_through_all_types():
    seeds = [torch.tensor(s, dtype=torch.int64) for s in SEEDS]
    out = sample_checked(
        some_graphs(), seeds, FANOUTS[1], make_key(0), disjoint=True
    )
    assert out.batch[0][:3].tolist() == [0, 1, 2]
    assert out.batch[1][:4].tolist() == [3, 4, 5, 6]


def test_latest_edges_are_taken_only_where_edges_have_times():
    # Relation 1 has no times: the latest of its edges would be the last
    # ones of the graph, every time.
    star = small_graph('star')
    time = torch.arange(9)
    taken = set()
    for seed in range(20):
        out = ops.hetero_neighbor_sample(
            [star.indptr, star.indptr],
            [star.indices, star.indices],
            [(0, 0), (0, 0)],
            [10],
            [torch.tensor([0])],
            [[2], [2]],
            key=make_key(seed),
            edge_time=[time, None],
            seed_time=[torch.tensor([5])],
            temporal_strategy='last',
            disjoint=True,
        )
        assert out.edge[0].tolist() == [4, 5]
        taken |= set(out.edge[1].tolist())
    assert taken == set(range(9))


def test_types_and_relations_may_be_missing():
    out = ops.hetero_neighbor_sample(
        [], [], [], [3, 0], [torch.tensor([2, 1]), torch.tensor([]).long()],
        [], key=make_key(0)
    )  # fmt: skip
    assert lists(out.node) == [[2, 1], []]
    assert out.num_nodes.tolist() == [[2], [0]]
    assert out.num_edges.shape == (0, 0)
    out = ops.hetero_neighbor_sample([], [], [], [], [], [], key=make_key(0))
    assert out.node == []


def test_order_of_relations_is_order_of_local_ids():
    # Both relations bring new nodes of type 0 to the column of type 1.
    graph = from_columns([[2, 0]])
    other = from_columns([[1, 0]])
    out = ops.hetero_neighbor_sample(
        [graph.indptr, other.indptr],
        [graph.indices, other.indices],
        [(0, 1), (0, 1)],
        [3, 1],
        [torch.tensor([]).long(), torch.tensor([0])],
        [[-1], [-1]],
        key=make_key(0),
    )
    assert lists(out.node) == [[2, 0, 1], [0]]
    assert lists(out.row) == [[0, 1], [2, 1]]


@pytest.mark.parametrize('options', OPTIONS)
def test_threads_and_dtypes_change_nothing(options):
    scale = 400
    seeds = [torch.arange(n) for n in (1_000, 900, 0, 0)]
    fanouts = [[9, 3]] * len(RELATIONS)
    before, digests = torch.get_num_threads(), set()
    try:
        for i, threads in enumerate((1, 2, 4)):
            torch.set_num_threads(threads)
            graphs = [
                to_dtypes(g, INDEX_DTYPES[i]) for g in some_graphs(scale)
            ]
            for num_threads in {0, threads - 1}:
                out = sample(
                    graphs,
                    seeds,
                    fanouts,
                    make_key(0),
                    scale,
                    num_threads,
                    **OPTIONS[options],
                )
                assert int(out.num_edges.sum()) > 2 * 8192
                digests.add(digest(out))
    finally:
        torch.set_num_threads(before)
    assert len(digests) == 1
