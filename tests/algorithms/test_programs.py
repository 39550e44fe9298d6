"""What holds for all programs."""

import ast
import inspect
import textwrap

import pytest
import torch

from tests.algorithms.graphs import features, skewed_graph
from torch_gsample import algorithms
from torch_gsample.rng import make_key, program_scope

A, X = skewed_graph(), features(40)
SEEDS = torch.tensor([0, 3, 17])
TYPE = torch.arange(A.num_edges) % 5


def programs():
    torch.manual_seed(0)
    as_gcn = algorithms.AsGCN(3).double()
    learned = algorithms.PassSampler(3, 4).double()
    return {
        'graphsage': algorithms.graphsage,
        'ladies': algorithms.ladies,
        'fastgcn': algorithms.fastgcn,
        'labor': algorithms.labor,
        'AsGCN': lambda *args: as_gcn(*args, X),
        'PassSampler': lambda *args: learned(*args, X),
        'kgcn': lambda *args: algorithms.kgcn(
            *args, features(3), features(5), TYPE
        ),
        'VRGCN': algorithms.VRGCN(40, [3]),
        'GCNBS': algorithms.GCNBS(A.num_edges),
        'Thanos': algorithms.Thanos(A.num_edges),
    }


def draw(program, seed):
    with program_scope(make_key(seed)):
        return [
            (*S.edges(), S.values().detach())
            for S in program(A, SEEDS, [4, 5])
        ]


def same(left, right) -> bool:
    return all(
        x.shape == y.shape and torch.equal(x, y)
        for a, b in zip(left, right, strict=True)
        for x, y in zip(a, b, strict=True)
    )


@pytest.mark.parametrize('name', programs())
def test_a_key_gives_one_sample_whatever_the_threads(name):
    program = programs()[name]
    one = draw(program, 1)
    torch.set_num_threads(2)
    assert same(one, draw(program, 1))
    assert not same(one, draw(program, 2))


@pytest.mark.parametrize('name', sorted({*programs()} - {'kgcn'}))
def test_values_may_be_integers(name):
    """They give what equal floats do: no weight is rounded, or infinite."""
    counts = torch.arange(A.num_edges) % 4 + 1
    found = []
    for value in (counts, counts.double()):
        with program_scope(make_key(3)):
            found.append(programs()[name](A.with_value(value), SEEDS, [4, 5]))
    for S, want in zip(*found, strict=True):
        assert all(map(torch.equal, S.edges(), want.edges()))
        torch.testing.assert_close(
            S.values(), want.values(), check_dtype=False, rtol=1e-6, atol=0.0
        )


@pytest.mark.parametrize('name', programs())
def test_columns_of_a_layer_are_rows_of_the_next(name):
    layers = programs()[name](A, SEEDS, [4, 5])
    assert torch.equal(layers[0].col_ids, SEEDS)
    assert set(layers[0].row().tolist()) <= set(layers[1].col_ids.tolist())


@pytest.mark.parametrize('name', sorted({*programs()} - {'graphsage', 'kgcn'}))
@pytest.mark.parametrize('k', [1, 30])
def test_a_layer_is_for_the_distinct_nodes_of_the_one_before(name, k):
    first, second = programs()[name](A, SEEDS, [k, 5])
    nodes = first.edges()[0].unique()
    if k == 30:  # some are visited repeatedly
        assert nodes.numel() < first.num_edges
    assert torch.equal(second.col_ids.sort().values, nodes)


@pytest.mark.parametrize(
    ('program', 'limit'),
    [
        (algorithms.graphsage, 9),
        (algorithms.fastgcn, 9),
        (algorithms.ladies, 14),
        (algorithms.AsGCN.forward, 23),
        (algorithms.PassSampler.forward, 20),
        (algorithms.kgcn, 9),
    ],
)
def test_programs_are_as_short_as_those_of_gsampler(program, limit):
    [tree] = ast.parse(textwrap.dedent(inspect.getsource(program))).body
    body = [s for s in tree.body if not _is_docstring(s)]
    lines = {
        line
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.stmt | ast.expr)
        for line in (node.lineno, node.end_lineno)
    }
    assert len(lines) + 1 <= limit  # and its `def`


def _is_docstring(statement) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(
        statement.value, ast.Constant
    )
