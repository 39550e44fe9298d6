"""The nodes and edges of a matrix in the original graph."""

from typing import Any

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.ops._check import as_int64
from torch_gsample.ops.features import select_rows
from torch_gsample.sparse_sample.parts import Parts


def ids_at(ids: Any, position: Tensor) -> Any:
    """Returns ids at positions; ids of :obj:`None` are the positions.

    Lazily read ids stay lazy.
    """
    if ids is None:
        return position
    if isinstance(ids, Tensor):
        return select_rows(ids, position)
    return ids.at(position)


def row(matrix: Parts) -> Tensor:
    """Returns the ids of the rows with edges.

    Selected rows keep their order; others are ordered by first occurrence in
    the edges.
    """
    return _with_edges(matrix._index(1), matrix.row_ids, matrix.num_rows)


def column(matrix: Parts) -> Tensor:
    """Returns the ids of the columns with edges."""
    return _with_edges(matrix._index(0), col_ids(matrix), matrix.num_cols)


def col_ids(matrix: Parts) -> Tensor:
    """Returns the ids of all columns."""
    if matrix.col_ids is None:
        return torch.arange(matrix.num_cols, device=matrix.device)
    return matrix.col_ids


def _with_edges(index: Tensor, ids: Tensor | None, size: int) -> Tensor:
    if ids is None:
        return ops.unique_nodes(index, size)[0]
    held = torch.zeros(size, dtype=torch.bool, device=index.device)
    held.index_fill_(0, as_int64(index), True)
    return ids[held]


def nodes(matrix: Parts) -> Tensor:
    """Returns the ids of all columns, then those of other rows with edges."""
    return ops.unique_nodes(torch.cat([col_ids(matrix), row(matrix)]))[0]


def edges(matrix: Parts) -> tuple[Tensor, Tensor]:
    """Returns the row id and the column id of each edge.

    Returns:
        Tuple[torch.Tensor, torch.Tensor]: int64 ``[num_edges]`` each, nodes of
        the original graph. :meth:`coo` returns positions in the matrix
        instead.
    """
    return row_of_edge(matrix), column_of_edge(matrix)


def row_of_edge(matrix: Parts) -> Tensor:
    """Returns the id of the row of each edge, int64 ``[num_edges]``."""
    return _ids_of(matrix.row_ids, matrix._index(1))


def column_of_edge(matrix: Parts) -> Tensor:
    """Returns the id of the column of each edge, int64 ``[num_edges]``."""
    return _ids_of(matrix.col_ids, matrix._index(0))


def _ids_of(ids: Tensor | None, index: Tensor) -> Tensor:
    return as_int64(index) if ids is None else ids.index_select(0, index)
