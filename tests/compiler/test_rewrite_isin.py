"""Edges and nodes are searched without sorting them."""

import warnings

import pytest
import torch

from tests.compiler.captured import Captured
from tests.compiler.golden import after, aten, gsample, text
from tests.compiler.programs import compiled, graph, seeds, trace
from torch_gsample import super_batch
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
    assert 'has_edges(p, i' not in rewritten(*numbers)


def test_rows_of_32_bits_may_overflow():
    assert 'has_edges(p, i' not in rewritten(
        lambda row, col: row * 4 + col.int(), rows=ROWS.int()
    )


# Vectors #####################################################################


def searched(x, y, **options):
    return after(
        rewrite,
        lambda x, y: (aten.isin.Tensor_Tensor(x, y, **options),),
        *(x, y),
    )


def test_vectors_are_searched_as_a_column():
    assert searched(ROWS, POINTERS[:4]) == text("""
        %2 = aten.arange(2): int64[2]
        %3 = aten.mul.Tensor(%2, 4): int64[2]
        %4 = aten.mul.Tensor(%2, 5): int64[2]
        %5 = gsample.has_edges(%3, y, %4, x): bool[5]
        return (%5)
    """)
    assert 'aten.logical_not' in searched(ROWS, POINTERS, invert=True)
    assert 'logical_not' not in searched(ROWS, ROWS, assume_unique=True)


@pytest.mark.parametrize(
    'operands',
    [
        (ROWS, ROWS.int()),
        (ROWS, ROWS.double()),
        (ROWS.double(), ROWS.double()),
        (ROWS.short(), ROWS.short()),
        (ROWS.view(5, 1), ROWS),
        (ROWS, ROWS.view(1, 5)),
        (ROWS[::2], ROWS),
    ],
)
def test_other_operands_are_left(operands):
    assert 'has_edges' not in searched(*operands)


def test_changed_vectors_are_left():
    def function(x, y):
        found = aten.isin.Tensor_Tensor(x, y)
        y.add_(0)
        return (found,)

    assert 'has_edges' not in after(rewrite, function, ROWS, ROWS + 1)


EXTREMES = torch.tensor([0, -1, -(2**63), 2**63 - 1, 2**20, 2**32, 5])


@pytest.mark.parametrize('dtype', [torch.int32, torch.int64])
@pytest.mark.parametrize('invert', [False, True])
@pytest.mark.parametrize(('n', 'm'), [(0, 9), (9, 0), (3, 2), (5000, 700)])
def test_results_are_those_of_torch(dtype, invert, n, m):
    def draw(size):
        few = torch.randint(-50, 2000, (size,))
        values = torch.cat([few, EXTREMES[: size // 2]])[-size:]
        return (values if size else values[:0]).to(dtype)

    fast = compiled(lambda x, y: torch.isin(x, y, invert=invert))
    torch.manual_seed(n)
    for _ in range(3):
        x, y = draw(n), draw(m)
        assert torch.equal(fast(x, y), torch.isin(x, y, invert=invert))


def test_batches_are_searched_together():
    def program(A, seeds):
        S = A[:, seeds]
        return S.masked(~torch.isin(S.edges()[0], seeds)).edge_id

    A, batches = graph(), [seeds(n, start=n) for n in (5, 1, 20)]
    fast = super_batch(program, 3)
    with warnings.catch_warnings():
        warnings.simplefilter('error')  # such as 'called for each batch'
        found = fast(A, batches)
    assert all(map(torch.equal, found, [program(A, b) for b in batches]))
    assert sum(map(len, found)) > 0
