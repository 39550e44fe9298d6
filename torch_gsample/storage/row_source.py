"""Sources of feature rows: files, or your own class.

Row indices come in, their bytes go out; read plans use their cost.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_gsample.storage.read_model import DiskModel, Reads, count_reads


class RowSource(ABC):
    """Rows of fixed width, read by index.

    A :class:`FeatureFile` is one. Subclass it for rows elsewhere, such as
    another machine or pinned memory, and put it in a
    :class:`DiskFeatureStore`: all plans work with it, by its :meth:`cost`.

    Example:
        >>> class Memory(RowSource):
        ...     def __init__(self, x):
        ...         self.x, self.shape, self.dtype = x, x.shape, x.dtype
        ...         self.row_bytes = x[0].nbytes
        ...     def read_to(self, index, out, gap=0):
        ...         rows = self.x[torch.from_numpy(index)]
        ...         out[:] = rows.view(torch.uint8).numpy()
        ...     def decode(self, rows):
        ...         return rows.view(self.dtype)
        ...     def cost(self, scratch=None):
        ...         return DiskModel(1e-6, 10e9)
        >>> Memory(torch.eye(3))[[2, 0]]
        tensor([[0., 0., 1.],
                [1., 0., 0.]])
    """

    #: The shape of all rows.
    shape: torch.Size
    #: The dtype of decoded rows.
    dtype: torch.dtype
    #: Bytes of a stored row.
    row_bytes: int

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def memory(self) -> int:
        """Bytes of memory for reads."""
        return 0

    @property
    def disk(self) -> Any:
        """The device: sources with equal ones share their :meth:`cost`."""
        return None

    @abstractmethod
    def read_to(
        self, index: np.ndarray, out: np.ndarray, gap: int = 0
    ) -> None:
        """Reads stored rows into the caller's memory.

        Several threads may call it.

        Args:
            index (numpy.ndarray): int64 ``[n]``, contiguous.
            out (numpy.ndarray): uint8 ``[n, row_bytes]``, contiguous.
            gap (int, optional): See :meth:`read`.
        """

    @abstractmethod
    def decode(self, rows: Tensor) -> Tensor:
        """Converts stored rows to features.

        Args:
            rows (torch.Tensor): uint8 ``[n, row_bytes]``, contiguous.
        """

    @abstractmethod
    def cost(self, scratch: Path | None = None) -> DiskModel:
        """Returns the cost of reads.

        Args:
            scratch (Path, optional): A folder; also measures writes to it.
        """

    def count_reads(self, rows: np.ndarray, gap: int = 0) -> Reads:
        """Returns the requests and bytes for rows.

        Args:
            rows (numpy.ndarray): int64 ``[n]``, ascending.
            gap (int, optional): See :meth:`read`.
        """
        return count_reads(rows, self.row_bytes, gap)

    def scan(self, memory: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yields all rows in order, in pieces.

        Args:
            memory (int): Bytes of two pieces.

        Returns:
            Iterator[Tuple[int, numpy.ndarray]]: The first row, and uint8
            ``[n, row_bytes]``, which the next piece overwrites.
        """
        count = max(min(memory // self.row_bytes, len(self)), 1)
        out = np.empty((count, self.row_bytes), np.uint8)
        for first in range(0, len(self), count):
            rows = np.arange(first, min(first + count, len(self)))
            self.read_to(rows, out[: len(rows)])
            yield first, out[: len(rows)]

    def __getitem__(self, index: Any) -> Tensor:
        if isinstance(index, slice):
            steps = range(*index.indices(len(self)))
            return self.read(torch.tensor(steps, dtype=torch.int64))
        if isinstance(index, (int, np.integer)):
            return self.read(torch.tensor([int(index)]))[0]
        return self.read(index)

    def read(self, index: Any, gap: int = 0) -> Tensor:
        """Returns rows in the requested order.

        Args:
            index (torch.Tensor): int64 or int32 ``[n]``, each in
                ``[0, num_rows)``, in any order, with repetitions.
            gap (int, optional): Requests are merged over gaps of at most this
                many blocks.

        Returns:
            torch.Tensor: ``[n, *]``; int8 rows become float32.

        Raises:
            IndexError: If a row does not exist.
            OSError: If rows cannot be read.
            TypeError: If ``index`` does not hold integers.
            ValueError: If a row is damaged.
        """
        rows = _rows_of(index, type(self).__name__)
        return self.decode(self.read_bytes(rows, gap))

    def read_bytes(self, index: np.ndarray, gap: int = 0) -> Tensor:
        """Returns stored rows, uint8 ``[n, row_bytes]``.

        Args:
            index (numpy.ndarray): int64 ``[n]``, contiguous.
            gap (int, optional): See :meth:`read`.
        """
        out = torch.empty(len(index), self.row_bytes, dtype=torch.uint8)
        self.read_to(index, out.numpy(), gap)
        return out


class JoinedRows(RowSource):
    """Concatenates the rows of several sources.

    Args:
        parts (List[RowSource]): The sources, with rows of the same shape and
            dtype.

    Raises:
        ValueError: If they differ, or there is none.
    """

    def __init__(self, parts: list[RowSource]):
        kinds = {(p.dtype, p.row_bytes, tuple(p.shape[1:])) for p in parts}
        if len(kinds) != 1:
            raise ValueError(
                "JoinedRows: 'parts' must have rows of one kind (got "
                f'{sorted(map(str, kinds))})'
            )
        self._parts = parts
        self._ends = np.cumsum([len(part) for part in parts])
        first = parts[0]
        self.shape = torch.Size([int(self._ends[-1]), *first.shape[1:]])
        self.dtype, self.row_bytes = first.dtype, first.row_bytes

    @property
    def memory(self) -> int:
        """See :meth:`RowSource.memory`."""
        return max(part.memory for part in self._parts)

    @property
    def disk(self) -> Any:
        """See :meth:`RowSource.disk`: that of the first part."""
        return self._parts[0].disk

    def read_to(
        self, index: np.ndarray, out: np.ndarray, gap: int = 0
    ) -> None:
        """See :meth:`RowSource.read_to`.

        Raises:
            IndexError: If a row does not exist.
        """
        count = len(self)
        if len(index) and not 0 <= index.min() <= index.max() < count:
            raise IndexError(
                f"JoinedRows: 'index' must be in [0, {count}) (got "
                f'{index.min()} to {index.max()})'
            )
        number = np.searchsorted(self._ends, index, 'right')
        for i in np.unique(number):
            part, at = self._parts[i], np.flatnonzero(number == i)
            rows = np.empty((len(at), self.row_bytes), np.uint8)
            part.read_to(index[at] - self._ends[i] + len(part), rows, gap)
            out[at] = rows

    def decode(self, rows: Tensor) -> Tensor:
        """See :meth:`RowSource.decode`."""
        return self._parts[0].decode(rows)

    def cost(self, scratch: Path | None = None) -> DiskModel:
        """See :meth:`RowSource.cost`: that of the largest part."""
        return max(self._parts, key=len).cost(scratch)


def _rows_of(index: Any, name: str) -> np.ndarray:
    """Converts row indices to the readers' format."""
    array = index.cpu().numpy() if isinstance(index, Tensor) else index
    array = np.asarray(array)
    if array.size == 0 and not isinstance(index, (Tensor, np.ndarray)):
        array = array.astype(np.int64)
    if array.dtype.kind not in 'iu':
        raise TypeError(
            f"{name}: 'index' must hold integers (got {array.dtype})"
        )
    if array.ndim != 1:
        raise ValueError(
            f"{name}: 'index' must have one dimension (got shape "
            f'{list(array.shape)})'
        )
    return np.ascontiguousarray(array, np.int64)
