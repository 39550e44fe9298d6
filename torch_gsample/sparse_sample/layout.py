"""The compressed layouts of a sparse matrix."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.ops._check import is_known


@dataclass(frozen=True)
class Layout:
    """Edges in compressed columns, or of the transpose: compressed rows.

    Args:
        indptr (torch.Tensor): ``[num_major + 1]``, where each column (row)
            starts.
        indices (torch.Tensor): ``[num_edges]``, the row (column) of each edge.
        perm (torch.Tensor, optional): int64 ``[num_edges]``, where the value
            of each edge is stored; :obj:`None` if in this order.
    """

    indptr: Tensor
    indices: Tensor
    perm: Tensor | None = None

    @property
    def num_major(self) -> int:
        """Number of columns (rows) that are compressed."""
        return self.indptr.shape[0] - 1

    def map(self, function: Callable[[Tensor], Tensor]) -> 'Layout':
        """Returns the layout of what a function makes of each tensor."""
        perm = None if self.perm is None else function(self.perm)
        return Layout(function(self.indptr), function(self.indices), perm)

    def major(self) -> Tensor:
        """Returns the column (row) of each edge, int64 ``[num_edges]``."""
        return self._spread(self._majors())

    def _majors(self) -> Tensor:
        # Patterns of the compiler are those of the CPU: they name no device.
        if not self.indptr.is_cuda:
            return torch.arange(self.num_major)
        return torch.arange(self.num_major, device=self.indptr.device)

    def _spread(self, value: Tensor) -> Tensor:
        return torch.repeat_interleave(
            value, self.indptr.diff(), output_size=self.indices.shape[0]
        )

    def transpose(self, num_minor: int) -> 'Layout':
        """Returns the other layout of the same matrix."""
        # Large graphs would take long to write as int64.
        sizes = self.num_major, num_minor
        narrow = all(is_known(size < 2**31) for size in sizes)
        dtype = self.indices.dtype if narrow else torch.int64
        indptr, indices, perm = ops.coo_to_csc(
            self._spread(self._majors().to(dtype)),
            self.indices.to(dtype),
            self.num_major,
            num_minor,
            self.indices.dtype,
        )
        if self.perm is not None:
            perm = self.perm[perm]
        return Layout(indptr, indices, perm)
