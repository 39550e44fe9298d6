"""What a ``SparseSample`` computes with the values of its edges."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.ops._check import as_int64, detached, is_known
from torch_gsample.sparse_sample.errors import check_device, check_dim
from torch_gsample.sparse_sample.layout import Layout

if TYPE_CHECKING:
    from torch_gsample.sparse_sample.matrix import SparseSample

Operand = Any  # a number, a tensor or a SparseSample


class Compute:
    """Arithmetic and reductions.

    Results keep the pattern: what is no edge stays so, whatever is added.
    """

    __slots__ = ()

    # With numbers, matrices and dense tensors.

    def _operand(self: Any, name: str, other: Operand) -> Any:
        """What `other` holds at each edge."""
        if isinstance(other, type(self)):
            self._check_pattern(name, other)
            return other._aligned_values(self)
        if not isinstance(other, Tensor) or other.dim() == 0:
            return other
        check_device(name, self.device, other)
        return self._gather_dense(name, other)

    def _gather_dense(self: Any, name: str, dense: Tensor) -> Tensor:
        m, n = self.shape
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
        rows: Any = None if one_row else self._index(1)
        cols: Any = None if one_col else self._index(0)
        if rows is None and cols is None:
            return dense[0]
        if rows is None:
            return dense[0].index_select(0, cols)
        if cols is None:
            return dense[:, 0].index_select(0, rows)
        flat = dense.reshape(m * n, *dense.shape[2:])
        return flat.index_select(0, as_int64(rows) * n + cols)

    def _same_order(self: Any, other: 'SparseSample') -> bool:
        """Whether two matrices hold the same edges, stored alike."""
        (a, by_column), (b, also) = self._primary, other._primary
        return by_column == also and all(
            x is y or torch.equal(x, y)
            for x, y in ((a.indptr, b.indptr), (a.indices, b.indices))
        )

    def _sorted(self: Any) -> Layout:
        """Its columns, with ascending rows; parallel edges as stored."""
        return self.csr.transpose(self.num_cols)

    def _check_pattern(self: Any, name: str, other: 'SparseSample') -> None:
        same = self.shape == other.shape and self.num_edges == other.num_edges
        if same and not self._same_order(other):
            a, b = self._sorted(), other._sorted()
            same = torch.equal(a.indptr, b.indptr) and torch.equal(
                a.indices, b.indices
            )
        if not same:
            raise ValueError(
                f'{name}: two matrices must have the same edges (got '
                f'{self.num_edges} edges of {list(self.shape)} and '
                f'{other.num_edges} of {list(other.shape)}, or other places)'
            )

    def _aligned_values(self: Any, other: 'SparseSample') -> Tensor:
        """The values in the order of `other`, which has the same edges."""
        values = self.values()
        if self._same_order(other):
            return values
        mine: Any = self._sorted().perm
        theirs: Any = other._sorted().perm
        return torch.empty_like(values).index_copy(0, theirs, values[mine])

    def _binary(
        self: Any,
        name: str,
        function: Callable[[Any, Any], Tensor],
        other: Operand,
        swap: bool = False,
    ) -> 'SparseSample':
        value, operand = self.values(), self._operand(name, other)
        if isinstance(operand, Tensor) and operand.dim() > 0:
            value, operand = same_dims(value, operand)
        return self._of_value(
            function(operand, value) if swap else function(value, operand)
        )

    def _along(
        self: Any,
        name: str,
        function: Callable[[Any, Any], Tensor],
        other: Operand,
        dim: int | None,
        axis: int | None,
    ) -> 'SparseSample':
        dim = self._reduced(name, dim, axis)
        if dim is None:
            return self._binary(name, function, other)
        size = self.shape[1 - dim]
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
        check_device(name, self.device, other)
        operand = other.index_select(0, self._index(dim))
        return self._of_value(function(*same_dims(self.values(), operand)))

    def add(
        self,
        other: Operand,
        dim: int | None = None,
        *,
        axis: int | None = None,
    ) -> 'SparseSample':
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
        return self._along('add', torch.add, other, dim, axis)

    def sub(
        self,
        other: Operand,
        dim: int | None = None,
        *,
        axis: int | None = None,
    ) -> 'SparseSample':
        """Subtracts from the value of each edge; see :meth:`add`."""
        return self._along('sub', torch.sub, other, dim, axis)

    def mul(
        self,
        other: Operand,
        dim: int | None = None,
        *,
        axis: int | None = None,
    ) -> 'SparseSample':
        """Multiplies the value of each edge; see :meth:`add`."""
        return self._along('mul', torch.mul, other, dim, axis)

    def div(
        self,
        other: Operand,
        dim: int | None = None,
        *,
        axis: int | None = None,
    ) -> 'SparseSample':
        """Divides the value of each edge; see :meth:`add`."""
        return self._along('div', torch.div, other, dim, axis)

    def pow(self, other: Operand) -> 'SparseSample':
        """Raises the value of each edge to a power; see :meth:`add`."""
        return self._binary('pow', torch.pow, other)

    def __add__(self, other: Operand) -> 'SparseSample':
        return self._binary('add', torch.add, other)

    __radd__ = __add__

    def __sub__(self, other: Operand) -> 'SparseSample':
        return self._binary('sub', torch.sub, other)

    def __rsub__(self, other: Operand) -> 'SparseSample':
        return self._binary('sub', torch.sub, other, swap=True)

    def __mul__(self, other: Operand) -> 'SparseSample':
        return self._binary('mul', torch.mul, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Operand) -> 'SparseSample':
        return self._binary('div', torch.div, other)

    def __rtruediv__(self, other: Operand) -> 'SparseSample':
        return self._binary('div', torch.div, other, swap=True)

    def __pow__(self, other: Operand) -> 'SparseSample':
        return self._binary('pow', torch.pow, other)

    def __rpow__(self, other: Operand) -> 'SparseSample':
        return self._binary('pow', torch.pow, other, swap=True)

    def __neg__(self: Any) -> 'SparseSample':
        return self._of_value(-self.values())

    def apply(
        self: Any, function: Callable[[Tensor], Tensor]
    ) -> 'SparseSample':
        """Returns the matrix of ``function(values)``, edge by edge."""
        return self.with_value(function(self.values()))

    # Reductions.

    def _reduced(
        self: Any, name: str, dim: int | None, axis: int | None
    ) -> int | None:
        if dim is not None and axis is not None:
            raise TypeError(
                f"{name}: give 'dim' or its alias 'axis', not both"
            )
        dim = axis if dim is None else dim
        return None if dim is None else check_dim(name, dim)

    def _zeros(self: Any, dim: int, fill: float = 0.0) -> Tensor:
        value = self.values()
        return value.new_full((self.shape[1 - dim], *value.shape[1:]), fill)

    def _scatter(
        self: Any, name: str, reduce: str, dim: int, fill: float
    ) -> Tensor:
        value = self.values()
        index = as_int64(self._index(dim)).view(-1, *[1] * (value.dim() - 1))
        return self._zeros(dim, fill).scatter_reduce_(
            0, index.expand_as(value), value, reduce, include_self=False
        )

    def sum(
        self: Any, dim: int | None = None, *, axis: int | None = None
    ) -> Tensor:
        """Sums the values of the edges.

        Args:
            dim (int, optional): 0 sums over rows: one result a column. 1 sums
                over columns. All edges if not given.
            axis (int, optional): NumPy's name of ``dim``.

        Returns:
            torch.Tensor: ``[num_cols]`` or ``[num_rows]`` (and features), 0
            where there is no edge.
        """
        dim = self._reduced('sum', dim, axis)
        if dim is None:
            return self.values().sum(0)
        exact = self.dtype in (torch.float32, torch.float64)
        if self.device.type == 'cuda' and exact:
            return self._sum_in_order(dim)
        return self._zeros(dim).index_add_(0, self._index(dim), self.values())

    def _sum_in_order(self: Any, dim: int) -> Tensor:
        """The sums of a GPU, in the order that the CPU has."""
        layout, value = self.csc if dim == 0 else self.csr, self.values()
        flat = value.view(value.shape[0], -1) if value.dim() > 2 else value
        out = ops.sum_columns(layout.indptr, flat, layout.perm)
        return out.view(-1, *value.shape[1:])

    def degree(self: Any, dim: int = 0) -> Tensor:
        """Returns the number of edges of each column (row), int64."""
        dim = check_dim('degree', dim)
        if self._is_major(dim):
            return as_int64(self._primary[0].indptr.diff())
        size = self.shape[1 - dim]
        counts = torch.bincount(self._index(dim), minlength=size)
        # To a compiler: its length, and its dtype, which torch 2.11 mistakes.
        return as_int64(counts.view(size))

    def mean(
        self: Any, dim: int | None = None, *, axis: int | None = None
    ) -> Tensor:
        """Averages the values of the edges: 0 where there is none."""
        dim = self._reduced('mean', dim, axis)
        if dim is None:
            return self.values().mean(0)
        total = self.sum(dim)
        count = self.degree(dim).clamp(min=1).to(total.dtype)
        return total / count.view(-1, *[1] * (total.dim() - 1))

    def max(
        self: Any, dim: int | None = None, *, axis: int | None = None
    ) -> Tensor:
        """Returns the largest value of an edge: 0 where there is none."""
        dim = self._reduced('max', dim, axis)
        if dim is None:
            return self.values().amax(0)
        return self._scatter('max', 'amax', dim, 0.0)

    def min(
        self: Any, dim: int | None = None, *, axis: int | None = None
    ) -> Tensor:
        """Returns the smallest value of an edge: 0 where there is none."""
        dim = self._reduced('min', dim, axis)
        if dim is None:
            return self.values().amin(0)
        return self._scatter('min', 'amin', dim, 0.0)

    def prod(
        self: Any, dim: int | None = None, *, axis: int | None = None
    ) -> Tensor:
        """Multiplies the values of the edges: 1 where there is none."""
        dim = self._reduced('prod', dim, axis)
        if dim is None:
            return self.values().prod(0)
        return self._scatter('prod', 'prod', dim, 1.0)

    def norm(
        self: Any,
        p: float = 2.0,
        dim: int | None = None,
        *,
        axis: int | None = None,
    ) -> Tensor:
        """Returns the p-norm of the values of the edges."""
        dim = self._reduced('norm', dim, axis)
        if p == float('inf'):
            return self.apply(torch.abs).max(dim)
        if p <= 0:
            raise ValueError(f"norm: 'p' must be positive (got {p})")
        total = self.apply(lambda v: v.abs() ** p).sum(dim)
        # The root has no gradient at 0, where there is no edge.
        root = torch.where(total > 0, total, 1) ** (1 / p)
        return torch.where(total > 0, root, total)

    def softmax(
        self: Any, dim: int | None = None, *, axis: int | None = None
    ) -> 'SparseSample':
        """Normalises the exponentials of values over the edges of a column.

        Args:
            dim (int, optional): 0 for each column (the default), 1 for each
                row.
            axis (int, optional): NumPy's name of ``dim``.
        """
        dim = self._reduced('softmax', dim, axis) or 0
        index = self._index(dim)
        shift = self._of_value(detached(self.values())).max(dim)
        shifted = self.values() - shift.index_select(0, index)
        out = self._of_value(shifted.exp())
        return out.div(out.sum(dim), dim)


def same_dims(value: Tensor, operand: Tensor) -> tuple[Tensor, Tensor]:
    """Gives two per-edge tensors the same number of dimensions."""
    while value.dim() < operand.dim():
        value = value.unsqueeze(-1)
    while operand.dim() < value.dim():
        operand = operand.unsqueeze(-1)
    return value, operand
