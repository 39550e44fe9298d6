import threading

import pytest
import torch

from tests import reference
from tests.ops.cases import some_weights
from tests.ops.compare import assert_equals_reference, digest, lists
from torch_gsample import ops
from torch_gsample.ops import matrix
from torch_gsample.rng import (
    EPOCH_SCOPE,
    current_program,
    make_key,
    program_scope,
)
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
OPTIONS = {
    'plain': {},
    'replace': {'replace': True},
    'weighted': {'weighted': True},
    'weighted-replace': {'weighted': True, 'replace': True},
}


def arguments(graph, weighted=False, **options):
    if weighted:
        options['cum_weight'] = ops.cumulate_weights(
            graph.indptr, some_weights(graph)
        )
    return options


def columns_checked(graph, k, key, **options):
    begin, edge = out = assert_equals_reference(
        'sample_cols',
        graph.indptr,
        k,
        operator=ops.sample_cols,
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
    for size in (0, 1, 50) if graph.num_cols else (0,):
        cols = torch.arange(size) * 7 % max(graph.num_cols, 1)
        for k in (-1, 3, 20):
            key = make_key(k + 1, size)
            out = columns_checked(graph, k, key, cols=cols, **given)
            columns_checked(graph, k, key, cols=cols, id=cols + 9, **given)
            narrow = ops.sample_cols(
                graph.indptr, k, key=key, cols=cols.int(), **given
            )
            assert torch.equal(narrow[1], out[1])


@pytest.mark.parametrize('options', OPTIONS)
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
        out = ops.sample_cols(BIG.indptr, 4, cols=cols, **of_all, **both)
        expected = ops.sample_cols(indptr, 4, id=cols, **of_slice, **both)
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
    _, edge = ops.sample_cols(indptr, 5, key=make_key(0), id=ids)
    first, other, second = edge.view(3, 5) % 50
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


@pytest.mark.parametrize('options', OPTIONS)
@pytest.mark.parametrize('batch', [EPOCH_SCOPE, 0, 5])
def test_columns_are_a_hop_of_neighbor_sample(options, batch):
    for name in SMALL_GRAPHS:
        graph = small_graph(name)
        given = arguments(graph, **OPTIONS[options])
        key = make_key(4, 2, batch)
        for call_id, k in enumerate((-1, 0, 1, 3, 20, 70)):
            begin, edge = ops.sample_cols(
                graph.indptr, k, key=key, call_id=call_id, **given
            )
            out = ops.neighbor_sample(
                graph.indptr,
                graph.indices,
                torch.arange(graph.num_cols),
                [k],
                key=key,
                call_id=call_id,
                **given,
            )
            assert torch.equal(edge, out.edge)
            counts = torch.bincount(out.col, minlength=graph.num_cols)
            assert torch.equal(begin.diff(), counts)


@pytest.mark.parametrize('options', OPTIONS)
def test_threads_and_dtypes_change_no_column(options):
    given = arguments(BIG, **OPTIONS[options])
    before, digests = torch.get_num_threads(), set()
    try:
        for threads, dtypes in zip((1, 2, 4), INDEX_DTYPES, strict=True):
            torch.set_num_threads(threads)
            indptr = to_dtypes(BIG, dtypes).indptr
            for num_threads in (0, 1, 2, 4):
                out = ops.sample_cols(
                    indptr,
                    9,
                    key=make_key(3),
                    num_threads=num_threads,
                    **given,
                )
                digests.add(digest(out))
    finally:
        torch.set_num_threads(before)
    assert len(digests) == 1
    out = ops.neighbor_sample(
        BIG.indptr,
        BIG.indices,
        torch.arange(20_000),
        [9],
        key=make_key(3),
        **given,
    )
    begin = torch.bincount(out.col, minlength=20_000).cumsum(0)
    want = torch.cat([begin.new_zeros(1), begin]), out.edge
    assert digests == {digest(want)}


WEIGHTS = {
    'uniform': None,
    'zeros': lambda n: torch.arange(n) % 3,
    'all zero': lambda n: torch.zeros(n),
    'skewed': lambda n: 0.9 ** torch.arange(n),
}


@pytest.mark.parametrize('replace', [False, True])
@pytest.mark.parametrize('weights', WEIGHTS)
@pytest.mark.parametrize('n', [0, 1, 2, 10, 64, 65, 300])
def test_nodes_equal_the_reference(n, weights, replace):
    # Beyond 64 picks, too: the law stays that of
    # select_weighted_without_replacement().
    cum = None
    if WEIGHTS[weights]:
        indptr, weight = torch.tensor([0, n]), WEIGHTS[weights](n).double()
        cum = ops.cumulate_weights(indptr, weight)
    for call_id, k in enumerate((0, 1, 2, 63, 64, 65, n, n + 1, 299)):
        out = assert_equals_reference(
            'sample_nodes',
            n,
            k,
            operator=ops.sample_nodes,
            key=make_key(n, 1, 2),
            call_id=call_id,
            cum_weight=cum,
            replace=replace,
        )
        assert out.dtype == torch.int64
        assert out.is_contiguous()
        if not replace:
            assert len(set(out.tolist())) == len(out)


def test_as_many_nodes_as_have_a_weight_are_sampled():
    indptr, weight = torch.tensor([0, 9]), torch.arange(9) % 3 * 1.0
    cum = ops.cumulate_weights(indptr, weight)
    for k, want in ((5, 5), (6, 6), (7, 6), (9, 6), (20, 6)):
        out = ops.sample_nodes(9, k, key=make_key(0), cum_weight=cum)
        assert len(out) == want
        assert (out % 3 > 0).all()


IDS = torch.tensor([0, 1, 7, 7, -1, 2**32, 2**63 - 1, -(2**63), 0])


def test_numbers_equal_the_reference():
    for key, call_id in ((make_key(0), 0), (make_key(5, 2, -1), 65_535)):
        out = assert_equals_reference(
            'random_uniform',
            IDS,
            operator=ops.random_uniform,
            key=key,
            call_id=call_id,
        )
        assert out.dtype == torch.float64
        assert len(set(out.tolist())) == 7
        assert out[0] == out[8]
        assert out[2] == out[3]
    assert ops.random_uniform(IDS[:0], key=make_key(0)).shape == (0,)


def test_threads_change_no_number():
    ids, before, outs = torch.arange(50_000), torch.get_num_threads(), []
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            outs.append(ops.random_uniform(ids.int(), key=make_key(9)))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(outs[0], outs[1])
    assert torch.equal(outs[0], outs[2])
    alone = [
        ops.random_uniform(ids[i : i + 1], key=make_key(9)) for i in IDS[:3]
    ]
    assert torch.equal(torch.cat(alone), outs[0][IDS[:3]])


def test_keys_follow_the_seed_of_torch():
    def draw(seed):
        torch.manual_seed(seed)
        return [lists(ops.next_key()) for _ in range(5)]

    assert draw(1) == draw(1)
    assert not {str(key) for key in draw(1)} & {str(key) for key in draw(2)}
    assert len({str(key) for key in draw(1)}) == 5


def test_keys_are_what_torch_draws():
    before = torch.get_rng_state()
    key = ops.next_key()
    torch.set_rng_state(before)
    assert lists(key) == reference.next_key([0])


def test_keys_of_several_threads_differ():
    keys = []

    def draw():
        for _ in range(5_000):
            keys.append(int(ops.next_key()[0, 0]))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(keys)) == 20_000


def test_keys_keep_no_memory():
    before = matrix._key_state._use_count()
    for _ in range(20):
        ops.next_key()
    assert matrix._key_state._use_count() == before


def test_programs_number_their_draws():
    key = make_key(12)
    with program_scope(key):
        assert [current_program()[1] for _ in range(3)] == [0, 1, 2]
        with program_scope(make_key(13)):
            inner, call_id = current_program()
            assert (lists(inner), call_id) == ([[13, 0, 0]], 0)
        assert current_program() == (key, 3)
    first, second = current_program(), current_program()
    assert first[1] == second[1] == 0
    assert not torch.equal(first[0], second[0])
