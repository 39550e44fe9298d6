"""The last edges of columns before a time, in rows of one length."""

import itertools

import pytest
import torch

from tests.ops.compare import assert_equal_tensors, assert_equals_reference
from tests.ops.test_malformed import TRIALS, malformed_graph, some
from torch_gsample import ops
from torch_gsample.ops.last_neighbors import _by_columns
from torch_gsample.testing import (
    SMALL_GRAPHS,
    small_graph,
    to_dtypes,
    with_index_dtypes,
)

MIN, MAX = -(2**63), 2**63 - 1
ENDS = list(itertools.product((True, False), repeat=2))


def arguments(graph, width=9):
    """Columns with times, some of them absent, and ends of intervals."""
    time = some(0, width, graph.num_edges, 3)
    col = graph.col().long()
    time = (col * (2 * width) + time).sort().values - col * (2 * width)
    n = graph.num_cols
    cols = torch.cat(
        [torch.arange(n), torch.tensor([-1, -1]), torch.arange(n)]
    )
    until = some(-1, width + 2, 2 * n + 2, 4)
    return graph.indptr, graph.indices, time, cols, until


def assert_correct(*args, **options):
    out = assert_equals_reference(
        'last_neighbors', *args, operator=ops.last_neighbors, **options
    )
    assert [value.dtype for value in out[1:]] == [torch.int64] * 2
    assert out[0].dtype == args[1].dtype
    assert_equal_tensors(_by_columns(*args, **options), out)  # of a GPU
    return out


@with_index_dtypes
@pytest.mark.parametrize('name', SMALL_GRAPHS)
@pytest.mark.parametrize('ascending', [False, True])
def test_last_edges_are_those_of_the_reference(name, index_dtypes, ascending):
    graph = to_dtypes(small_graph(name), index_dtypes)
    args, found = arguments(graph), 0
    ids = torch.arange(graph.num_edges).flip(0) + 5
    for (start, end), k, window in itertools.product(
        ENDS, (0, 1, 5, 99), (None, 0, 1, 5)
    ):
        out = assert_correct(
            *args,
            k,
            time_window=window,
            closed_start=start,
            closed_end=end,
            ascending=ascending,
            edge_id=[None, ids, ids.int()][k % 3],
            return_edge=k > 0,
            num_threads=1 + k % 2,
        )
        found += int((out[0] >= 0).sum())
    assert found > 0 or graph.num_edges == 0


@pytest.mark.parametrize('width', [1, 70, 3000])
def test_columns_of_all_lengths_are_searched(width):
    """Short columns, those of several cache lines, and long ones."""
    count = torch.tensor([0, 1, 7, 8, 9, 63, 64, 65, 66, 300, 4000])
    indptr = torch.cat([count.new_zeros(1), count.cumsum(0)])
    size = int(indptr[-1])
    time = torch.cat([some(0, width, int(n), 1).sort().values for n in count])
    cols = torch.arange(11).repeat(40)
    until = some(-1, width + 2, 440, 2)
    for threads in (1, 3):
        assert_correct(
            indptr, some(0, 99, size, 3), time, cols, until, 20,
            time_window=width // 3, num_threads=threads,
        )  # fmt: skip


@pytest.mark.parametrize(('start', 'end'), ENDS)
@pytest.mark.parametrize('window', [None, 0, 2, MAX])
def test_extreme_times_do_not_overflow(start, end, window):
    time = torch.tensor([MIN, MIN + 1, -1, 0, MAX - 1, MAX])
    for until in (MIN, MIN + 1, MIN + 2, 0, MAX - 1, MAX):
        assert_correct(
            torch.tensor([0, 6]), torch.arange(6), time, torch.tensor([0]),
            torch.tensor([until]), 6, time_window=window, closed_start=start,
            closed_end=end,
        )  # fmt: skip


def test_malformed_columns_are_refused():
    refused = 0
    for seed in TRIALS:
        indptr, indices = malformed_graph(seed)
        time, until = some(0, 9, 10, seed), some(0, 9, 4, seed + 1)
        args = indptr, indices, time, torch.arange(4), until, 3
        begin, end = indptr[:-1], indptr[1:]
        if not bool(((begin >= 0) & (begin <= end) & (end <= 10)).all()):
            with pytest.raises(RuntimeError, match="'indptr' must ascend"):
                ops.last_neighbors(*args)
            refused += 1
            continue
        neighbor, edge, out = ops.last_neighbors(*args)
        found = edge >= 0
        at = edge[found]
        col = torch.arange(4)[:, None].expand(4, 3)[found]
        assert torch.equal(indices[at], neighbor[found])
        assert torch.equal(time[at], out[found])
        assert ((begin[col] <= at) & (at < end[col])).all()
    assert 100 < refused < 390


def test_wrong_arguments_are_named():
    args = {
        'indptr': torch.tensor([0, 2]),
        'indices': torch.tensor([1, 2]),
        'edge_time': torch.tensor([1, 2]),
        'cols': torch.tensor([0]),
        'until': torch.tensor([3]),
        'k': 2,
    }
    for error, match, changed in (
        (TypeError, "'k' must be an integer", {'k': 1.5}),
        (ValueError, "'k' must be at least 0", {'k': -1}),
        (ValueError, "'time_window' must not", {'time_window': -1}),
        (ValueError, "'edge_id' must have 2", {'edge_id': args['cols']}),
        (TypeError, "'edge_id' must be int32", {'edge_id': torch.ones(2)}),
        (ValueError, "'edge_time' must have 2", {'edge_time': args['cols']}),
        (ValueError, "'until' must have 1", {'until': args['indices']}),
        (TypeError, "'cols' must be int32", {'cols': torch.ones(1)}),
        (
            IndexError,
            r"'cols' must be in \[-1, 1\)",
            {'cols': args['cols'] + 1},
        ),
        (
            IndexError,
            r"'cols' must be in \[-1, 1\)",
            {'cols': args['cols'] - 2},
        ),
    ):
        with pytest.raises(error, match=match):
            ops.last_neighbors(**args | changed)


@pytest.mark.parametrize('function', [ops.last_neighbors, _by_columns])
def test_no_graph_has_columns_but_absent_ones(function):
    none = torch.empty(0, dtype=torch.int64)
    args = torch.zeros(1, dtype=torch.int64), none, none
    cols = torch.tensor([-1, -1])
    out = function(*args, cols, cols, 2)
    assert [value.tolist() for value in out] == [
        [[-1, -1]] * 2,
        [[-1, -1]] * 2,
        [[0, 0]] * 2,
    ]
    cols[1] = 0
    with pytest.raises(IndexError, match=r'in \[-1, 0\) \(got 0 at pos.* 1'):
        function(*args, cols, cols, 2)
