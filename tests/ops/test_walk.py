"""Walks equal the reference, whatever the graph, dtypes and threads."""

import hashlib

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.cases import some_seeds, some_weights
from tests.ops.compare import assert_equals_reference, digest, lists
from tests.ops.test_properties import KEYS, OPS, graphs, seeds_of, weights_of
from torch_gsample import ops
from torch_gsample.csc import CSC
from torch_gsample.rng import EPOCH_SCOPE, make_key
from torch_gsample.testing import (
    INDEX_DTYPES,
    SMALL_GRAPHS,
    from_columns,
    random_graph,
    small_graph,
    to_dtypes,
    with_index_dtypes,
)

LENGTHS = (0, 1, 2, 7)
LAWS = ((2, 0.5), (0.5, 2), (1, 1), (0.25, 4), (4, 0.25), (1e-12, 1e-12))
RESTARTS = (0.0, 0.3, 1.0)
BIG = random_graph(20_000, 200_000, seed=1)
BIG_SEEDS = torch.randint(
    20_000, (700,), generator=torch.Generator().manual_seed(2)
)


def sort_columns(graph):
    col = graph.col()
    order = torch.argsort(col * graph.num_rows + graph.indices, stable=True)
    return CSC(graph.indptr, graph.indices[order], graph.num_rows)


def cumulate(graph):
    return ops.cumulate_weights(graph.indptr, some_weights(graph))


def assert_walks(out, indptr, indices):
    """Each edge leads from the node before to the node after it."""
    nodes, edges = out
    assert nodes.dtype == edges.dtype == torch.int64
    before, taken = nodes[:, :-1], edges >= 0
    edge = edges[taken]
    assert torch.equal(indices[edge].long(), nodes[:, 1:][taken])
    assert (indptr[before[taken]] <= edge).all()
    assert (edge < indptr[before[taken] + 1]).all()


def first_order(graph, seeds, length, key, **options):
    args = (graph.indptr, graph.indices, seeds, length)
    out = assert_equals_reference(
        'random_walk', *args, operator=ops.random_walk, key=key, **options
    )
    assert_walks(out, graph.indptr, graph.indices)
    return out


def second_order(graph, seeds, length, p, q, key, **options):
    args = (graph.indptr, graph.indices, seeds, length, p, q)
    out = assert_equals_reference(
        'node2vec_walk', *args, operator=ops.node2vec_walk, key=key, **options
    )
    assert_walks(out, graph.indptr, graph.indices)
    return out


def metapath(graphs, path, seeds, key, **options):
    args = ([g.indptr for g in graphs], [g.indices for g in graphs])
    return assert_equals_reference(
        'metapath_walk',
        *args,
        path,
        seeds,
        operator=ops.metapath_walk,
        key=key,
        **options,
    )


@with_index_dtypes
@pytest.mark.parametrize('weighted', [False, True])
@pytest.mark.parametrize('name', SMALL_GRAPHS)
def test_first_order_walks_equal_the_reference(name, weighted, index_dtypes):
    graph = to_dtypes(small_graph(name), index_dtypes)
    weight = cumulate(graph) if weighted else None
    for length in LENGTHS:
        for restart in RESTARTS:
            out = first_order(
                graph,
                some_seeds(graph),
                length,
                make_key(length),
                call_id=3,
                restart=restart,
                cum_weight=weight,
            )
            assert out.nodes.shape == (len(out.edges), length + 1)


@with_index_dtypes
@pytest.mark.parametrize('weighted', [False, True])
@pytest.mark.parametrize('name', SMALL_GRAPHS)
def test_second_order_walks_equal_the_reference(name, weighted, index_dtypes):
    graph = to_dtypes(small_graph(name), index_dtypes)
    weight = cumulate(graph) if weighted else None
    for i, (p, q) in enumerate(LAWS):
        second_order(
            graph, some_seeds(graph), 7, p, q, make_key(i), cum_weight=weight
        )
        second_order(
            graph,
            some_seeds(graph),
            7,
            p,
            q,
            make_key(i),
            cum_weight=weight,
            ascending=sort_columns(graph).indices,
        )
        second_order(
            sort_columns(graph),
            some_seeds(graph),
            LENGTHS[i % 4],
            p,
            q,
            make_key(i),
            call_id=i,
            is_sorted=True,
        )


def test_walks_after_many_rejections_equal_the_reference():
    # At the hub 299 of 300 candidates are far, with weight 2^-32.
    graph = small_graph('hub')
    for weight in (None, cumulate(graph)):
        for is_sorted in (False, True):
            out = second_order(
                graph,
                torch.arange(1, 9),
                6,
                1e-15,
                1e15,
                make_key(4),
                is_sorted=is_sorted,
                cum_weight=weight,
            )
            if weight is None:  # the way back is 2^32 times as likely
                assert (out.nodes[:, 1::2] == 0).all()
                assert (out.nodes[:, ::2] == out.nodes[:, :1]).all()


@pytest.mark.parametrize('weighted', [False, True])
def test_a_sorted_copy_changes_no_walk(weighted):
    """Positions are of unsorted columns, also where masses decide."""
    graph = random_graph(300, 6_000, seed=1)
    weight = cumulate(graph) if weighted else None
    args = graph.indptr, graph.indices, torch.arange(300), 12
    for p, q in (*LAWS, (1e-15, 1e15)):
        plain, sorted_copy = (
            ops.node2vec_walk(
                *args,
                p,
                q,
                key=make_key(1),
                cum_weight=weight,
                ascending=ascending,
            )
            for ascending in (None, sort_columns(graph).indices)
        )
        assert all(map(torch.equal, plain, sorted_copy))


@pytest.mark.parametrize('is_sorted', [False, True])
def test_searches_of_all_lengths_equal_the_reference(is_sorted):
    # Node d has neighbours 0 .. 2d; every other one is a node's.
    columns = [sorted({0, *range(d % 2, d, 2)}) for d in range(90)]
    graph = from_columns(columns)
    for key in range(3):
        second_order(
            graph,
            torch.arange(90),
            6,
            2,
            [0.5, 3, 1 / 3][key],
            make_key(key),
            is_sorted=is_sorted,
        )


def test_columns_without_weight_are_dead_ends():
    graph = from_columns([[1, 2], [0], [0]])
    cum = ops.cumulate_weights(graph.indptr, torch.tensor([0.0, 0.0, 1, 1]))
    seeds = torch.tensor([0, 1])
    want = [[[0, 0, 0], [1, 0, 0]], [[-1, -1], [2, -1]]]
    args = (graph.indptr, graph.indices, seeds, 2)
    for out in (
        ops.random_walk(*args, key=make_key(0), cum_weight=cum),
        ops.node2vec_walk(*args, 2, 3, key=make_key(0), cum_weight=cum),
    ):
        assert lists([*out]) == want


@pytest.mark.parametrize('dtypes', [(0, 0), (1, 1), (2, 2), (0, 2), (1, 0)])
def test_metapath_walks_equal_the_reference(dtypes):
    relations = [
        random_graph(30, 60, num_rows=20, seed=1),  # 30 authors, 20 papers
        random_graph(20, 40, num_rows=30, seed=2),
        random_graph(20, 25, num_rows=9, seed=3),  # 9 venues
    ]
    relations[:2] = [
        to_dtypes(g, INDEX_DTYPES[d])
        for g, d in zip(relations, dtypes, strict=False)
    ]
    seeds = torch.tensor([0, 29, 3, 3, 17])
    ended = 0
    for path in ([0], [0, 1], [0, 1, 0, 1, 0], [0, 2], [0, 1, 0, 2]):
        for restart in RESTARTS:
            out = metapath(
                relations, path, seeds, make_key(7), restart=restart
            )
            assert out.nodes.shape == (5, len(path) + 1)
            rest = (out.nodes == -1).int()
            assert (rest.diff() >= 0).all()
            assert torch.equal(out.edges == -1, out.nodes[:, 1:] == -1)
            ended += int(rest.any(1).sum()) if restart == 0 else 0
    assert ended > 0


def test_metapath_walks_through_relations_without_columns_end():
    empty = from_columns([[], []])
    nothing = CSC(torch.tensor([0]), torch.tensor([]).long(), 0)
    out = metapath(
        [empty, nothing], [0, 1, 1], torch.tensor([1, 0]), make_key(0)
    )
    assert out.nodes.tolist() == [[1, -1, -1, -1], [0, -1, -1, -1]]


def test_walkers_are_independent_but_alike_in_any_company():
    graph = small_graph('random')
    seeds = torch.full((200,), 7)
    for walk in (
        ops.random_walk,
        lambda *a, key: ops.node2vec_walk(*a, 2, 0.5, key=key),
    ):
        args = (graph.indptr, graph.indices)
        nodes, _ = walk(*args, seeds, 20, key=make_key(1))
        assert len(nodes.unique(dim=0)) == 200
        part, _ = walk(*args, seeds[:70], 11, key=make_key(1))
        assert torch.equal(part, nodes[:70, :12])


def test_calls_epochs_and_batches_draw_apart():
    graph = small_graph('random')
    keys = [make_key(*k) for k in ((1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1))]
    keys.append(make_key(1, 0, EPOCH_SCOPE))
    outs = [
        first_order(graph, some_seeds(graph), 9, key, call_id=call).nodes
        for key in keys
        for call in (0, 1, 65535)
    ]
    assert len({str(out.tolist()) for out in outs}) == 15


def walk_big(graph, num_threads=0):
    weight = cumulate(graph)
    args = (graph.indptr, graph.indices)
    options = {'key': make_key(11), 'num_threads': num_threads}
    walk, second = ops.random_walk, ops.node2vec_walk
    return [
        walk(*args, BIG_SEEDS, 40, **options),
        walk(*args, BIG_SEEDS, 40, restart=0.2, cum_weight=weight, **options),
        second(*args, BIG_SEEDS, 30, 2, 0.5, **options),
        second(*args, BIG_SEEDS, 30, 0.1, 2, cum_weight=weight, **options),
        ops.metapath_walk(
            *([a, a] for a in args), [0, 1] * 9, BIG_SEEDS, **options
        ),
    ]


# Of the walks as they are drawn since the operators exist: a change of it is
# a change of every user's walks.
GOLDEN = 'ce514619062c6d6f3f4c88513a9ec8b6bb78f660ca132e934539001884023910'


def test_threads_and_dtypes_change_nothing():
    digests = set()
    for threads in (1, 2, 4):
        torch.set_num_threads(threads)
        graph = to_dtypes(BIG, INDEX_DTYPES[threads % 3])
        digests.add(digest(walk_big(graph)))
    for num_threads in (1, 2, 3, 100):
        digests.add(digest(walk_big(BIG, num_threads)))
    walks = walk_big(BIG)
    assert digests == {digest(walks)}
    text = repr(lists(walks)).encode()
    assert hashlib.sha256(text).hexdigest() == GOLDEN


def clustered():
    """Columns of many entries that are far from evenly spread."""
    near = list(range(90)) + list(range(210, 300))
    columns = [near[d % 7 :: 1 + d % 3] for d in range(300)]
    columns[5], columns[150] = list(range(300)), [0] * 70 + [299] * 70
    return from_columns(columns)


@pytest.mark.parametrize('spread', ['evenly', 'in clusters'])
def test_sorted_columns_are_searched_alike(spread):
    graph = clustered()
    if spread == 'evenly':
        graph = sort_columns(random_graph(300, 9_000, seed=5))
    args = (graph.indptr, graph.indices, BIG_SEEDS % 300, 20)
    for p, q in LAWS:
        outs = [
            ops.node2vec_walk(
                *args, p, q, key=make_key(3), is_sorted=is_sorted
            )
            for is_sorted in (False, True)
        ]
        assert digest(outs[0]) == digest(outs[1])


def test_memory_that_is_used_again_changes_no_walk():
    graph = to_dtypes(BIG, INDEX_DTYPES[0])
    args = (graph.indptr, graph.indices, BIG_SEEDS, 40)
    want = digest(ops.random_walk(*args, key=make_key(0)))
    for _ in range(3):
        out = ops.random_walk(*args, key=make_key(0))
        assert digest(out) == want
        for tensor in out:
            tensor.fill_(-7)


LENGTH = st.sampled_from([3, 5, 1, 0, 8])
LAW = st.sampled_from([1.0, 0.5, 2.0, 0.1, 7.0, 1e-9, 1e9, 5e-324])


@settings(OPS)
@given(data=st.data(), dtypes=st.sampled_from(INDEX_DTYPES), key=KEYS)
def test_walks_of_random_graphs_equal_the_reference(data, dtypes, key):
    graph = to_dtypes(data.draw(graphs()), dtypes)
    seeds = data.draw(seeds_of(graph.num_cols))
    weight = None
    if data.draw(st.booleans()):
        weight = data.draw(weights_of(graph))
        weight = ops.cumulate_weights(graph.indptr, weight)
    length, call = data.draw(LENGTH), data.draw(st.integers(0, 65535))
    options = {'cum_weight': weight, 'call_id': call}
    restart = data.draw(st.sampled_from([0.0, 0.5, 1e-9]))
    first_order(graph, seeds, length, key, restart=restart, **options)
    p, q = data.draw(LAW), data.draw(LAW)
    second_order(graph, seeds, length, p, q, key, **options)
