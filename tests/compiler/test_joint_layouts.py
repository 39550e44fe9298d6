"""Layouts that are chosen together give the same."""

import pytest
import torch
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

import torch_gsample as gsample_package
from tests.algorithms.graphs import skewed_graph
from tests.compiler.captured import Captured
from tests.compiler.golden import INDICES, INDPTR, VALUE, aten, gsample, text
from tests.compiler.programs import graph, seeds, tensors
from tests.compiler.test_generated_programs import LONG, assert_same, run
from tests.compiler.test_select_layout import after
from torch_gsample import SparseSample
from torch_gsample.compiler import cost
from torch_gsample.compiler.errors import OptionError
from torch_gsample.compiler.pipeline import PASSES

ROWS = torch.tensor([2, 0, 2])
COLS = torch.tensor([3, 1, 3, 0])
GIVEN = INDPTR, INDICES, VALUE, ROWS

# Text ########################################################################


def row_sums(indptr, indices, value, rows):
    """Sums of rows, and how many edges they have."""
    part = gsample.slice_rows.default(indptr, indices, 4, rows)
    v = aten.index_select.default(value, 0, part[2])
    v = aten.mul.Tensor(v, v)
    zeros = aten.new_full.default(v, [3], 0.0)
    sums = aten.index_add.default(zeros, 0, part[1], v)
    return sums, aten.bincount.default(part[1], None, 3)


def test_sums_of_rows_stay_by_row():
    assert after(row_sums, *GIVEN, layout='csr') == text("""
        %4 = aten.diff(indptr): int64[4]
        %5 = aten.arange(4): int64[4]
        %6 = aten.repeat_interleave.self_Tensor(%5, %4, output_size=9): \
int64[9]
        ^%7 = gsample.coo_to_csc(%6, indices, 4, True, True): 3 parts
        ^%8 = getitem(%7, 0): int64[5]
        ^%9 = getitem(%7, 1): int64[9]
        ^%10 = getitem(%7, 2): int64[9]
        %11 = gsample.slice_cols(%8, %9, rows): 3 parts
        %12 = getitem(%11, 0): int64[4]
        %13 = getitem(%11, 2): int64[6]
        %14 = aten.diff(%12): int64[3]
        %15 = aten.arange(3): int64[3]
        %16 = aten.repeat_interleave.self_Tensor(%15, %14, output_size=6): \
int64[6]
        %17 = aten.index_select(%10, 0, %13): int64[6]
        %18 = aten.index_select(value, 0, %17): float32[6]
        %19 = aten.mul.Tensor(%18, %18): float32[6]
        %20 = aten.new_full(%19, [3], 0.0): float32[3]
        %21 = aten.index_add(%20, 0, %16, %19): float32[3]
        %22 = aten.bincount(%16, minlength=3): int64[3]
        return (%21, %22)
    """)


def test_results_are_in_the_documented_order():
    def function(indptr, indices, value, rows):
        part = gsample.slice_rows.default(indptr, indices, 4, rows)
        v = aten.index_select.default(value, 0, part[2])
        return part[0], part[1], v

    out = after(function, *GIVEN, layout='coo')
    assert out == text("""
        %4 = aten.diff(indptr): int64[4]
        %5 = aten.arange(4): int64[4]
        %6 = aten.repeat_interleave.self_Tensor(%5, %4, output_size=9): \
int64[9]
        ^%7 = gsample.coo_to_csc(%6, indices, 4, True, True): 3 parts
        ^%8 = getitem(%7, 0): int64[5]
        ^%9 = getitem(%7, 1): int64[9]
        ^%10 = getitem(%7, 2): int64[9]
        %11 = gsample.slice_cols(%8, %9, rows): 3 parts
        %12 = getitem(%11, 0): int64[4]
        %13 = getitem(%11, 1): int64[6]
        %14 = getitem(%11, 2): int64[6]
        %15 = aten.diff(%12): int64[3]
        %16 = aten.arange(3): int64[3]
        %17 = aten.repeat_interleave.self_Tensor(%16, %15, output_size=6): \
int64[6]
        %18 = aten.index_select(%10, 0, %14): int64[6]
        %19 = gsample.coo_to_csc(%18, %18, 9, False, False): 3 parts
        %20 = getitem(%19, 2): int64[6]
        %21 = aten.index_select(%13, 0, %20): int64[6]
        %22 = aten.index_select(%17, 0, %20): int64[6]
        %23 = aten.index_select(%18, 0, %20): int64[6]
        %24 = gsample.coo_to_csc(%21, %21, 4, True, False): 3 parts
        %25 = getitem(%24, 0): int64[5]
        %26 = aten.index_select(value, 0, %23): float32[6]
        return (%25, %22, %26)
    """)
    assert after(function, *GIVEN, layout='csr').count('\n') >= 20


def chain(indptr, indices, value, rows):
    """Rows of the graph, and two parts of them."""
    part = gsample.slice_rows.default(indptr, indices, 4, rows)
    v = aten.index_select.default(value, 0, part[2])
    first = gsample.slice_cols.default(part[0], part[1], COLS * 1)
    again = gsample.slice_rows.default(part[0], part[1], 3, ROWS * 1)
    w = aten.index_select.default(v, 0, again[2])
    zeros = aten.new_full.default(w, [3], 0.0)
    sums = aten.index_add.default(zeros, 0, again[1], w)
    return first[1], first[2], sums


@pytest.mark.parametrize('first', ['csc', 'csr', 'coo'])
@pytest.mark.parametrize('second', ['csc', 'csr', 'coo'])
@pytest.mark.parametrize('third', ['csc', 'csr', 'coo'])
def test_each_assignment_gives_the_same(first, second, third):
    layout = {'slice_rows[0]': first, 'slice_cols[0]': second}
    layout['slice_rows[1]'] = third
    out = after(chain, *GIVEN, layout=layout)
    by_row = 'gsample.slice_rows(indptr, indices' not in out
    assert by_row == (first != 'csc')


def test_slices_share_one_sorted_graph():
    def function(indptr, indices, value, rows):
        return tuple(
            total
            for some in (rows, rows // 2)
            for total in row_sums(indptr, indices, value, some)
        )

    out = after(function, *GIVEN, layout={'slice_rows[0]': 'csr'})
    assert (out.count('coo_to_csc'), out.count('slice_rows')) == (1, 1)
    out = after(function, *GIVEN, layout='csr')
    assert (out.count('coo_to_csc'), out.count('slice_rows')) == (1, 0)


def test_sums_of_columns_are_in_the_promised_order():
    """Rows that are not sorted come in another order in a column.

    There 1 + 1e8 - 1e8 is 0, by row it is 1.
    """

    def function(indptr, indices, value, rows):
        part = gsample.slice_rows.default(indptr, indices, 4, rows)
        v = aten.index_select.default(value, 0, part[2])
        degree = aten.diff.default(part[0])
        n = aten.sym_size.int(degree, 0)
        columns = aten.repeat_interleave.self_Tensor(
            aten.arange.default(n), degree
        )
        zeros = aten.new_full.default(v, [n], 0.0)
        return (aten.index_add.default(zeros, 0, columns, v),)

    value = torch.zeros(9).index_fill(0, torch.tensor([4]), 1.0)
    value[6], value[7] = 1e8, -1e8
    given = INDPTR, INDICES, value, torch.tensor([3, 2, 0])
    out = after(function, *given, layout={'slice_rows[0]': 'csr'})
    assert out.count('coo_to_csc') == 3  # of the graph, the order, pointers


@pytest.mark.parametrize('part', [0, 1, 2])
def test_slices_changed_in_place_stay_by_column(part):
    def function(indptr, indices, value, rows):
        found = gsample.slice_rows.default(indptr, indices, 4, rows)
        found[part].view(-1).add_(0)
        return found[0], found[1], found[2]

    out = after(function, *GIVEN, layout='csr')
    assert 'gsample.slice_rows(indptr, indices, 4, rows)' in out


def test_layouts_that_exclude_each_other_are_refused():
    def function(indptr, indices, value, rows):
        part = gsample.slice_rows.default(indptr, indices, 4, rows)
        local = gsample.unique_nodes.default(part[1], 3, True)
        size = aten.sym_size.int(local[0], 0)
        again = gsample.slice_rows.default(part[0], local[1], size, rows // 2)
        return (aten.bincount.default(again[1], None, 3),)

    layout = {'slice_rows[0]': 'csr', 'unique_nodes[0]': 'csc'}
    with pytest.raises(OptionError, match=r'must be compatible \(got'):
        after(function, *GIVEN, layout=layout)
    out = after(function, *GIVEN, layout='csr')
    assert 'gsample.slice_rows' not in out


# Real programs ###############################################################

OTHERS = [p.name for p in PASSES if p.name != 'select_layout']


def notes(trace):
    found = [s.notes for s in trace.steps if s.name == 'select_layout']
    return found[0] if found else ()


def offered(trace):
    """The layouts of each matrix, as the pass reports them."""
    out = {}
    for line in notes(trace):
        if 'together' in line:
            costs = line.rpartition('predicted ')[2].split(', ')
            out[line.partition(':')[0]] = [cost.split()[0] for cost in costs]
    return {name: labels for name, labels in out.items() if len(labels) > 1}


def test_columns_that_do_not_exist_are_refused_by_row():
    def function(A, s):
        return A[s, :][:, s + 1].coo()

    fast = Captured(function)
    fast(graph(), seeds(3))
    fast.rewrite(layout='csr')
    with pytest.raises((RuntimeError, IndexError)):
        fast(graph(), torch.tensor([39, 1, 2]))


def test_rows_of_a_large_graph_are_taken_by_row(monkeypatch):
    """As predicted, and then by measuring: a clock by which joint ones win."""
    run_node = cost._Clock.run_node

    def timed(self, n):
        out, candidate = run_node(self, n), n.meta.get('candidate')
        if candidate is not None:
            self.seconds[candidate] = 1.0 + (candidate[1] != 'joint')
        return out

    monkeypatch.setattr(cost._Clock, 'run_node', timed)
    torch.manual_seed(0)
    row, col = torch.randint(20_000, (2, 400_000))
    A = SparseSample.from_coo(row, col, torch.rand(400_000), (20_000,) * 2)

    def function(A, s):
        return A[s, :].sum(1), A[s, :][:, s].coo()

    shown = gsample_package.explain(function, A, torch.arange(50))
    lines = notes(shown.trace)
    assert lines[0].startswith('slice_rows[0]: coo, converted to csc, chosen')
    assert ', csr ' in lines[0].partition('predicted csc ')[2]
    assert lines[1].startswith('slice_cols[0]: csc, chosen together')
    assert lines[2].startswith('layouts[0]: open, measured by the first calls')
    assert 'layouts[0]: joint, measured csc ' in str(shown)


KINDS = 'rows', 'cols', 'compact', 'rows'


@st.composite
def programs(draw):
    """Slices of slices, and a result of each."""
    number = st.integers(0, 9)
    count = draw(st.integers(1, 4))
    steps = tuple(
        (draw(st.sampled_from(KINDS)), draw(number), draw(number))
        for _ in range(count)
    )
    uses = tuple(draw(st.integers(0, 7)) for _ in range(count))
    picks = tuple(draw(number) for _ in range(count + 1))
    return steps, uses, picks


def used(M, use):
    """The result of a program for a matrix."""
    if use == 0:
        return []
    if use == 1:
        return [M.sum(1), M.degree(1)]
    if use == 2:
        return [(M**2).mul(M.sum(1), dim=1).sum(1)]
    if use == 3:
        return [*M.coo(), M.edge_id]
    if use == 4:
        return [M.sum(0), M.degree(0)]
    if use == 5:
        return [M.individual_sample(2)]
    if use == 6:
        return [M.row(), torch.exp(M)]
    return [M]


def function_of(steps, uses):
    few = torch.tensor([2, 0, 1, 2])

    def function(A, s):
        made, out = [A], []
        for (kind, parent, number), use in zip(steps, uses, strict=True):
            parent = parent % len(made)
            M = made[parent]
            ids = s if parent == 0 else few[: 2 + number % 3]
            ids = (ids + number) % 3 if parent else (ids * (number + 1)) % 40
            if kind == 'rows' or parent == 0:
                M = M[ids, :] if kind != 'cols' else M[:, ids]
            elif kind == 'cols':
                M = M[:, s if M.num_cols == 40 else ids]
            else:
                M = M.compact(sorted=True)
            made.append(M)
            out += used(M, use)
        return [*out, *used(made[-1], 1)]

    return function


@settings(LONG, max_examples=10)
@given(programs())
def test_random_assignments_give_the_same(program):
    steps, uses, picks = program
    function = function_of(steps, uses)
    A = skewed_graph()
    A = A.with_value(A.values().clone().requires_grad_())
    note(f'{steps} {uses}')
    want = {}
    for size in (9, 3):
        try:
            want[size] = run(function, A, size)
        except (IndexError, ValueError):  # rows that a compact one lacks
            continue
    assume(want)
    fast = Captured(function)
    run(fast, A, 9)
    labels = offered(fast.rewrite())
    assume(labels)
    chosen = {
        name: found[pick % len(found)]
        for (name, found), pick in zip(labels.items(), picks, strict=False)
        if not name.startswith('unique')
    }
    note(str(chosen))
    for way in (
        {'passes': OTHERS},
        {'layout': chosen},
        {'layout': 'csr'},
        {'layout': 'coo'},
    ):
        try:
            fast.rewrite(**way)
        except OptionError:
            continue
        for size, wanted in want.items():
            assert_same(run(fast, A, size), wanted)


def test_results_are_the_eager_ones_bit_by_bit():
    """Values, too, of a matrix that is sliced twice."""

    def function(A, s):
        S = A[s.repeat(2), :]
        return S.sum(1), S[s % 3, :], S

    A = graph(torch.float32)
    want = tensors(function(A, seeds(9)))
    fast = Captured(function)
    for layout in ('csr', 'coo', 'csc'):
        fast(A, seeds(9))
        fast.rewrite(layout=layout)
        for a, b in zip(tensors(fast(A, seeds(9))), want, strict=True):
            assert torch.equal(a, b)
