"""Which of some edges a matrix has."""

import pytest
import torch

from tests.ops.compare import assert_equals_reference
from torch_gsample import ops
from torch_gsample.csc import CSC
from torch_gsample.ops.has_edges import _encoded
from torch_gsample.testing import (
    SMALL_GRAPHS,
    small_graph,
    to_dtypes,
    with_index_dtypes,
)


def queries(graph, cols, size):
    """Rows of columns: their own, and others."""
    generator = torch.Generator().manual_seed(5)
    count = torch.randint(size, (len(cols),), generator=generator)
    rows = torch.randint(
        max(graph.num_rows, 1), (int(count.sum()),), generator=generator
    )
    ptr = torch.cat([count.new_zeros(1), count.cumsum(0)])
    return ptr.to(graph.indptr.dtype), rows.to(graph.indices.dtype)


@with_index_dtypes
@pytest.mark.parametrize('name', SMALL_GRAPHS)
@pytest.mark.parametrize('num_threads', [1, 3])
def test_edges_are_found(name, index_dtypes, num_threads):
    graph = to_dtypes(small_graph(name), index_dtypes)
    n = graph.num_cols
    for cols in (None, torch.arange(n).flip(0).repeat(2), torch.arange(0)):
        all_cols = torch.arange(n) if cols is None else cols
        ptr, rows = queries(graph, all_cols, 20 if graph.num_rows else 1)
        args = graph.indptr, graph.indices, ptr, rows, cols
        out = assert_equals_reference(
            'has_edges',
            *args,
            num_threads=num_threads,
            operator=ops.has_edges,
        )
        assert out.dtype == torch.bool
        assert torch.equal(_encoded(*args), out)  # the code of a GPU


@pytest.mark.parametrize('scale', [1, 2**20, 2**33])
@pytest.mark.parametrize('ascending', [True, False])
def test_long_columns_are_searched(scale, ascending):
    """Rows that share their low bits, in columns of every length."""
    generator = torch.Generator().manual_seed(2)
    count = torch.tensor([0, 3, 9, 50, 64, 65, 400, 3000])
    rows = torch.randint(
        4000, (int(count.sum()),), generator=generator
    ) * scale + torch.randint(3, (int(count.sum()),), generator=generator)
    ptr = torch.cat([count.new_zeros(1), count.cumsum(0)])
    if ascending:
        parts = rows.split(count.tolist())
        rows = torch.cat([part.sort().values for part in parts])
    asked = torch.randint(4000, (300,), generator=generator) * scale
    asked = torch.cat([asked, rows[::7]]).repeat(count.numel())
    ask_ptr = torch.arange(count.numel() + 1) * (asked.numel() // len(count))
    graph = CSC(ptr, rows, 4001 * scale)
    out = assert_equals_reference(
        'has_edges',
        *(graph.indptr, graph.indices, ask_ptr, asked),
        operator=ops.has_edges,
    )
    assert 0 < int(out.sum()) < out.numel()
