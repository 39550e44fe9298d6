"""Arithmetic with the values of edges, and products.

Results keep the pattern: what is no edge stays so, whatever is added.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor

from torch_gsample.csc import CSC
from torch_gsample.ops._check import as_int64, is_known
from torch_gsample.sparse_sample.errors import (
    Dim,
    check_device,
    check_value,
    reduced_dim,
)
from torch_gsample.sparse_sample.parts import (
    M,
    Parts,
)

#: A number, a dense tensor or a matrix of the same edges.
Operand: TypeAlias = float | Tensor | Parts


def with_value(matrix: M, value: Tensor | None) -> M:
    """Returns the matrix with other values.

    Args:
        value (torch.Tensor, optional): ``[num_edges]`` or
            ``[num_edges, F]``; :obj:`None` for ones.

    Raises:
        ValueError: If the length does not fit.
    """
    if value is not None:
        check_value('with_value', value, matrix.num_edges)
    return matrix._of_value(value)


def apply(matrix: M, function: Callable[[Tensor], Tensor]) -> M:
    """Returns the matrix of ``function(values)``, edge by edge."""
    return with_value(matrix, function(matrix.values()))


def add(matrix: M, other: Operand, dim: Dim = None, *, axis: Dim = None) -> M:
    """Adds to the value of each edge.

    Args:
        other: A number, a matrix of the same edges, or a dense tensor
            that broadcasts with the matrix; with ``dim``, one entry for
            each result of ``A.sum(dim)``.
        dim (int, optional): The dimension that ``other`` lacks.
        axis (int, optional): NumPy's name of ``dim``.

    Raises:
        ValueError: If shapes do not fit.
    """
    return _along(matrix, 'add', torch.add, other, dim, axis)


def sub(matrix: M, other: Operand, dim: Dim = None, *, axis: Dim = None) -> M:
    """Subtracts from the value of each edge; see :meth:`add`."""
    return _along(matrix, 'sub', torch.sub, other, dim, axis)


def mul(matrix: M, other: Operand, dim: Dim = None, *, axis: Dim = None) -> M:
    """Multiplies the value of each edge; see :meth:`add`."""
    return _along(matrix, 'mul', torch.mul, other, dim, axis)


def div(matrix: M, other: Operand, dim: Dim = None, *, axis: Dim = None) -> M:
    """Divides the value of each edge; see :meth:`add`."""
    return _along(matrix, 'div', torch.div, other, dim, axis)


def pow(matrix: M, other: Operand) -> M:
    """Raises the value of each edge to a power; see :meth:`add`."""
    return binary(matrix, 'pow', torch.pow, other)


def _operand(matrix: Parts, name: str, other: Operand) -> float | Tensor:
    """What `other` holds at each edge."""
    if isinstance(other, Parts):
        check_same_edges(matrix, name, other)
        return aligned_values(other, matrix)
    if not isinstance(other, Tensor) or other.dim() == 0:
        return other
    check_device(name, matrix.device, other)
    return _gather_dense(matrix, name, other)


def _gather_dense(matrix: Parts, name: str, dense: Tensor) -> Tensor:
    m, n = matrix.shape
    got = list(dense.shape)
    if dense.dim() == 1:
        dense = dense.unsqueeze(0)
    # One row (column) for all edges. A captured size is taken to fit.
    one_row = is_known(dense.shape[0] == 1)
    one_col = is_known(dense.shape[1] == 1)
    if (
        dense.dim() > 3
        or (not one_row and is_known(dense.shape[0] != m))
        or (not one_col and is_known(dense.shape[1] != n))
    ):
        raise ValueError(
            f'{name}: a dense operand of a matrix of shape [{m}, {n}] '
            f'must have shape [{m}, 1], [1, {n}], [{n}] or [{m}, {n}], '
            f'and may have features behind (got {got})'
        )
    if one_row and one_col:
        return dense[0]
    if one_row:
        return dense[0].index_select(0, matrix._index(0))
    if one_col:
        return dense[:, 0].index_select(0, matrix._index(1))
    rows, cols = matrix._index(1), matrix._index(0)
    flat = dense.reshape(m * n, *dense.shape[2:])
    return flat.index_select(0, as_int64(rows) * n + cols)


def _same_order(matrix: Parts, other: Parts) -> bool:
    """Whether two matrices hold the same edges, stored alike."""
    (a, by_column), (b, also) = matrix._stored, other._stored
    return by_column == also and all(
        x is y or torch.equal(x, y)
        for x, y in ((a.indptr, b.indptr), (a.indices, b.indices))
    )


def _sorted(matrix: Parts) -> CSC:
    """Its columns, with ascending rows; parallel edges as stored."""
    return matrix.csr.transpose()


def check_same_edges(matrix: Parts, name: str, other: Parts) -> None:
    """Checks that two matrices have the same edges, in any order.

    Raises:
        ValueError: If they have not.
    """
    same = matrix.shape == other.shape and matrix.num_edges == other.num_edges
    if same and not _same_order(matrix, other):
        a, b = _sorted(matrix), _sorted(other)
        same = torch.equal(a.indptr, b.indptr) and torch.equal(
            a.indices, b.indices
        )
    if not same:
        raise ValueError(
            f'{name}: two matrices must have the same edges (got '
            f'{matrix.num_edges} edges of {list(matrix.shape)} and '
            f'{other.num_edges} of {list(other.shape)}, or other places)'
        )


def aligned_values(matrix: Parts, other: Parts) -> Tensor:
    """Returns the values in the order of ``other``, of the same edges."""
    values = matrix.values()
    if _same_order(matrix, other):
        return values
    mine, theirs = _sorted(matrix).edge_id, _sorted(other).edge_id
    assert mine is not None
    assert theirs is not None
    return torch.empty_like(values).index_copy(0, theirs, values[mine])


def binary(
    matrix: M,
    name: str,
    function: Callable[[Any, Any], Tensor],
    other: Operand,
    swap: bool = False,
) -> M:
    """Returns the matrix of a function of the values and an operand."""
    value, operand = matrix.values(), _operand(matrix, name, other)
    if isinstance(operand, Tensor) and operand.dim() > 0:
        value, operand = same_dims(value, operand)
    return matrix._of_value(
        function(operand, value) if swap else function(value, operand)
    )


def _along(
    matrix: M,
    name: str,
    function: Callable[[Any, Any], Tensor],
    other: Operand,
    dim: Dim,
    axis: Dim,
) -> M:
    dim = reduced_dim(name, dim, axis)
    if dim is None:
        return binary(matrix, name, function, other)
    size = matrix.shape[1 - dim]
    if (
        not isinstance(other, Tensor)
        or other.dim() == 0
        or is_known(other.shape[0] != size)
    ):
        got = list(other.shape) if isinstance(other, Tensor) else other
        raise ValueError(
            f"{name}: with 'dim={dim}', the operand must be a tensor of "
            f'{size} rows, as {name}(A.sum(dim={dim}), dim={dim}) has '
            f'(got {got})'
        )
    check_device(name, matrix.device, other)
    operand = other.index_select(0, matrix._index(dim))
    return matrix._of_value(function(*same_dims(matrix.values(), operand)))


def same_dims(value: Tensor, operand: Tensor) -> tuple[Tensor, Tensor]:
    """Returns two per-edge tensors of the same number of dimensions."""
    while value.dim() < operand.dim():
        value = value.unsqueeze(-1)
    while operand.dim() < value.dim():
        operand = operand.unsqueeze(-1)
    return value, operand


def matmul(matrix: Parts, dense: Tensor) -> Tensor:
    """Multiplies with a dense ``[num_cols]`` or ``[num_cols, F]``."""
    if not isinstance(dense, Tensor):
        return NotImplemented
    if dense.dim() not in (1, 2) or dense.shape[0] != matrix.num_cols:
        raise ValueError(
            f'matmul: a matrix of shape {list(matrix.shape)} needs a dense '
            f'operand of shape [{matrix.num_cols}] or [{matrix.num_cols}, F] '
            f'(got {list(dense.shape)})'
        )
    if matrix.values().dim() > 1:
        raise ValueError(
            'matmul: a product needs one value an edge (got '
            f'{list(matrix.values().shape)})'
        )
    check_device('matmul', matrix.device, dense)
    messages = dense.index_select(0, matrix._index(0))
    values, messages = same_dims(matrix.values(), messages)
    out = messages.new_zeros(
        (matrix.num_rows, *dense.shape[1:]),
        dtype=torch.result_type(values, messages),
    )
    return out.index_add_(0, matrix._index(1), values * messages)


def rmatmul(matrix: Parts, dense: Tensor) -> Tensor:
    """Multiplies a dense ``[num_rows]`` or ``[F, num_rows]``."""
    if not isinstance(dense, Tensor):
        return NotImplemented
    if dense.dim() not in (1, 2) or dense.shape[-1] != matrix.num_rows:
        raise ValueError(
            f'matmul: a matrix of shape {list(matrix.shape)} needs a dense '
            f'operand of shape [{matrix.num_rows}] or [F, {matrix.num_rows}] '
            f'on its left (got {list(dense.shape)})'
        )
    transposed = dense if dense.dim() == 1 else dense.t()
    out = matmul(matrix.T, transposed)
    return out if dense.dim() == 1 else out.t()


def sddmm(matrix: M, x: Tensor, y: Tensor) -> M:
    """Returns the dot product of two features at each edge.

    The entries of ``X @ Y.T`` at the edges; the values of the matrix do
    not take part.

    Args:
        x (torch.Tensor): ``[num_rows, F]``.
        y (torch.Tensor): ``[num_cols, F]``.

    Raises:
        ValueError: If shapes do not fit.
    """
    m, n = matrix.shape
    if x.dim() != 2 or y.dim() != 2 or x.shape[1] != y.shape[1]:
        raise ValueError(
            f"sddmm: 'x' and 'y' must have shapes [{m}, F] and [{n}, F] "
            f'(got {list(x.shape)} and {list(y.shape)})'
        )
    if x.shape[0] != m or y.shape[0] != n:
        raise ValueError(
            f"sddmm: 'x' and 'y' must have {m} and {n} rows (got "
            f'{x.shape[0]} and {y.shape[0]})'
        )
    check_device('sddmm', matrix.device, x, y)
    left = x.index_select(0, matrix._index(1))
    right = y.index_select(0, matrix._index(0))
    return matrix._of_value((left * right).sum(-1))
