"""Arithmetic with the values of edges, and matrix products.

Results have the same edges; entries that are not edges stay empty.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling as is_compiling

from torch_gsample import ops
from torch_gsample.csc import CSC
from torch_gsample.ops._check import as_int64, is_known
from torch_gsample.sparse_sample.errors import (
    Dim,
    call_as,
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
        ValueError: If the number of values is not the number of edges.
    """
    if value is not None:
        check_value('with_value', value, matrix.num_edges)
    return matrix._of_value(value)


def apply(matrix: M, function: Callable[[Tensor], Tensor]) -> M:
    """Returns the matrix of ``function(values)``, edge by edge."""
    return with_value(matrix, function(matrix.values()))


def relu(matrix: M) -> M:
    """Returns the matrix with negative values replaced by 0."""
    return apply(matrix, torch.relu)


def abs(matrix: M) -> M:
    """Returns the matrix of absolute values."""
    return apply(matrix, torch.abs)


def exp(matrix: M) -> M:
    """Returns the matrix of the exponential of each value."""
    return apply(matrix, torch.exp)


def log(matrix: M) -> M:
    """Returns the matrix of the natural logarithm of each value."""
    return apply(matrix, torch.log)


def sqrt(matrix: M) -> M:
    """Returns the matrix of the square root of each value."""
    return apply(matrix, torch.sqrt)


def sigmoid(matrix: M) -> M:
    """Returns the matrix of the logistic function of each value."""
    return apply(matrix, torch.sigmoid)


def clamp(matrix: M, min: float | None = None, max: float | None = None) -> M:
    """Returns the matrix with values limited to an interval.

    Args:
        min (float, optional): The least value.
        max (float, optional): The greatest value.
    """
    return apply(matrix, lambda value: value.clamp(min, max))


def add(matrix: M, other: Operand, dim: Dim = None, *, axis: Dim = None) -> M:
    """Adds to the value of each edge.

    Args:
        other: A number, a matrix with the same edges, or a dense tensor that
            broadcasts with the matrix; with ``dim``, a vector of the shape of
            ``A.sum(dim)``.
        dim (int, optional): The dimension missing in ``other``.
        axis (int, optional): NumPy's name for ``dim``.

    Raises:
        ValueError: If shapes do not match.
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
    """Returns the value of ``other`` at each edge."""
    if isinstance(other, Parts):
        return aligned_values(matrix, name, other)
    if not isinstance(other, Tensor) or other.dim() == 0:
        return other
    check_device(name, matrix.device, other)
    return _gather_dense(matrix, name, other)


def _gather_dense(matrix: Parts, name: str, dense: Tensor) -> Tensor:
    m, n = matrix.shape
    got = list(dense.shape)
    if dense.dim() == 1:
        dense = dense.unsqueeze(0)
    # A vector applies to all rows (columns). A captured size is assumed
    # to fit.
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


def aligned_values(matrix: Parts, name: str, other: Parts) -> Tensor:
    """Returns the values of a matrix with the same edges, in our order.

    Matrices from one extract share their tensors, and need no comparison. A
    captured program compares others at run time, unless the compiler proves
    that they come from one extract (``eliminate_matches``).

    Args:
        matrix (SparseSample): The matrix whose order the values get.
        name (str): The operation, for errors.
        other (SparseSample): The matrix whose values are returned.

    Raises:
        ValueError: If their edges differ.
    """
    mine, by_column = matrix._stored
    theirs = other.csc if by_column else other.csr
    alike = theirs.edge_id is None and not is_known(
        mine.num_rows != theirs.num_rows
    )
    if alike and _is_same(mine, theirs):
        return other.values()
    at = call_as(
        name,
        ops.match_edges,
        mine.indptr,
        mine.indices,
        mine.num_rows,
        theirs.indptr,
        theirs.indices,
        theirs.num_rows,
    )
    if theirs.edge_id is not None:
        at = theirs.edge_id.index_select(0, at)
    return other.values().index_select(0, at)


def _is_same(first: CSC, second: CSC) -> bool:
    """Whether layouts are equal; during capture, whether identical."""
    pairs = (first.indptr, second.indptr), (first.indices, second.indices)
    if all(a is b for a, b in pairs):
        return True
    return not is_compiling() and all(
        a.dtype == b.dtype and torch.equal(a, b) for a, b in pairs
    )


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
    """Adds trailing dimensions to either of two per-edge tensors."""
    while value.dim() < operand.dim():
        value = value.unsqueeze(-1)
    while operand.dim() < value.dim():
        operand = operand.unsqueeze(-1)
    return value, operand


def matmul(matrix: Parts, dense: Tensor) -> Any:
    """Multiplies with a dense ``[num_cols]`` or ``[num_cols, F]``.

    A matrix with ``F`` values per edge, such as a result of ``torch.stack``,
    is multiplied edge by edge with a dense ``[F]`` or ``[F, K]``.

    Returns:
        torch.Tensor or SparseSample: ``[num_rows]`` or ``[num_rows, F]``; with
        ``F`` values per edge, a matrix of one value or ``K`` values per edge.

    Raises:
        ValueError: If shapes do not match.

    Example:
        >>> from torch_gsample import SparseSample
        >>> A = SparseSample.from_edge_index(torch.tensor([[0, 1], [1, 0]]))
        >>> A @ torch.tensor([1., 2.])
        tensor([2., 1.])
        >>> (torch.stack([A, A * 2]) @ torch.tensor([1., 3.])).values()
        tensor([7., 7.])
    """
    if not isinstance(dense, Tensor):
        return NotImplemented
    if matrix.values().dim() > 1:
        return _project(matrix, dense)
    return _product(matrix, dense)


def _project(matrix: M, dense: Tensor) -> M:
    """Multiplies the vector of each edge."""
    values = matrix.values()
    size = values.shape[-1]
    if values.dim() > 2 or dense.dim() not in (1, 2) or dense.shape[0] != size:
        raise ValueError(
            f'matmul: a matrix of values {list(values.shape)} needs a dense '
            f'operand of shape [{size}] or [{size}, K], and one vector an '
            f'edge (got {list(dense.shape)})'
        )
    check_device('matmul', matrix.device, dense)
    return matrix._of_value(values @ dense)


def _product(matrix: Parts, dense: Tensor) -> Tensor:
    if dense.dim() not in (1, 2) or dense.shape[0] != matrix.num_cols:
        raise ValueError(
            f'matmul: a matrix of shape {list(matrix.shape)} needs a dense '
            f'operand of shape [{matrix.num_cols}] or [{matrix.num_cols}, F] '
            f'(got {list(dense.shape)})'
        )
    check_device('matmul', matrix.device, dense)
    messages = dense.index_select(0, matrix._index(0))
    values, messages = same_dims(matrix.values(), messages)
    out = messages.new_zeros(
        (matrix.num_rows, *dense.shape[1:]),
        dtype=torch.promote_types(values.dtype, messages.dtype),
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
    if matrix.values().dim() > 1:
        raise ValueError(
            'matmul: a product with an operand on the left needs one value '
            f'an edge (got {list(matrix.values().shape)})'
        )
    transposed = dense if dense.dim() == 1 else dense.t()
    out = _product(matrix.T, transposed)
    return out if dense.dim() == 1 else out.t()


def sddmm(matrix: M, x: Tensor, y: Tensor) -> M:
    """Returns the dot product of source and destination features per edge.

    These are the entries of ``X @ Y.T`` at the edges. The values of the matrix
    are ignored.

    Args:
        x (torch.Tensor): ``[num_rows, F]``.
        y (torch.Tensor): ``[num_cols, F]``.

    Raises:
        ValueError: If shapes do not match.
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
