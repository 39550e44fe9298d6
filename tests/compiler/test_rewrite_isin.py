"""Edges are searched in columns, not among the numbers of all of them."""

import pytest
import torch

from tests.compiler.captured import Captured
from tests.compiler.golden import after, aten, gsample, text
from tests.compiler.programs import compiled, graph, trace
from torch_gsample.compiler.passes.canonicalize import canonicalize
from torch_gsample.compiler.passes.eliminate_dead import eliminate_dead
from torch_gsample.compiler.passes.rewrite_isin import rewrite_isin
from torch_gsample.rng import make_key, program_scope


def by_row(S, rows, n):
    return S.coo()[0].long() * n + S.coo()[1]


def by_col(S, rows, n):
    return S.coo()[0].long() + rows * S.coo()[1]


def node2vec(A, seeds, length=3, p=2.0, q=0.5, number=by_row, weighted=False):
    """As in the paper: the distribution of candidates by distance."""
    walk = [seeds]
    for step in range(length + 1):
        at = walk[-1]
        S = A[:, at]
        bias = S.values() if weighted else torch.ones_like(S.values())
        if step > 0:
            before = walk[-2]
            x, walker = S.coo()
            codes = (number(m, A.num_rows, len(at)) for m in (S, A[:, before]))
            law = torch.where(torch.isin(*codes), 1.0, 1 / q)
            bias = bias * torch.where(x == before[walker], 1 / p, law)
        S.col_ids = None  # each walker draws by itself
        x, walker = S.individual_sample(1, bias).coo()
        at = at.clone()
        at[walker] = x.long()
        walk.append(at)
    return torch.stack(walk, dim=1)


PROGRAMS = {
    'by-row': {},
    'by-col': {'number': by_col},
    'weighted': {'weighted': True},
}


@pytest.mark.parametrize('name', PROGRAMS)
def test_walks_by_hand_are_those_of_eager_code(name):
    def program(A, seeds):
        return node2vec(A, seeds, **PROGRAMS[name])

    A = graph()
    seeds = torch.arange(1, 38, 2).repeat(2)  # walkers meet
    # Sizes are constants here; test_fuse_edge_map_select.py has variable ones.
    for size in (38, 1, 0) if name == 'by-row' else (38,):
        fast = Captured(program)
        for ids in (seeds[:size], seeds.flip(0)[:size]):
            for number in range(3):
                with program_scope(make_key(number)):
                    want = program(A, ids)
                with program_scope(make_key(number)):
                    assert torch.equal(fast(A, ids), want)
        steps = fast.rewrite().steps
        [out] = [step.text for step in steps if step.name == 'rewrite_isin']
        assert out.count('gsample.has_edges') == 3
        assert 'isin' not in out


def test_walkers_of_one_node_draw_by_themselves():
    def program(A, seeds):
        S = A[:, seeds]
        S.col_ids = None
        return S.individual_sample(1).coo()

    A, seeds = graph(), torch.full((64,), 3)
    out = trace(program, A, seeds).text
    assert 'cols=l_seeds_, id=' in out  # they are not extracted
    fast = compiled(program)
    with program_scope(make_key(1)):
        want = program(A, seeds)
    with program_scope(make_key(1)):
        got = fast(A, seeds)
    assert len(want[0].unique()) > 1
    assert all(map(torch.equal, got, want))


# Hand-made programs ##########################################################

POINTERS = torch.tensor([0, 2, 3, 3, 5])
ROWS = torch.tensor([1, 3, 0, 2, 3])


def rewrite(g):
    canonicalize(g)
    rewrite_isin(g)
    eliminate_dead(g)


def col_of(ptr, row):
    """The column of each edge, as a matrix has it."""
    counts = aten.diff.default(ptr)
    columns = aten.arange.default(aten.sym_size.int(counts, 0))
    size = aten.sym_size.int(row, 0)
    return aten.repeat_interleave.self_Tensor(
        columns, counts, output_size=size
    )


def rewritten(ask, search=None, rows=ROWS):
    """``isin`` of two numberings, of rows, columns and 4."""

    def function(p, i, at, before):
        sides = []
        for cols, number in ((at, ask), (before, search or ask)):
            slice = gsample.slice_cols.default(p, i, cols)
            sides.append(number(slice[1], col_of(slice[0], slice[1])))
        return (aten.isin.Tensor_Tensor(*sides),)

    return after(
        rewrite,
        function,
        *(POINTERS, rows, torch.tensor([2, 0, 1, 3]), torch.arange(4)),
    )


def test_columns_are_searched_where_they_are():
    assert rewritten(lambda row, col: row * 4 + col) == text("""
        %4 = gsample.slice_cols(p, i, at): 3 parts
        %5 = getitem(%4, 1): int64[5]
        %6 = getitem(%4, 0): int64[5]
        %7 = gsample.has_edges(p, i, %6, %5, before): bool[5]
        return (%7)
    """)


@pytest.mark.parametrize(
    'number',
    [
        lambda row, col: col + 4 * row,
        lambda row, col: col + row * 4,
        lambda row, col: 4 * row + col,
    ],
)
def test_numbers_of_edges_are_read(number):
    out = rewritten(number)
    assert 'has_edges' in out
    assert 'num_rows' not in out


def test_rows_are_checked_where_they_come_last():
    assert 'num_rows=9' in rewritten(lambda row, col: row + 9 * col)


@pytest.mark.parametrize(
    'numbers',
    [
        (lambda row, col: row * 3 + col,),  # edges share numbers
        (lambda row, col: row * 5 + col,),
        (lambda row, col: row * 4 - col,),
        (lambda row, col: row * 4 * col,),
        (lambda row, col: row * 4 + row,),
        (lambda row, col: torch.add(row * 4, col, alpha=2),),
        (lambda row, col: row * 4 + col, lambda row, col: row + col * 4),
        (lambda row, col: row + col * 5, lambda row, col: row + col * 6),
        (lambda row, col: row.double() * 4 + col,),
    ],
)
def test_other_numbers_are_left(numbers):
    assert 'has_edges' not in rewritten(*numbers)


def test_rows_of_32_bits_may_overflow():
    assert 'has_edges' not in rewritten(
        lambda row, col: row * 4 + col.int(), rows=ROWS.int()
    )
