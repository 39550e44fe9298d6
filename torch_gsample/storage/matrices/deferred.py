"""Arithmetic with and reductions of all edges of a graph on disk."""

from typing import Any

import torch
from torch import Tensor
from typing_extensions import Self

from torch_gsample.sparse_sample import SparseSample
from torch_gsample.sparse_sample.errors import Dim, check_dim, reduced_dim
from torch_gsample.storage.matrices.edges import StoredEdges
from torch_gsample.storage.matrices.operators import spell, stored_reduce
from torch_gsample.storage.matrices.steps import Step, Steps


class Deferred(SparseSample):
    """The values of all edges of a relation on disk.

    Arithmetic is deferred until edges are read. Reductions are computed by one
    scan and cached.

    Args:
        cols (StoredEdges): Its columns; its rows, if it is transposed.
        rows (StoredEdges, optional): The same edges by row; their ids are
            positions in ``cols``.
        steps (Steps): Its values.
        is_transposed (bool, optional): Whether its columns are ``rows``.
    """

    __slots__ = ('_cols', '_is_transposed', '_rows', '_steps')
    _is_later = True

    def __init__(
        self,
        cols: StoredEdges,
        rows: StoredEdges | None,
        steps: Steps,
        is_transposed: bool = False,
    ):
        self._csc = self._csr = None
        self.row_ids = self.col_ids = None
        self._cols, self._rows = cols, rows
        self._steps, self._is_transposed = steps, is_transposed
        shape = cols.num_rows, cols.num_cols
        self.shape = shape[::-1] if is_transposed else shape

    def __reduce__(self) -> Any:
        parts = self._cols, self._rows, self._steps, self._is_transposed
        return type(self), parts

    @property
    def num_edges(self) -> int:
        """Number of edges."""
        return self._cols.num_edges

    @property
    def device(self) -> torch.device:
        """The CPU, which reads the disk."""
        return self._cols.pointers.device

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the values."""
        stored: Any = self.T if self._is_transposed else self
        return stored._take_cols(self._cols.pointers[:0]).dtype

    @property
    def T(self) -> Self:
        """The matrix with its edges reversed."""
        return type(self)(
            self._cols, self._rows, self._steps, not self._is_transposed
        )

    # Deferred arithmetic.

    def add(self, other: Any, dim: Dim = None, *, axis: Dim = None) -> Self:
        """Adds to each value; see :meth:`SparseSample.add`."""
        return self._along('add', '__add__', other, dim, axis)

    def sub(self, other: Any, dim: Dim = None, *, axis: Dim = None) -> Self:
        """Subtracts from each value; see :meth:`SparseSample.add`."""
        return self._along('sub', '__sub__', other, dim, axis)

    def mul(self, other: Any, dim: Dim = None, *, axis: Dim = None) -> Self:
        """Multiplies each value; see :meth:`SparseSample.add`."""
        return self._along('mul', '__mul__', other, dim, axis)

    def div(self, other: Any, dim: Dim = None, *, axis: Dim = None) -> Self:
        """Divides each value; see :meth:`SparseSample.add`."""
        return self._along('div', '__truediv__', other, dim, axis)

    def _along(
        self, name: str, whole: str, other: Any, dim: Dim, axis: Dim
    ) -> Self:
        dim = reduced_dim(name, dim, axis)
        if dim is None:
            return self._by(whole, other)
        size = self.shape[1 - dim]
        if not isinstance(other, Tensor) or other.shape != (size,):
            got = list(other.shape) if isinstance(other, Tensor) else other
            raise ValueError(
                f"{name}: with 'dim={dim}', the operand of a matrix on disk "
                f'must be a vector of {size} numbers (got {got})'
            )
        return self._then(name, other, dim)

    def _then(
        self, name: str, operand: Any = None, dim: int | None = None
    ) -> Self:
        if dim is not None and self._is_transposed:
            dim = 1 - dim
        step = Step(name, operand, dim)
        return type(self)(
            self._cols,
            self._rows,
            self._steps.then(step),
            self._is_transposed,
        )

    def __neg__(self) -> Self:
        return self._then('__neg__')

    def __pow__(self, other: Any) -> Self:
        return self._by('__pow__', other)

    def __add__(self, other: Any) -> Self:
        return self._by('__add__', other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Self:
        return self._by('__sub__', other)

    def __rsub__(self, other: Any) -> Self:
        return self._by('__rsub__', other)

    def __mul__(self, other: Any) -> Self:
        return self._by('__mul__', other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Self:
        return self._by('__truediv__', other)

    def __rtruediv__(self, other: Any) -> Self:
        return self._by('__rtruediv__', other)

    def relu(self) -> Self:
        """Clips negative values to 0; see :meth:`SparseSample.relu`."""
        return self._then('relu')

    def _by(self, name: str, other: Any) -> Self:
        if isinstance(other, (bool, int, float)):
            return self._then(name, +other)  # bool is a number, too
        raise TypeError(
            f'SparseSample: {name} of a matrix on disk needs a number, or a '
            f"vector with 'dim', as div(x, dim=0) (got {type(other).__name__}"
            '): extract columns first'
        )

    # Reduce.

    def sum(self, dim: Dim = None, *, axis: Dim = None) -> Tensor:
        """Sums values, by one scan; see :meth:`SparseSample.sum`."""
        return self._reduce('sum', dim, axis)

    def max(self, dim: Dim = None, *, axis: Dim = None) -> Tensor:
        """The largest values; see :meth:`SparseSample.max`."""
        return self._reduce('max', dim, axis)

    def min(self, dim: Dim = None, *, axis: Dim = None) -> Tensor:
        """The smallest values; see :meth:`SparseSample.min`."""
        return self._reduce('min', dim, axis)

    def mean(self, dim: Dim = None, *, axis: Dim = None) -> Tensor:
        """Averages values, by one scan; see :meth:`SparseSample.mean`."""
        total = self._reduce('mean', dim, axis, 'sum')
        dim = reduced_dim('mean', dim, axis)
        assert dim is not None
        return total / self.degree(dim).clamp(min=1).to(total.dtype)

    def degree(self, dim: int = 0) -> Tensor:
        """Counts edges; see :meth:`SparseSample.degree`."""
        dim = check_dim('degree', dim)
        dim = 1 - dim if self._is_transposed else dim
        lists = self._cols if dim == 0 else self._rows
        if lists is not None:
            return lists.pointers.diff()
        return self._stored_reduce('degree', dim, Steps(False), torch.int64)

    def _reduce(
        self, name: str, dim: Dim, axis: Dim, by: str | None = None
    ) -> Tensor:
        dim = reduced_dim(name, dim, axis)
        if dim is None:
            raise ValueError(
                f"SparseSample: {name} of a matrix on disk needs 'dim', 0 or "
                f'1: reduce its result (got None)'
            )
        dim = 1 - dim if self._is_transposed else dim
        return self._stored_reduce(by or name, dim, self._steps, self.dtype)

    def _stored_reduce(
        self, name: str, dim: int, steps: Steps, dtype: torch.dtype
    ) -> Tensor:
        edges = self._cols
        text, operands = spell(steps)
        if torch.is_grad_enabled() and any(x.requires_grad for x in operands):
            raise ValueError(
                f'SparseSample: {name} of a matrix on disk has no gradient: '
                'detach the operands of its values'
            )
        return stored_reduce(
            edges.handle,
            name,
            dim,
            steps.is_weighted,
            text,
            operands,
            (edges.num_cols, edges.num_rows)[dim],
            dtype,
        )
