"""Rows of features that layers read: on disk, in a map, or in memory.

Numbers of nodes come in; what is stored of them goes out, and is decoded when
a tile needs it.
"""

import hashlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_gsample.storage.feature_file import FeatureFile
from torch_gsample.storage.mapped_rows import MappedRows

#: Rows that are read or hashed at a time.
_PIECE = 1 << 16


class MemoryRows:
    """Rows of a tensor or of a mapped array.

    Args:
        data (torch.Tensor or numpy.ndarray): ``[num_rows, *]``.
    """

    def __init__(self, data: Tensor | np.ndarray):
        self._data = data
        if isinstance(data, np.ndarray) and not isinstance(data, np.memmap):
            self._data = torch.from_numpy(data)
        self._dtype = (
            torch.from_numpy(np.empty(0, data.dtype)).dtype
            if isinstance(data, np.ndarray)
            else data.dtype
        )
        self._shape = data.shape[1:]
        #: Elements of a row, and its bytes as it is stored.
        self.numel = math.prod(data.shape[1:])
        self.row_bytes = self.numel * data.dtype.itemsize
        #: Bytes besides the rows.
        self.memory = 0

    def __len__(self) -> int:
        return len(self._data)

    @property
    def resident(self) -> Tensor | None:
        """All rows, where they are in memory anyway."""
        return self._data if isinstance(self._data, Tensor) else None

    def read(self, rows: np.ndarray, gap: int = 0) -> Tensor:
        """Returns rows as they are stored.

        Args:
            rows (numpy.ndarray): int64 ``[n]``, ascending.
            gap (int, optional): Not used.
        """
        if isinstance(self._data, Tensor):
            return self._data[torch.from_numpy(rows)]
        return torch.from_numpy(np.array(self._data[rows]))

    def scan(self, memory: int) -> Iterator[tuple[int, np.ndarray]]:
        """See :meth:`RowSource.scan`."""
        count = max(memory // self.row_bytes, 1)
        for first in range(0, len(self), count):
            last = min(first + count, len(self))
            rows = self.read(np.arange(first, last)).contiguous()
            yield first, rows.view(last - first, -1).view(torch.uint8).numpy()

    def decode(self, rows: Tensor) -> Tensor:
        """Returns stored rows as layers take them."""
        if rows.dtype == torch.uint8 != self._dtype:  # a copy of them
            return rows.view(self._dtype).view(len(rows), *self._shape)
        return rows

    def fingerprint(self) -> str:
        """Tells contents apart: reads all rows once."""
        out = hashlib.sha256(f'{self._data.dtype}{self._data.shape}'.encode())
        for first in range(0, len(self), _PIECE):
            last = min(first + _PIECE, len(self))
            rows = self.read(np.arange(first, last)).contiguous()
            if rows.numel():
                out.update(rows.view(-1).view(torch.uint8).numpy().data)
        return out.hexdigest()


class FileRows:
    """Rows of a feature file.

    Args:
        file (FeatureFile): The file.
        dtype (torch.dtype, optional): What its bytes are, where this is not
            the dtype of the file: layers in float64 are stored as pairs of
            float32.
    """

    resident = None

    def __init__(self, file: FeatureFile, dtype: torch.dtype | None = None):
        self.file, self._dtype = file, dtype
        self.row_bytes, self.memory = file.row_bytes, file.memory
        self.numel = math.prod(file.shape[1:])
        if dtype is not None:
            self.numel = self.row_bytes // dtype.itemsize

    def __len__(self) -> int:
        return len(self.file)

    def read(self, rows: np.ndarray, gap: int = 0) -> Tensor:
        """Returns rows as they are stored, uint8 ``[n, row_bytes]``.

        Args:
            rows (numpy.ndarray): int64 ``[n]``, ascending.
            gap (int, optional): See :meth:`FeatureFile.read`.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If a block is damaged; it names file and offset.
        """
        out = torch.empty(len(rows), self.row_bytes, dtype=torch.uint8)
        for at in range(0, len(rows), _PIECE):
            part = slice(at, at + _PIECE)
            self.file.read_to(rows[part], out[part].numpy(), gap)
        return out

    def scan(self, memory: int) -> Iterator[tuple[int, np.ndarray]]:
        """See :meth:`RowSource.scan`."""
        return self.file.scan(memory)

    def decode(self, rows: Tensor) -> Tensor:
        """Returns stored rows as layers take them."""
        out = self.file.decode(rows)
        return out if self._dtype is None else out.view(self._dtype)

    def fingerprint(self) -> str:
        """Tells contents apart, by what the header says of this very file."""
        meta = self.file.meta
        facts = meta.generation, meta.table_checksum, meta.num_rows
        return repr((*facts, meta.shape, str(meta.dtype)))


Rows = MemoryRows | FileRows


def as_rows(value: Any, name: str) -> Rows:
    """Returns the rows of features in any form.

    Raises:
        TypeError: If it is not a file, tensor or array.
    """
    if isinstance(value, FeatureFile):
        return FileRows(value)
    if isinstance(value, MappedRows):
        return MemoryRows(value.array)
    if isinstance(value, (Tensor, np.ndarray)) and value.ndim > 0:
        plain = value.detach().cpu() if isinstance(value, Tensor) else value
        return MemoryRows(plain)
    raise TypeError(
        f"infer: 'features' of {name} must be a FeatureFile, a tensor or an "
        f'array (got {type(value).__name__})'
    )
