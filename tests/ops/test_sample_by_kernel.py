"""One edge of each column, by weights that a generated kernel computes."""

import pytest
import torch

from tests import reference
from tests.ops.sample_by_kernel_errors import NUMBERS, weights
from torch_gsample.csc import CSC
from torch_gsample.rng import make_key
from torch_gsample.testing import (
    SMALL_GRAPHS,
    small_graph,
    to_dtypes,
)

SAMPLE = torch.ops.gsample.sample_by_kernel.default


def call(graph, cols, before, num_threads=(1,), dtype=torch.float32, **kw):
    """A call for each number of threads, and the result of plain loops."""
    kernel = weights(graph.indices.dtype, dtype)
    generator = torch.Generator().manual_seed(4)

    def numbers(size):
        values = torch.randint(8, (size,), generator=generator).to(dtype)
        return values * (values > 3)  # a half are zeros

    operands = [
        *(numbers(graph.num_edges), numbers(graph.num_rows), graph.indices),
        *(before.to(graph.indices.dtype), torch.tensor(4.0, dtype=dtype)),
        *(graph.indptr, before),
    ]
    key, kw = make_key(3), {'before': before, **kw}
    args = graph.indptr, graph.indices, cols
    outs = [
        SAMPLE(
            *(*args, kernel.loaded.number, operands, NUMBERS, key, 2),
            num_threads=number,
            **kw,
        )
        for number in num_threads
    ]
    lists = {k: v.tolist() for k, v in kw.items()}
    want = reference.sample_by_kernel(
        *(x.tolist() for x in args),
        kernel.unit,
        [x.tolist() for x in operands],
        NUMBERS,
        key.tolist(),
        2,
        **lists,
    )
    return (
        *([x.tolist() for x in out] for out in outs),
        [list(x) for x in want],
    )


@pytest.mark.parametrize(
    'dtypes',
    [(torch.int32,) * 2, (torch.int64,) * 2],
    ids=['int32', 'int64'],
)
@pytest.mark.parametrize('name', SMALL_GRAPHS)
def test_edges_equal_the_reference(name, dtypes):
    graph = to_dtypes(small_graph(name), dtypes)
    n = graph.num_cols
    cols = torch.arange(n).repeat(3)
    out, want = call(graph, cols, cols.flip(0))
    assert out == want
    out, want = call(graph, cols, cols.flip(0), id=cols * 5 + 1)
    assert out == want


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64])
def test_long_columns_equal_the_reference(dtype):
    """Some are blocks of their own, others share one; threads share them."""
    generator = torch.Generator().manual_seed(2)
    count = torch.tensor([0, 1, 3, 9, 50, 64, 65, 256, 257, 600, 3000])
    rows = torch.randint(5000, (int(count.sum()),), generator=generator)
    ptr = torch.cat([count.new_zeros(1), count.cumsum(0)])
    graph = CSC(ptr, rows, 5000)
    cols = torch.randint(10, (700,), generator=generator)
    cols[::64] = 10  # a few of the longest: plain loops are slow
    *outs, want = call(graph, cols, cols.roll(1), (1, 2, 4), dtype)
    assert all(out == want for out in outs)


def test_draws_follow_the_weights():
    """A chi-square test: p > 0.001 for 5 degrees of freedom."""
    n = 40_000
    graph = CSC(torch.tensor([0, 6, 8]), torch.arange(8), 8)
    kernel, cols = weights(), torch.zeros(n, dtype=torch.int64)
    x, y = torch.tensor([1, 2, 0, 4, 1, 6, 1, 1.0]), torch.zeros(8)
    back, scale = torch.full((n,), 3), torch.tensor(0.5)
    operands = [x, y, graph.indices, back, scale, graph.indptr, cols]
    args = graph.indptr, graph.indices, cols, kernel.loaded.number
    _, edge = SAMPLE(*args, operands, NUMBERS, make_key(9), 0, before=cols + 1)
    law = x[:6] * torch.tensor([2, 2, 2, 0.5, 2, 2])  # none is in column 1
    count = edge.bincount(minlength=6)
    assert count[2] == 0
    wanted, seen = law[law > 0] * n / law.sum(), count[law > 0]
    assert ((seen - wanted) ** 2 / wanted).sum() < 18.47


def test_columns_without_a_positive_weight_have_no_edge():
    graph, cols = CSC(torch.tensor([0, 2]), torch.tensor([0, 1]), 2), 2 * [0]
    cols, kernel = torch.tensor(cols), weights()
    none = torch.zeros(2)
    operands = [none, none, graph.indices, cols, none[0], graph.indptr, cols]
    args = graph.indptr, graph.indices, cols, kernel.loaded.number
    out = SAMPLE(*args, operands, NUMBERS, make_key(9), 0, before=cols)
    assert [x.tolist() for x in out] == [[0, 0, 0], []]
