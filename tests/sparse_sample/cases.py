"""Small matrices in every layout, with their dense counterparts."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from torch_gsample import SparseSample

#: Rows, columns, number of rows and of columns; parallel edges in 'multi'.
GRAPHS = {
    'nothing': ([], [], 0, 0),
    'no_edges': ([], [], 3, 4),
    'self_loop': ([0], [0], 1, 1),
    'one_row': ([0, 0], [1, 2], 1, 4),
    'hub': ([1, 2, 3, 4, 5, 0, 0, 0], [0, 0, 0, 0, 0, 1, 2, 5], 6, 6),
    'isolated': ([4, 1, 4, 0], [1, 1, 0, 4], 6, 5),
    'random': (
        [5, 0, 3, 1, 4, 2, 0, 5, 3, 1, 2],
        [0, 1, 0, 2, 3, 2, 2, 3, 1, 1, 3],
        6,
        4,
    ),
    'multi': ([2, 0, 2, 1, 0, 2, 1], [1, 0, 1, 1, 0, 1, 2], 3, 4),
}
LAYOUTS = ('csc', 'csr', 'coo', 'transposed', 'sliced')
DTYPES = (torch.float32, torch.float64)
INDEX_DTYPES = (torch.int32, torch.int64)


@dataclass
class Case:
    """A matrix, the value at each place, and how many edges hold it."""

    matrix: SparseSample
    place: Tensor
    count: Tensor

    def assert_edges(self, out: SparseSample, dense: Tensor) -> None:
        """Asserts that `out` has the same edges, valued as `dense` says."""
        row, col = out.coo()
        assert out.shape == tuple(self.count.shape)
        assert torch.equal(counted(row, col, out.shape), self.count)
        torch.testing.assert_close(
            out.values(), dense[row, col], check_dtype=False
        )


def counted(row, col, shape) -> Tensor:
    out = torch.zeros(shape, dtype=torch.int64)
    return out.index_put_((row, col), torch.ones_like(row), accumulate=True)


def compressed(major, minor, size, value):
    order = torch.argsort(major, stable=True)
    indptr = torch.zeros(size + 1, dtype=major.dtype)
    indptr[1:] = torch.bincount(major, minlength=size).cumsum(0)
    return indptr, minor[order], value[order]


def build(layout, row, col, value, shape) -> SparseSample:
    if layout == 'coo':
        return SparseSample.from_coo(row, col, value, shape)
    if layout == 'csr':
        return SparseSample.from_csr(
            *compressed(row, col, shape[0], value), shape[1]
        )
    if layout == 'sliced':  # of a larger one, in another order
        rows, cols = torch.arange(shape[0] + 2), torch.arange(shape[1] + 3)
        rows, cols = rows.flip(0)[1:-1], cols.flip(0)[2:-1]
        extra = torch.zeros(1, dtype=row.dtype)
        wide = SparseSample.from_coo(
            torch.cat([rows[row.long()].to(row.dtype), extra]),
            torch.cat([cols[col.long()].to(row.dtype), extra]),
            torch.cat([value, value.new_full((1,), 9)]),
            (shape[0] + 2, shape[1] + 3),
        )
        return wide[rows, cols]
    out = SparseSample.from_csc(
        *compressed(col, row, shape[1], value), shape[0]
    )
    if layout == 'transposed':
        out.csr  # noqa: B018  (both layouts are there)
        return out.T.T
    return out


def case(graph, layout='csc', dtype=torch.float64, index=torch.int64) -> Case:
    row, col, *shape = GRAPHS[graph]
    row, col = (torch.tensor(x, dtype=torch.int64) for x in (row, col))
    generator = torch.Generator().manual_seed(3)
    order = torch.randperm(row.numel(), generator=generator)
    row, col = row[order], col[order]
    place = torch.rand(shape, dtype=dtype, generator=generator) + 0.5
    count = counted(row, col, shape)
    place = place * (count > 0)
    matrix = build(
        layout, row.to(index), col.to(index), place[row, col], tuple(shape)
    )
    return Case(matrix, place, count)


def random(*shape, dtype=torch.float64):
    """A dense operand, away from 0."""
    return torch.rand(shape, dtype=dtype) + 0.5


def with_cases(function):
    """Runs a test for each graph and layout, as `c`; for two, every dtype."""
    params = [
        pytest.param(
            (graph, layout, dtype, index),
            id=f'{graph}-{layout}-{dtype}-{index}'.replace('torch.', ''),
        )
        for graph in GRAPHS
        for layout in LAYOUTS
        for dtype in DTYPES
        for index in INDEX_DTYPES
        if graph in ('random', 'multi')
        or (dtype, index) == (torch.float64, torch.int64)
    ]
    return pytest.mark.parametrize('c', params, indirect=True)(function)
