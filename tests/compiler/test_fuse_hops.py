"""Loops of hops become one operator, whatever their frontier is."""

import pytest
import torch

from tests.compiler.captured import Captured
from tests.compiler.golden import (
    INDICES,
    INDPTR,
    KEY,
    SEEDS,
    VALUE,
    after,
    aten,
    gsample,
    text,
)
from tests.compiler.programs import (
    PROGRAMS,
    compiled,
    graph,
    seeds,
    tensors,
    trace,
)
from torch_gsample import ops
from torch_gsample.compiler.passes.canonicalize import canonicalize
from torch_gsample.compiler.passes.eliminate_dead import eliminate_dead
from torch_gsample.compiler.passes.fuse_hops import fuse_hops
from torch_gsample.rng import make_key, program_scope
from torch_gsample.sparse_sample.extract import by_column

A = graph()
GRAPH = INDPTR, INDICES, VALUE, SEEDS, KEY
MANY = 2**62


def rewrite(g):
    canonicalize(g)
    fuse_hops(g)
    eliminate_dead(g)


def hops(frontier, *, between=None, weight=False, last=None, ks=(2, 1), **own):
    """The text of a loop, as `fuse_extract_select` leaves one."""

    def function(indptr, indices, value, seeds, key):
        out, columns, given = [], seeds, dict(own)
        for call_id, k in enumerate(ks):
            if weight:
                given['cum_weight'] = gsample.cumulate_weights.default(
                    indptr, value
                )
            sample = gsample.sample_columns.default(
                indptr, k, key, call_id, cols=columns, **given
            )
            rows = aten.index_select.default(indices, 0, sample[1])
            if between is not None:
                out.append(between(rows, value))
            out += [sample[0], rows, sample[1], columns]
            columns = frontier(columns, rows)
        return (*out, last(columns) if last else columns)

    return after(rewrite, function, *GRAPH)


def length(vector):
    return aten.sym_size.int(vector, 0)


def nodes(columns, rows):
    row = gsample.unique_nodes.default(rows, 4)[0]
    return gsample.unique_nodes.default(torch.cat([columns, row]), MANY)[0]


def walked(columns, rows, begin):
    count = aten.diff.default(begin)
    number = aten.arange.default(length(columns))
    column = aten.repeat_interleave.self_Tensor(number, count)
    return aten.index_put.default(columns, [column], rows)


RULES = {
    'row': lambda c, r: gsample.unique_nodes.default(r, 4)[0],
    'nodes': nodes,
    'new': lambda c, r: nodes(c, r)[length(c) :],
}
SORTED = {
    'row': lambda c, r: gsample.unique_nodes.default(r, 4)[0].unique(),
    'nodes': lambda c, r: torch.cat([c, r]).unique(),
}


def test_hops_and_their_frontiers_are_one_operator():
    assert hops(nodes) == text("""
        %5 = gsample.sample_layers([indptr, indices], [0, 0], [4], [seeds], [2, 1], [key, key], [0, 1], return_frontier=True): 5 parts
        %6 = getitem(%5, 0): 2 parts
        %7 = getitem(%6, 0): int64[3]
        %8 = getitem(%5, 1): 2 parts
        %9 = getitem(%8, 0): int64[4]
        %10 = getitem(%5, 2): 2 parts
        %11 = getitem(%10, 0): int64[4]
        %12 = getitem(%5, 3): 2 parts
        %13 = getitem(%12, 0): int64[4]
        %14 = getitem(%6, 1): int64[5]
        %15 = getitem(%8, 1): int64[3]
        %16 = getitem(%10, 1): int64[3]
        %17 = getitem(%12, 1): int64[4]
        return (%7, %9, %11, seeds, %14, %15, %16, %13, %17)
    """)  # noqa: E501


@pytest.mark.parametrize('rule', RULES)
@pytest.mark.parametrize('ks', [(2, 1), (2, -1, 2)])
def test_rules_of_frontiers_are_found(rule, ks):
    out = hops(RULES[rule], ks=ks)
    assert 'sample_columns' not in out
    assert 'unique' not in out
    assert (' frontier=' in out) == (rule != 'nodes')
    if rule != 'nodes':
        assert f' frontier={rule}, ' in out


@pytest.mark.parametrize('rule', SORTED)
def test_sorted_frontiers_are_found(rule):
    out = hops(SORTED[rule], last=lambda columns: columns[:0])
    assert 'gsample.sample_layers(' in out
    assert 'sorted=True' in out
    assert out.count('unique') <= 1  # of the last frontier: rows may be more


def test_hops_of_another_relation_are_left():
    assert 'sample_layers' not in hops(nodes, options=[0, 1, 0])


def test_gathers_of_edges_move_behind_the_operator():
    out = hops(nodes, between=lambda rows, value: value[rows] * 2)
    lines = out.splitlines()
    at = [i for i, line in enumerate(lines) if 'index.Tensor(value' in line]
    assert len(at) == 2
    assert 'sample_layers' in lines[0]


def test_weights_of_all_hops_are_the_same():
    function = hops(nodes, weight=True)
    assert 'gsample.sample_columns(' in function  # until they are one node


@pytest.mark.parametrize(
    'frontier',
    [
        lambda c, r: gsample.unique_nodes.default(r, 4)[0] % 3,
        lambda c, r: torch.cat([c, gsample.unique_nodes.default(r, 4)[0]]),
        lambda c, r: nodes(c, r)[1 + length(c) :],
        lambda c, r: nodes(r, c),
        lambda c, r: nodes(c * 1, r),
        lambda c, r: nodes(c, r)[length(c) :: 2],
        lambda c, r: torch.cat([c, r]).unique()[length(c) :],
        lambda c, r: gsample.unique_nodes.default(c, 4)[0],
    ],
)
def test_other_frontiers_are_left(frontier):
    assert 'sample_layers' not in hops(frontier)


def test_one_hop_is_left():
    assert 'sample_layers' not in hops(nodes, ks=(2,))


def test_hops_that_change_in_place_are_left():
    def between(rows, value):
        rows.view(-1).add_(0)
        return rows * 1

    assert 'sample_layers' not in hops(nodes, between=between)


def test_frontiers_of_other_operations_stay_separate():
    out = hops(nodes, between=lambda rows, value: rows.unique())
    assert 'sample_layers' in out
    assert out.count('.unique(') == 2


def walks(step, k=1, **own):
    """Two steps, and the rest of the program."""

    def function(indptr, indices, value, seeds, key):
        out, columns = [], seeds
        for call_id in range(2):
            begin, edge = gsample.sample_columns.default(
                indptr, k, key, call_id, cols=columns, **own
            )
            columns = step(
                columns, aten.index_select.default(indices, 0, edge), begin
            )
            out.append(columns)
        return tuple(out)

    return after(rewrite, function, *GRAPH)


def test_walks_are_one_operator():
    assert walks(walked) == text("""
        %5 = gsample.sample_layers([indptr, indices], [0, 0], [4], [seeds], [1, 1], [key, key], [0, 1], frontier=walk, return_frontier=True): 5 parts
        %6 = getitem(%5, 3): 2 parts
        %7 = getitem(%6, 0): int64[2]
        %8 = getitem(%6, 1): int64[2]
        return (%7, %8)
    """)  # noqa: E501


def test_rows_of_edges_are_a_frontier():
    out = walks(lambda columns, rows, begin: rows, k=2)
    assert ' frontier=edges, ' in out


def test_steps_along_two_edges_are_left():
    assert 'sample_layers' not in walks(walked, k=2)


@pytest.mark.parametrize(
    'step',
    [
        lambda c, r, b: walked(c.flip(0), r, b),
        lambda c, r, b: walked(c, r % 3, b),
        lambda c, r, b: walked(c, r, b).clone(),
        lambda c, r, b: aten.index_put.default(
            c, [aten.arange.default(length(r))], r
        ),
    ],
)
def test_other_steps_are_left(step):
    assert 'sample_layers' not in walks(step)


# Real captures ###############################################################


def loop(frontier, **options):
    def program(A, seeds):
        layers, state = [], None
        for k in options.get('ks', (3, 2, 2)):
            sub = A[:, seeds]
            probs = sub if options.get('weighted') else None
            S = sub.individual_sample(k, probs, options.get('replace', False))
            layers.append(S)
            seeds, state = frontier(S, seeds, state)
        return layers

    return program


def unseen(S, seeds, seen):
    seen = seeds if seen is None else seen
    every = ops.unique_nodes(torch.cat([seen, S.row()]))[0]
    return every[seen.shape[0] :], every


def walk(S, columns, _):
    """Walkers stay where no edge ends."""
    row, column = S.coo()
    following = columns.clone()
    following[column] = row
    return following, None


def walk_functional(S, columns, _):
    row, column = S.coo()
    return columns.index_put((column,), row), None


LOOPS = {
    'row': loop(lambda S, s, _: (S.row(), None)),
    'row-sorted': loop(lambda S, s, _: (S.row().unique(), None)),
    'row-of-edges': loop(lambda S, s, _: (S.edges()[0].unique(), None)),
    'nodes': loop(lambda S, s, _: (S.nodes(), None)),
    'nodes-sorted': loop(
        lambda S, s, _: (torch.unique(torch.cat([s, S.row()])), None)
    ),
    'new': loop(lambda S, s, _: (S.nodes()[s.shape[0] :], None)),
    'unseen': loop(unseen),
    'weighted': loop(lambda S, s, _: (S.nodes(), None), weighted=True),
    'replace': loop(lambda S, s, _: (S.row(), None), replace=True),
    'edges': loop(lambda S, s, _: (S.edges()[0], None)),
    'walk': loop(walk, ks=(1, 1, 1)),
    'walk-functional': loop(walk_functional, ks=(1, 1)),
    'walk-weighted': loop(walk, ks=(1, 1, 1), weighted=True),
    'weighted-replace': loop(
        lambda S, s, _: (S.nodes(), None), weighted=True, replace=True
    ),
}


#: Nodes 0 to 3 are dead ends, where walkers stay or vanish.
_DEAD_ENDS = A.masked(A.coo()[1] > 3)
GRAPHS = {n: _DEAD_ENDS for n in LOOPS if n.startswith(('walk', 'edges'))}


def run(program, args, scope, seed=5):
    torch.manual_seed(seed)
    if not scope:
        return tensors(program(*args))
    with program_scope(make_key(seed)):
        A[:, args[1]].individual_sample(1)  # later draws have other numbers
        return tensors(program(*args))


def assert_equal(first, second):
    assert len(first) == len(second) > 0
    for a, b in zip(first, second, strict=True):
        assert a.dtype == b.dtype
        assert torch.equal(a, b)


@pytest.mark.parametrize('name', LOOPS)
def test_fused_loops_draw_the_eager_sample(name):
    program = LOOPS[name]
    A = GRAPHS.get(name, graph())
    fast = Captured(program)
    fast(A, seeds(4))
    out = fast.rewrite().text
    assert out.count('gsample.sample_layers') == 1
    assert 'sample_columns' not in out
    assert 'unique' not in out
    assert 'index_put' not in out
    with torch.compiler.set_stance('fail_on_recompile'):
        for batch in (seeds(5), seeds(0), seeds(23, 3), seeds(9) % 4):
            for scope in (False, True):
                args = A, batch
                assert_equal(run(fast, args, scope), run(program, args, scope))


@pytest.mark.parametrize('name', ['nodes', 'row-sorted', 'unseen'])
def test_fused_loops_on_rows_draw_the_eager_sample(name):
    program, args = LOOPS[name], (A.T, seeds(9))
    assert_equal(run(compiled(program), args, True), run(program, args, True))


def test_a_program_may_return_the_nodes_of_its_last_layer():
    def program(A, seeds):
        layers = PROGRAMS['graphsage'](A, seeds)
        return layers, layers[-1].nodes()

    fast, args = Captured(program), (A, seeds(9))
    assert_equal(run(fast, args, True), run(program, args, True))
    out = fast.rewrite().text
    assert 'return_frontier=True' in out
    assert 'unique' not in out


def test_draws_between_hops_keep_their_numbers():
    def program(A, seeds):
        first = A[:, seeds].individual_sample(3)
        other = A[:, seeds].individual_sample(2, replace=True)
        second = A[:, first.nodes()].individual_sample(2)
        return first, other, second

    fast, args = Captured(program), (A, seeds(9))
    for scope in (False, True):
        assert_equal(run(fast, args, scope), run(program, args, scope))
    assert 'sample_layers' in fast.rewrite().text


def test_noise_of_the_size_of_a_hop_is_drawn_in_its_place():
    def program(A, seeds):
        first = A[:, seeds].individual_sample(3)
        noise = torch.rand(first.num_edges)
        return first, noise, A[:, first.nodes()].individual_sample(2)

    fast, args = Captured(program), (A, seeds(9))
    for scope in (False, True):
        assert_equal(run(fast, args, scope), run(program, args, scope))
    assert 'sample_layers' not in fast.rewrite().text


def test_hops_on_two_graphs_are_left():
    def program(A, B, seeds):
        first = A[:, seeds].individual_sample(3)
        return first, B[:, first.nodes()].individual_sample(2)

    B = by_column(A)
    other = type(A).from_csc(B.csc.indptr.clone(), B.csc.indices.clone())
    assert 'sample_layers' not in trace(program, A, other, seeds(4)).text


def test_weights_that_change_are_those_of_the_call():
    program = LOOPS['weighted']
    B = A.with_value(A.values().clone())
    fast, args = compiled(program), (B, seeds(9))
    before = run(fast, args, True)
    assert_equal(before, run(program, args, True))
    B.value[::2] *= 50
    after = run(fast, args, True)
    assert_equal(after, run(program, args, True))
    assert not torch.equal(before[2], after[2])
