"""Products of a ``SparseSample`` with dense matrices."""

from typing import TYPE_CHECKING, Any

from torch import Tensor, result_type

from torch_gsample.sparse_sample.compute import same_dims
from torch_gsample.sparse_sample.errors import check_device

if TYPE_CHECKING:
    from torch_gsample.sparse_sample.matrix import SparseSample


class Product:
    """Sparse times dense, and dense times dense at the edges."""

    __slots__ = ()

    def __matmul__(self: Any, dense: Tensor) -> Tensor:
        """Multiplies with a dense ``[num_cols]`` or ``[num_cols, F]``."""
        if not isinstance(dense, Tensor):
            return NotImplemented
        if dense.dim() not in (1, 2) or dense.shape[0] != self.num_cols:
            raise ValueError(
                f'matmul: a matrix of shape {list(self.shape)} needs a dense '
                f'operand of shape [{self.num_cols}] or [{self.num_cols}, F] '
                f'(got {list(dense.shape)})'
            )
        if self.values().dim() > 1:
            raise ValueError(
                'matmul: a product needs one value an edge (got '
                f'{list(self.values().shape)})'
            )
        check_device('matmul', self.device, dense)
        messages = dense.index_select(0, self._index(0))
        values, messages = same_dims(self.values(), messages)
        out = messages.new_zeros(
            (self.num_rows, *dense.shape[1:]),
            dtype=result_type(values, messages),
        )
        return out.index_add_(0, self._index(1), values * messages)

    def __rmatmul__(self: Any, dense: Tensor) -> Tensor:
        """Multiplies a dense ``[num_rows]`` or ``[F, num_rows]``."""
        if not isinstance(dense, Tensor):
            return NotImplemented
        if dense.dim() not in (1, 2) or dense.shape[-1] != self.num_rows:
            raise ValueError(
                f'matmul: a matrix of shape {list(self.shape)} needs a dense '
                f'operand of shape [{self.num_rows}] or [F, {self.num_rows}] '
                f'on its left (got {list(dense.shape)})'
            )
        transposed = dense if dense.dim() == 1 else dense.t()
        out = self.T.__matmul__(transposed)
        return out if dense.dim() == 1 else out.t()

    def sddmm(self: Any, x: Tensor, y: Tensor) -> 'SparseSample':
        """Returns the dot product of two features at each edge.

        The entries of ``X @ Y.T`` at the edges; the values of the matrix do
        not take part.

        Args:
            x (torch.Tensor): ``[num_rows, F]``.
            y (torch.Tensor): ``[num_cols, F]``.

        Raises:
            ValueError: If shapes do not fit.
        """
        m, n = self.shape
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
        check_device('sddmm', self.device, x, y)
        left = x.index_select(0, self._index(1))
        right = y.index_select(0, self._index(0))
        return self._of_value((left * right).sum(-1))
