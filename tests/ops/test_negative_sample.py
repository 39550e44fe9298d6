import pytest
import torch
from scipy import stats

from tests.ops.compare import assert_equals_reference
from tests.ops.negative_sample_cases import (
    EDGES,
    OPTIONS,
    ORDER,
    ORDER_TIME,
    WEIGHT,
    arguments,
    cumulated,
    neighbors,
)
from tests.ops.neighbors import sample_one
from torch_gsample import ops
from torch_gsample.rng import make_key
from torch_gsample.testing import small_graph

DRAWS = 30_000


def draw(ids, num_nodes, key, target=True, call_id=0, **given):
    """Compares with the reference, and returns what both return."""

    def front(ids, num_nodes, target, key, call_id, **given):
        return ops.negative_sample(
            ids, num_nodes, key=key, call_id=call_id, target=target, **given
        )

    return assert_equals_reference(
        'negative_sample',
        ids,
        num_nodes,
        target,
        key,
        call_id,
        operator=front,
        **given,
    )


@pytest.mark.parametrize('target', [False, True])
@pytest.mark.parametrize('options', OPTIONS)
def test_negatives_equal_the_reference(options, target):
    ids = torch.arange(66) * 7
    given = arguments(66, **OPTIONS[options])
    for seed in range(3):
        key = make_key(seed, epoch=4, batch=2)
        out = draw(ids, 6, key, target, call_id=seed, **given)
        assert out.dtype == torch.int64
        assert int(out.min()) >= -1
        assert int(out.max()) < 6


def test_dtypes_and_strides_change_nothing():
    ids, given = torch.arange(12), arguments(12, **OPTIONS['all'])
    want = ops.negative_sample(ids, 6, key=make_key(0), **given)
    narrow = {name: value.int() for name, value in given.items()}
    narrow['cum_weight'] = given['cum_weight']  # needs 64 bits
    strided = {
        name: value.repeat(2, 1).T[:, 0] for name, value in given.items()
    }
    for other in (narrow, strided):
        out = ops.negative_sample(ids.int(), 6, key=make_key(0), **other)
        assert torch.equal(out, want)


def test_items_of_one_id_draw_the_same():
    out = draw(torch.tensor([5, 9, 5, 5]), 1_000, make_key(0))
    assert out[0] == out[2] == out[3] != out[1]


def test_sources_targets_calls_and_hops_draw_independently():
    ids, key = torch.arange(DRAWS), make_key(1)
    drawn = [
        ops.negative_sample(ids, 8, key=key, target=target, call_id=call)
        for target in (False, True)
        for call in (0, 1)
    ]
    hop = sample_one(
        torch.arange(DRAWS + 1) * 8,
        torch.zeros(DRAWS * 8, dtype=torch.int64),
        ids,
        [1],
        key=key,
    )
    drawn.append(hop.edge % 8)
    for i, first in enumerate(drawn):
        for second in drawn[:i]:
            counts = torch.bincount(first * 8 + second, minlength=64)
            assert stats.chisquare(counts.numpy()).pvalue > 0.001


def law(max_time=None, edges=(), weight=None):
    """The probability of each of the six nodes."""
    p = torch.zeros(6, dtype=torch.float64)
    for position, v in enumerate(ORDER.tolist()):
        late = max_time is not None and ORDER_TIME[position] > max_time
        if v not in edges and not late:
            p[v] = 1 if weight is None else weight[position]
    return p / p.sum()


@pytest.mark.parametrize('threads', [1, 2, 4])
@pytest.mark.parametrize('weight', [None, WEIGHT])
@pytest.mark.parametrize('max_time', [None, 2, 5, 8])
@pytest.mark.parametrize('anchor', [None, 0, 1, 2])
def test_negatives_follow_the_law(anchor, max_time, weight, threads):
    p = law(
        max_time,
        [] if anchor is None else [[], [2, 3], [0, 1, 2, 3, 5]][anchor],
        weight,
    )
    given = {'order': ORDER, 'order_time': ORDER_TIME}
    late = 100 if max_time is None else max_time
    given['max_time'] = torch.full((DRAWS,), late)
    if anchor is not None:
        given |= {'anchor': torch.full((DRAWS,), anchor), **EDGES}
    if weight is not None:
        given['cum_weight'] = cumulated(weight)
    torch.set_num_threads(threads)
    out = ops.negative_sample(torch.arange(DRAWS), 6, key=make_key(3), **given)
    if p.isnan().all():  # no candidate
        assert (out == -1).all()
        return
    counts = torch.bincount(out, minlength=6).double()
    assert counts[p == 0].sum() == 0
    if (p > 0).sum() > 1:
        counts, p = counts[p > 0], p[p > 0]
        assert stats.chisquare(counts, p * DRAWS).pvalue > 0.001


def test_negatives_of_many_nodes_are_uniform():
    out = ops.negative_sample(torch.arange(DRAWS), 1_000_003, key=make_key(4))
    counts = torch.bincount(out * 50 // 1_000_003, minlength=50)
    assert stats.chisquare(counts.numpy()).pvalue > 0.001


def test_saturated_anchors_draw_remaining_nodes():
    # 995 of 1,000 nodes are neighbours: 64 draws will mostly all be edges.
    free = [7, 100, 500, 501, 999]
    edges = neighbors([[v for v in range(1_000) if v not in free]])
    out = ops.negative_sample(
        torch.arange(5_000),
        1_000,
        key=make_key(5),
        anchor=torch.zeros(5_000, dtype=torch.int64),
        **{'indptr': edges['indptr'], 'indices': edges['indices']},
    )
    counts = torch.bincount(out, minlength=1_000)[free]
    assert int(counts.sum()) == 5_000
    assert stats.chisquare(counts.numpy()).pvalue > 0.001


def test_saturated_weighted_anchors_follow_the_weights_that_are_left():
    weight = torch.full((100,), 1e6)
    weight[[3, 50]] = torch.tensor([1.0, 3.0])
    edges = neighbors([[v for v in range(100) if v not in (3, 50)]])
    out = ops.negative_sample(
        torch.arange(4_000),
        100,
        key=make_key(6),
        cum_weight=cumulated(weight),
        anchor=torch.zeros(4_000, dtype=torch.int64),
        **edges,
    )
    counts = torch.bincount(out, minlength=100)
    assert int(counts[3] + counts[50]) == 4_000
    expected = [1_000, 3_000]
    assert stats.chisquare(counts[[3, 50]], expected).pvalue > 0.001


def test_no_candidate_gives_minus_one():
    ids, key = torch.arange(4), make_key(0)
    full = {'anchor': torch.full((4,), 3), **EDGES}
    assert draw(ids, 6, key, **full).tolist() == [-1] * 4
    zero = cumulated(torch.zeros(6))
    assert draw(ids, 6, key, cum_weight=zero).tolist() == [-1] * 4


def test_the_earliest_node_stands_in_where_none_is_early_enough():
    out = draw(
        torch.arange(4),
        6,
        make_key(0),
        order=ORDER,
        order_time=ORDER_TIME,
        max_time=torch.tensor([0, -5, 0, 1]),
    )
    assert out[:3].tolist() == [3, 3, 3]


def test_no_items_draw_nothing():
    none = torch.tensor([], dtype=torch.int64)
    assert draw(none, 0, make_key(0)).numel() == 0
    assert draw(none, 6, make_key(0)).numel() == 0


def test_parallel_edges_and_loops_are_edges():
    graph = small_graph('multi_edge')
    columns = [
        graph.indices[graph.indptr[v] : graph.indptr[v + 1]].tolist()
        for v in range(3)
    ]
    out = draw(
        torch.arange(30),
        3,
        make_key(0),
        anchor=torch.arange(30) % 3,
        **neighbors(columns),
    )
    for i, v in enumerate(out.tolist()):
        assert v not in columns[i % 3]
