"""Reductions of rows and columns by one scan of a graph on disk.

Edges are added in the same order as in memory, so sums have the same bits.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from torch_gsample.csc import CSC
from torch_gsample.sparse_sample import SparseSample
from torch_gsample.storage.matrices.edges import StoredEdges
from torch_gsample.storage.matrices.steps import Steps, of_columns

#: Initial values of reductions, and their names in ``scatter_reduce``.
_EXTREMES = {'max': ('amax', -1), 'min': ('amin', 1)}


def reduce(edges: StoredEdges, name: str, dim: int, steps: Steps) -> Tensor:
    """Reduces the values of a graph on disk.

    Args:
        edges (StoredEdges): Its columns.
        name (str): ``'sum'``, ``'max'``, ``'min'`` or ``'degree'``.
        dim (int): 0 for a result a column, 1 for one a row.
        steps (Steps): The operations on stored values.
    """
    size = (edges.meta.num_cols, edges.meta.num_rows)[dim]
    if name == 'degree':
        out = torch.zeros(size, dtype=torch.int64)
        for _, items in edges.scan('neighbor'):
            out += torch.bincount(items['neighbor'], minlength=size)
        return out
    out = held = torch.empty(0)
    is_begun = False
    for first, part in _parts(edges, steps):
        value, index = part.values(), part._index(dim).long()
        if dim == 0:
            index = index + first
        if not is_begun:
            out, held = _begin(name, size, value)
            is_begun = True
        if name == 'sum':
            out.index_add_(0, index, value)
        else:
            out.scatter_reduce_(0, index, value, _EXTREMES[name][0])
            held[index] = True
    if not is_begun:
        empty = _part(edges, steps, 0, {})[1]
        out, held = _begin(name, size, empty.values())
    return out if name == 'sum' else torch.where(held, out, 0)


def _begin(name: str, size: int, value: Tensor) -> tuple[Tensor, Tensor]:
    out = value.new_zeros(size)
    if name in _EXTREMES:
        sign = _EXTREMES[name][1]
        limits = (torch.finfo if value.is_floating_point() else torch.iinfo)(
            value.dtype
        )
        worst = limits.min if sign < 0 else limits.max
        if value.is_floating_point():
            worst = sign * float('inf')
        out.fill_(worst)
    return out, torch.zeros(size, dtype=torch.bool)


def _parts(
    edges: StoredEdges, steps: Steps
) -> Iterator[tuple[int, SparseSample]]:
    """Yields consecutive edges as matrices, with their first columns."""
    names = ['neighbor']
    if edges.has_weight and steps.is_weighted:
        names.append('weight')
    for first, items in edges.scan(*names):
        yield _part(edges, steps, first, items)


def _part(
    edges: StoredEdges, steps: Steps, first: int, items: dict[str, Tensor]
) -> tuple[int, SparseSample]:
    rows = items.get('neighbor', torch.empty(0, dtype=torch.int64))
    end, pointers = first + rows.numel(), edges.pointers
    if rows.numel() == 0:
        begin, stop = 0, 0
    else:  # columns that start before `first` continue here
        begin = int(torch.searchsorted(pointers, first, right=True)) - 1
        stop = int(torch.searchsorted(pointers, end))
    indptr = (pointers[begin : stop + 1].clamp(first, end) - first).clone()
    value = items.get('weight')
    if value is None and edges.has_weight and steps.is_weighted:
        value = torch.empty(0, dtype=edges.dtypes['weight'])
    part = SparseSample(
        CSC(indptr, rows, edges.meta.num_rows, checked=True),
        None,
        (edges.meta.num_rows, stop - begin),
        value,
    )
    return begin, of_columns(part, steps, lambda: torch.arange(begin, stop))
