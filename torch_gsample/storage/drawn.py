"""The edges drawn by columns, in memory or in the files of an epoch.

Positions of columns come in, parts of their drawn edges go out.
"""

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from torch_gsample.storage.crc32c import functions, pointer
from torch_gsample.storage.pooled import empty_vector
from torch_gsample.storage.spill import pieces_of
from torch_gsample.storage.spill_array import SpillArray

#: Columns that are copied before pages of files are released.
_COLUMNS = 1 << 15


@dataclass(frozen=True)
class Drawn:
    """The edges drawn by columns; those of a column are contiguous.

    Args:
        start (torch.Tensor): int64 ``[n]``, the first item of each column.
        offset (torch.Tensor): int64 ``[n + 1]``, the number of items of all
            earlier columns.
        row (torch.Tensor): Neighbours, int32 or int64.
        edge (torch.Tensor): Ids of edges, int32 or int64.
        on_disk (Tuple[SpillArray, ...], optional): Arrays whose items must be
            checked before use.
    """

    start: Tensor
    offset: Tensor
    row: Tensor
    edge: Tensor
    on_disk: tuple[SpillArray, ...] = ()

    @classmethod
    def of_columns(cls, indptr: Tensor, row: Tensor, edge: Tensor) -> 'Drawn':
        """Returns the draws of all columns, concatenated."""
        return cls(indptr[:-1], indptr, row.contiguous(), edge.contiguous())

    @classmethod
    def look_up(
        cls,
        indptr: SpillArray,
        row: SpillArray,
        edge: SpillArray,
        place: np.ndarray,
    ) -> 'Drawn':
        """Returns the draws of some columns of an epoch.

        Args:
            indptr (SpillArray): int64 ``[num_columns + 1]``.
            row (SpillArray): ``[num_edges]``, int32 or int64.
            edge (SpillArray): ``[num_edges]``, int32 or int64.
            place (numpy.ndarray): int64 ``[n]``, the indices of the columns.
        """
        start, offset = empty_vector(len(place)), empty_vector(len(place) + 1)
        starts, ends = start.numpy(), offset.numpy()
        ends[0] = 0
        for part in _parts(len(place), indptr.is_on_disk):
            at = place[part]
            indptr.check(at, at + 2)
            malformed = functions().gsample_column_bounds(
                pointer(indptr.tensor.numpy()),
                pointer(at),
                ctypes.c_int64(len(at)),
                ctypes.c_int64(len(row.tensor)),
                ctypes.c_int64(int(ends[part.start])),
                pointer(starts[part]),
                pointer(ends[part.start + 1 :]),
            )
            assert malformed < 0, (
                f'column {malformed} of an epoch is malformed'
            )
            if indptr.is_on_disk:
                indptr.release()
        on_disk = tuple(array for array in (row, edge) if array.is_on_disk)
        return cls(start, offset, row.tensor, edge.tensor, on_disk)

    def parts(self) -> Iterator[slice]:
        """Yields slices of columns; each is readable until the next one."""
        for part in _parts(len(self.start), bool(self.on_disk)):
            for array in self.on_disk:
                first = self.start[part].numpy()
                offset = self.offset[part.start : part.stop + 1].numpy()
                array.check(first, first + np.diff(offset))
            yield part
            for array in self.on_disk:
                array.release()


def _parts(size: int, on_disk: bool) -> list[slice]:
    return list(pieces_of(size, _COLUMNS if on_disk else max(size, 1)))
