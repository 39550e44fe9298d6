"""Programs that select edges return the results of eager code."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compiler.programs import (
    X,
    compiled,
    graph,
    seeds,
    tensors,
)
from torch_gsample.compiler.backend import optimize
from torch_gsample.compiler.lowering import lower
from torch_gsample.compiler.options import Options
from torch_gsample.compiler.pipeline import PASSES
from torch_gsample.rng import make_key, program_scope

A = graph()
#: A number for each node, and several.
ROW = X[:, 0].abs() + 0.5
WIDE = torch.linspace(-1.0, 1.0, 12, dtype=torch.float64).view(3, 4)
NAMES = [item.name for item in PASSES]


def scores(A, seeds):
    return A[:, seeds].mul(ROW, dim=1)


def by_weight(A, seeds):
    return torch.exp(scores(A, seeds)).individual_sample(3)


CHAINS = {
    'exp': by_weight,
    'replace': lambda A, s: torch.exp(scores(A, s)).individual_sample(
        6, replace=True
    ),
    'all': lambda A, s: torch.exp(scores(A, s)).individual_sample(-1),
    'columns': lambda A, s: torch.tanh(
        A[:, s].div(ROW[s], dim=0)
    ).individual_sample(3),
    'degrees': lambda A, s: (
        A[:, s].div(A[:, s].degree(0).to(torch.float64), dim=0) ** 2
    ).individual_sample(3),
    'scalar': lambda A, s: (A[:, s] * ROW.max() + 2).individual_sample(3),
    'column-sums': lambda A, s: torch.sqrt(
        A[:, s].div(A[:, s].sum(0), dim=0)
    ).individual_sample(3),
    'softmax': lambda A, s: A[:, s].softmax(0).individual_sample(3),
    'dense': lambda A, s: (A[:, s] * (X @ X[s].T)).individual_sample(3),
    'own-bias': lambda A, s: (lambda P: P.individual_sample(3, P.values()))(
        torch.exp(scores(A, s))
    ),
    'other-bias': lambda A, s: torch.exp(scores(A, s)).individual_sample(
        3, (A[:, s] ** 2).values()
    ),
    'rows': lambda A, s: torch.exp(scores(A, s)).collective_sample(
        8, (A[:, s] ** 2).sum(1)
    ),
    'compact': lambda A, s: (
        lambda P: torch.exp(P.mul(ROW[P.row_ids], dim=1)).collective_sample(
            8, (P**2).sum(1)
        )
    )(A[:, s].compact(sorted=True)),
    'masked': lambda A, s: (
        lambda P: torch.exp(P.mul(ROW, dim=1)).masked(P.values() > 0.7)
    )(A[:, s]),
    'top': lambda A, s: (
        lambda P: torch.exp(P.mul(ROW, dim=1)).top(2, P.values())
    )(A[:, s]),
    'twice': lambda A, s: torch.tanh(
        torch.exp(scores(A, s)).individual_sample(5)
    ).individual_sample(2),
    'selected-again': lambda A, s: (
        lambda P: P.div(P.sum(1), dim=1).individual_sample(1)
    )(A[:, s].individual_sample(3)),
    'both': lambda A, s: [
        by_weight(A, s),
        torch.exp(scores(A, s)).individual_sample(1),
    ],
    'hops': lambda A, s: [
        by_weight(A, s),
        by_weight(A, by_weight(A, s).row().unique()),
    ],
    'sums': lambda A, s: (
        lambda P: [P.individual_sample(3), P.sum(0), P.sum(1)]
    )(torch.exp(scores(A, s))),
    'features': lambda A, s: (
        lambda P: P.with_value(
            torch.softmax(X[P.edges()[0]] @ WIDE, -1).amax(-1) * P.values()
        ).individual_sample(3)
    )(A[:, s]),
    'wide': lambda A, s: (
        lambda P: P.with_value(
            (P.values().unsqueeze(-1) * X[P.edges()[0]]).relu()
        ).individual_sample(3)
    )(A[:, s]),
    'stack': lambda A, s: (
        lambda P: P.with_value(
            torch.stack([P.values(), P.values() ** 2], 1).sum(1)
        ).individual_sample(3)
    )(A[:, s]),
    'no-grad': lambda A, s: _without_gradients(A, s).individual_sample(3),
}
FUSED = ['exp', 'replace', 'all', 'columns', 'degrees', 'scalar', 'dense']
FUSED += ['other-bias', 'both', 'features', 'wide', 'stack', 'no-grad', 'hops']


def _without_gradients(A, s):
    with torch.no_grad():
        P = scores(A, s)
    return torch.exp(P)


def run(program, args, seed=1):
    with program_scope(make_key(seed)):
        return tensors(program(*args))


def assert_equal(got, expected):
    """Samples bit by bit, values but for the last digits."""
    for a, b in zip(got, expected, strict=True):
        assert a.requires_grad == b.requires_grad
        assert a.is_contiguous() == b.is_contiguous()
        if a.is_floating_point():
            torch.testing.assert_close(a, b, rtol=4e-16, atol=4e-16)
        else:
            assert torch.equal(a, b)


@pytest.mark.parametrize('name', CHAINS)
def test_results_are_those_of_eager_programs(name):
    texts = []

    def backend(gm, example_inputs):
        program, found = optimize(gm, Options.read({'strict': True}))
        texts.append(found.text)
        return lower(program)

    chain = CHAINS[name]
    fast = torch.compile(chain, backend=backend, fullgraph=True)
    for size, start in ((9, 0), (1, 3), (0, 0)):
        args = A, seeds(size, start)
        assert_equal(run(fast, args), run(chain, args))
    [out] = texts
    if name == 'columns':
        assert '/ x3[col]' in out  # by the pointers of the sample
    assert ('gsample.slice_cols' not in out) == (name in FUSED)


@pytest.mark.parametrize('name', ['exp', 'rows', 'twice', 'hops', 'wide'])
def test_results_are_those_without_the_pass(name):
    passes = [item for item in NAMES if item != 'raise_selections']
    plain = compiled(CHAINS[name], passes=passes)
    args = A, seeds(9)
    assert_equal(run(plain, args), run(CHAINS[name], args))


def leaves(seed=0):
    generator = torch.Generator().manual_seed(seed)
    value = torch.rand(A.num_edges, dtype=torch.float64, generator=generator)
    row = torch.rand(40, dtype=torch.float64, generator=generator)
    return (value + 0.1).requires_grad_(), (row + 0.1).requires_grad_()


@pytest.mark.parametrize('replace', [False, True])
@pytest.mark.parametrize('trained', ['value', 'row', 'both'])
def test_gradients_are_those_of_eager_programs(replace, trained):
    def function(A, seeds, row):
        P = A[:, seeds]
        S = torch.exp(P.mul(row, dim=1).div(row[seeds], dim=0))
        return S.individual_sample(4, replace=replace).values()

    grads = []
    s = torch.cat([seeds(9), seeds(3)])  # a node twice, an edge repeatedly
    for call in (function, compiled(function)):
        value, row = leaves()
        if trained == 'row':
            value = value.detach()
        if trained == 'value':
            row = row.detach()
        with program_scope(make_key(3)):
            out = call(A.with_value(value), s, row)
        assert out.requires_grad
        (out * torch.arange(1, len(out) + 1)).sum().backward()
        grads.append([t.grad for t in (value, row) if t.requires_grad])
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=0)
    assert len(grads[0]) == 1 + (trained == 'both')


def test_edges_that_are_dropped_have_no_gradient():
    def function(A, seeds):
        return torch.sqrt(A[:, seeds] * 1.0).individual_sample(1).values()

    value = torch.zeros(A.num_edges, dtype=torch.float64)
    B = A.with_value(value.requires_grad_())
    with program_scope(make_key(3)):
        compiled(function)(B, seeds(9)).sum().backward()
    assert (value.grad == 0).sum() > A.num_edges - 10  # not 0 times infinity


def test_a_part_that_runs_under_another_mode_stays():
    def function(A, seeds):
        P = A[:, seeds]
        with torch.no_grad():
            y = torch.exp(P.values())
        return P.with_value(y * P.values()).individual_sample(3)

    grads = []
    for call in (function, compiled(function)):
        value, _ = leaves()
        with program_scope(make_key(3)):
            call(A.with_value(value), seeds(9)).values().sum().backward()
        grads.append(value.grad)
    torch.testing.assert_close(*grads, rtol=1e-6, atol=0)


def test_a_value_that_is_changed_in_place_is_read_before():
    def function(A, seeds, x):
        S = torch.exp(A[:, seeds].mul(x, dim=1))
        x.mul_(2)
        return S.individual_sample(3), x * 1

    got, expected = (
        run(call, (A, seeds(9), ROW.clone()))
        for call in (compiled(function), function)
    )
    assert_equal(got, expected)


# Programs that hypothesis writes #############################################

UNARY = st.sampled_from(
    [torch.exp, torch.tanh, torch.abs, torch.sqrt, torch.sigmoid]
)
STEPS = st.one_of(
    UNARY.map(lambda f: lambda M, s: f(M.with_value(M.values().abs()))),
    st.sampled_from(
        [
            lambda M, s: M * 2 + 1,
            lambda M, s: M**2,
            lambda M, s: M.mul(ROW, dim=1),
            lambda M, s: M.div(ROW[s], dim=0),
            lambda M, s: M / M.degree(0).to(torch.float64),
            lambda M, s: M.div(M.sum(0), dim=0),
            lambda M, s: M - M.values().mean(),
        ]
    ),
)
SELECTIONS = st.sampled_from(
    [
        lambda M, P: M.individual_sample(2),
        lambda M, P: M.individual_sample(5, replace=True),
        lambda M, P: M.individual_sample(2, P.values()),
        lambda M, P: M.individual_sample(2, M.values().abs()),
        lambda M, P: M.collective_sample(6, P.sum(1)),
        lambda M, P: M.masked(P.values() > 0.5),
    ]
)


@given(st.lists(STEPS, max_size=4), SELECTIONS, st.lists(STEPS, max_size=1))
@settings(max_examples=8, deadline=None, derandomize=True)
def test_chains_equal_eager_chains(before, selection, then):
    def program(A, seeds):
        P = M = A[:, seeds]
        for step in before:
            M = step(M, seeds)
        M = selection(M, P)
        for step in then:
            M = step(M, seeds)
        return M

    args = A, seeds(9)
    got, expected = (run(call, args) for call in (compiled(program), program))
    for a, b in zip(got, expected, strict=True):
        if a.is_floating_point():
            torch.testing.assert_close(a, b, rtol=1e-14, atol=1e-14)
        else:
            assert torch.equal(a, b)
