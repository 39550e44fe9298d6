"""Rows of a mapped array, such as an ``.npy`` file."""

import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_gsample.storage.read_model import DiskModel
from torch_gsample.storage.reading import File
from torch_gsample.storage.row_source import RowSource


class MappedRows(RowSource):
    """Rows of a mapped array, read from its file.

    All rows of a call are in flight together, whereas a mapping waits for each
    page. There are no checksums: see :class:`FeatureFile`.

    Args:
        array (numpy.memmap): ``[num_rows, *]``, contiguous; changes in private
            pages (mode ``'c'``) are ignored.

    Raises:
        OSError: If its file cannot be read.
        TypeError: If torch does not have its dtype.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(f'{folder}/x.npy', np.eye(3))
        ...     x = np.load(f'{folder}/x.npy', mmap_mode='r')
        ...     MappedRows(x)[[2, 0]]
        tensor([[0., 0., 1.],
                [1., 0., 0.]], dtype=torch.float64)
    """

    def __init__(self, array: np.memmap):
        self.array = array
        self.shape = torch.Size(array.shape)
        self.dtype = torch.from_numpy(np.empty(0, array.dtype)).dtype
        self.row_bytes = array.nbytes // max(len(array), 1)
        self._file = File(Path(str(array.filename)))
        # A slice of a mapping keeps the offset of the whole.
        map_: Any = array
        while not isinstance(map_, mmap.mmap):
            map_ = map_.base
        begin = np.frombuffer(map_, np.uint8).ctypes.data
        skipped = array.offset % mmap.ALLOCATIONGRANULARITY
        self._offset = array.offset - skipped + array.ctypes.data - begin

    @staticmethod
    def takes(value: Any) -> bool:
        """Whether a value is an array of rows in a file."""
        return (
            isinstance(value, np.memmap)
            and value.filename is not None
            and value.mode != 'c'
            and value.ndim > 0
            and value.nbytes > 0
            and value.flags.c_contiguous
        )

    @property
    def disk(self) -> Any:
        """The source of reads: the device, through the page cache."""
        return os.fstat(self._file.fd).st_dev, False

    def read_to(
        self, index: np.ndarray, out: np.ndarray, gap: int = 0
    ) -> None:
        """See :meth:`RowSource.read_to`; adjacent rows are one request.

        Raises:
            IndexError: If a row does not exist.
            OSError: If the file cannot be read; it names file and offset.
        """
        if len(index) == 0:
            return
        if index.min() < 0 or index.max() >= len(self):
            wrong = index[(index < 0) | (index >= len(self))][0]
            raise IndexError(
                f"MappedRows: 'index' must be in [0, {len(self)}), the rows "
                f'of {self._file.path} (got {wrong})'
            )
        rows, place = np.unique(index, return_inverse=True)
        first = np.flatnonzero(np.diff(rows, prepend=-2) > 1)
        count = np.diff(first, append=len(rows))
        sorts = not np.array_equal(rows, index)
        data = out
        if sorts:
            data = np.empty((len(rows), self.row_bytes), np.uint8)
        self._file.read_ranges(
            self._offset + rows[first] * self.row_bytes,
            count * self.row_bytes,
            data.reshape(-1),
        )
        if sorts:
            np.take(data, place, 0, out, 'clip')

    def decode(self, rows: Tensor) -> Tensor:
        """See :meth:`RowSource.decode`."""
        return rows.view(self.dtype).view(len(rows), *self.shape[1:])

    def cost(self, scratch: Path | None = None) -> DiskModel:
        """See :meth:`RowSource.cost`; measured, with the page cache."""
        return DiskModel.calibrate(self, scratch=scratch)

    def __reduce__(self) -> Any:
        facts = str(self.array.filename), self.array.dtype, self.array.shape
        return _mapped, (*facts, self._offset)


def _mapped(path: str, dtype: Any, shape: Any, offset: int) -> MappedRows:
    return MappedRows(np.memmap(path, dtype, 'r', offset, shape))
