"""LABOR's equation is solved for each column."""

import functools

import pytest
import torch

from tests import reference
from torch_gsample import ops
from torch_gsample.testing import (
    SMALL_GRAPHS,
    random_graph,
    small_graph,
    to_dtypes,
    with_index_dtypes,
)


@functools.cache
def reference_scale(name, *args):
    """Of a small graph, whose index dtypes change nothing."""
    indptr = small_graph(name).indptr.tolist()
    return torch.tensor(
        reference.labor_scale(indptr, *args), dtype=torch.float64
    )


def some_weights(size, spread):
    generator = torch.Generator().manual_seed(size)
    return torch.rand(size, generator=generator).double() * spread + 1e-3


@with_index_dtypes
@pytest.mark.parametrize('spread', [0.0, 1.0, 1e4])
@pytest.mark.parametrize('name', SMALL_GRAPHS)
def test_scales_equal_the_reference(name, spread, index_dtypes):
    graph = to_dtypes(small_graph(name), index_dtypes)
    weight = some_weights(graph.indices.numel(), spread)
    for k in (1, 2, 5):
        torch.testing.assert_close(
            ops.labor.labor_scale(graph.indptr, weight, k),
            reference_scale(name, tuple(weight.tolist()), k),
            rtol=1e-12,
            atol=0,
        )


@with_index_dtypes
@pytest.mark.parametrize('spread', [0.0, 1.0, 1e4])
@pytest.mark.parametrize('name', SMALL_GRAPHS)
def test_scales_of_values_equal_the_reference(name, spread, index_dtypes):
    graph = to_dtypes(small_graph(name), index_dtypes)
    weight = some_weights(graph.indices.numel(), spread)
    for value in (weight, some_weights(weight.numel(), 5.0).flip(0)):
        for k in (1, 2, 5):
            args = tuple(weight.tolist()), k, tuple(value.tolist())
            torch.testing.assert_close(
                ops.labor.labor_scale(graph.indptr, weight, k, value),
                reference_scale(name, *args),
                rtol=1e-12,
                atol=0,
            )


def test_equal_values_change_no_scale():
    graph = random_graph(100, 900, seed=1)
    weight = some_weights(900, 10)
    for value in (1e-300, 1.0, 1e300):  # whose squares are not finite
        torch.testing.assert_close(
            ops.labor.labor_scale(
                graph.indptr, weight, 3, torch.full_like(weight, value)
            ),
            ops.labor.labor_scale(graph.indptr, weight, 3),
            rtol=1e-12,
            atol=0,
        )


def test_every_column_is_solved_by_any_number_of_threads():
    graph = random_graph(3000, 60_000, seed=1)
    weight = some_weights(60_000, 100)
    outs = []
    for count in (1, 2, 4):
        torch.set_num_threads(count)
        outs.append(ops.labor.labor_scale(graph.indptr, weight, 4))
    scale, degree = outs[0], graph.indptr.diff()
    assert torch.equal(outs[1], scale)
    assert torch.equal(outs[2], scale)
    held = 1 / (weight * scale[graph.col()]).clamp(max=1)
    total = torch.zeros_like(scale).index_add(0, graph.col(), held)
    solved = degree > 4
    assert solved.sum() > 1000
    torch.testing.assert_close(total[solved], (degree**2 / 4)[solved].double())
    assert (scale[~solved] == 1).all()


def test_extreme_weights_end():
    weight = torch.tensor([1e-300, 1.0, 1e300], dtype=torch.float64)
    indptr = torch.tensor([0, 3])
    assert ops.labor.labor_scale(indptr, weight, 1) > 0
    assert ops.labor.labor_scale(indptr, weight, 3) == 1
