"""Edges of columns, of a matrix and of what lies elsewhere."""

import pytest
import torch

from tests.ops.cases import some_weights
from tests.ops.compare import assert_equal_tensors, assert_equals_reference
from tests.ops.neighbors import sample_one
from torch_gsample import ops
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

SIZES = (-1, 0, 1, 3, 20, 100, 2**31, 2**63 - 1)
BIG = random_graph(20_000, 200_000, seed=1)
UNTIMED = {
    'plain': {},
    'replace': {'replace': True},
    'weighted': {'weighted': True},
    'weighted-replace': {'weighted': True, 'replace': True},
}
OPTIONS = {
    **UNTIMED,
    'temporal': {'temporal': True},
    'window': {'temporal': True, 'time_window': 3},
    'last': {'temporal': True, 'temporal_strategy': 'last'},
    'weighted-temporal': {'weighted': True, 'temporal': True},
}


def arguments(graph, weighted=False, temporal=False, **options):
    if weighted:
        options['cum_weight'] = ops.cumulate_weights(
            graph.indptr, some_weights(graph)
        )
    if temporal:
        time = torch.arange(graph.num_edges)
        options['edge_time'] = time - graph.indptr[:-1].long()[graph.col()]
        options['column_time'] = torch.arange(graph.num_cols) % 7
    return options


def columns_checked(graph, k, key, **options):
    begin, edge = out = assert_equals_reference(
        'sample_columns',
        graph.indptr,
        k,
        operator=ops.sample_columns,
        key=key,
        **options,
    )
    assert begin.dtype == graph.indptr.dtype
    assert edge.dtype == torch.int64
    return out


@with_index_dtypes
@pytest.mark.parametrize('options', OPTIONS)
@pytest.mark.parametrize('name', SMALL_GRAPHS)
def test_columns_equal_the_reference(name, options, index_dtypes):
    graph = to_dtypes(small_graph(name), index_dtypes)
    given = arguments(graph, **OPTIONS[options])
    for k in SIZES:
        if not given.get('replace') or k <= 100:
            columns_checked(graph, k, make_key(k % 1000, 1, 2), **given)


@with_index_dtypes
@pytest.mark.parametrize('options', OPTIONS)
@pytest.mark.parametrize('name', SMALL_GRAPHS)
def test_columns_that_lie_elsewhere_equal_the_reference(
    name, options, index_dtypes
):
    graph = to_dtypes(small_graph(name), index_dtypes)
    given = arguments(graph, **OPTIONS[options])
    n = torch.arange(graph.num_cols)
    for k in (-1, 0, 1, 3, 70):
        columns_checked(
            graph,
            k,
            make_key(5, 2, 7),
            call_id=3,
            relation=4,
            start=n * 1000,
            id=n * 3 % 11 + 2**33,
            root=n % 5 if k % 2 else None,
            **given,
        )


@pytest.mark.parametrize('replace', [False, True])
@pytest.mark.parametrize('k', [2, 15, 16, 17, 33, 63, 64, 65])
def test_columns_of_all_lengths_equal_the_reference(k, replace):
    # Column d has d edges: groups of columns that are drawn together.
    graph = from_columns([list(range(d)) for d in range(130)])
    columns_checked(graph, k, make_key(k), replace=replace)


@with_index_dtypes
@pytest.mark.parametrize('options', OPTIONS)
@pytest.mark.parametrize('name', SMALL_GRAPHS)
def test_chosen_columns_equal_the_reference(name, options, index_dtypes):
    graph = to_dtypes(small_graph(name), index_dtypes)
    given = arguments(graph, **OPTIONS[options])
    times = given.pop('column_time', None)
    for size in (0, 1, 50) if graph.num_cols else (0,):
        cols = torch.arange(size) * 7 % max(graph.num_cols, 1)
        if times is not None:
            given['column_time'] = torch.arange(size) % 7
        for k in (-1, 3, 20):
            key = make_key(k + 1, size)
            out = columns_checked(graph, k, key, cols=cols, **given)
            columns_checked(graph, k, key, cols=cols, id=cols + 9, **given)
            columns_checked(graph, k, key, cols=cols, start=-cols, **given)
            narrow = ops.sample_columns(
                graph.indptr, k, key=key, cols=cols.int(), **given
            )
            assert torch.equal(narrow[1], out[1])


@pytest.mark.parametrize('options', UNTIMED)
def test_chosen_columns_are_a_sample_of_their_slice(options):
    weight = some_weights(BIG)
    cols = torch.arange(0, 20_000, 3).flip(0)
    indptr, _, edge = ops.slice_cols(BIG.indptr, BIG.indices, cols)
    of_all, of_slice = {}, {}
    if OPTIONS[options].get('weighted'):
        of_all = {'cum_weight': ops.cumulate_weights(BIG.indptr, weight)}
        of_slice = {'cum_weight': ops.cumulate_weights(indptr, weight[edge])}
    both = {'key': make_key(3), 'replace': 'replace' in options}
    for threads in (1, 4):
        both['num_threads'] = threads
        out = ops.sample_columns(BIG.indptr, 4, cols=cols, **of_all, **both)
        expected = ops.sample_columns(indptr, 4, id=cols, **of_slice, **both)
        assert torch.equal(out[0], expected[0])
        assert torch.equal(out[1], edge[expected[1]])


@pytest.mark.parametrize('options', OPTIONS)
def test_columns_draw_by_their_ids(options):
    graph = small_graph('random')
    given = arguments(graph, **OPTIONS[options])
    ids = torch.tensor([2**40, -1, 5, 5, 0] * 8)
    for some in (ids, ids.clamp(0, 5).int()):
        columns_checked(
            graph, 3, make_key(8), call_id=65_535, id=some, **given
        )


def test_columns_of_one_id_draw_alike():
    indptr = torch.arange(4) * 50
    ids = torch.tensor([7, 8, 7])
    _, edge = ops.sample_columns(indptr, 5, key=make_key(0), id=ids)
    first, other, second = edge.view(3, 5) % 50
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


@pytest.mark.parametrize('options', OPTIONS)
@pytest.mark.parametrize('batch', [EPOCH_SCOPE, 0, 5])
def test_columns_are_a_hop_of_neighbor_sample(options, batch):
    for name in SMALL_GRAPHS:
        graph = small_graph(name)
        for call_id, k in enumerate((-1, 0, 1, 3, 20, 70)):
            key = make_key(4, 2, batch)
            assert_is_a_hop(graph, k, options, key, call_id)


def assert_is_a_hop(graph, k, options, key, call_id=0, **own):
    """All columns, with trees where they have times."""
    given = arguments(graph, **OPTIONS[options], key=key, call_id=call_id)
    times, ids = given.get('column_time'), torch.arange(graph.num_cols)
    # Those of an epoch draw alike.
    trees = times is not None and key[0, 2] != EPOCH_SCOPE
    own['root'] = ids if trees else None
    begin, edge = ops.sample_columns(graph.indptr, k, **given, **own)
    given.pop('column_time', None)
    out = sample_one(
        *(graph.indptr, graph.indices, ids, [k]),
        seed_time=times,
        disjoint=times is not None,
        **given,
    )
    assert torch.equal(edge, out.edge)
    counts = torch.bincount(out.col, minlength=graph.num_cols)
    assert torch.equal(begin.diff(), counts)
    return begin.long(), edge


@pytest.mark.parametrize('options', OPTIONS)
def test_threads_and_dtypes_change_no_column(options):
    before, outs = torch.get_num_threads(), []
    try:
        for threads, dtypes in zip((1, 2, 4), INDEX_DTYPES, strict=True):
            torch.set_num_threads(threads)
            graph = to_dtypes(BIG, dtypes)
            for num_threads in (0, 1, 2, 4):
                outs.append(
                    assert_is_a_hop(
                        graph,
                        9,
                        options,
                        make_key(3),
                        num_threads=num_threads,
                    )
                )
    finally:
        torch.set_num_threads(before)
    for out in outs:
        assert_equal_tensors(out, outs[0])
