"""The rows that a layer returns, in a file that a killed process left.

Rows come in, in order; a feature file goes out. Every commit says in a journal
how many rows are on disk, so that another process goes on after them.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_gsample.storage.crc32c import BLOCK, crc32c
from torch_gsample.storage.feature_file import FeatureFile
from torch_gsample.storage.feature_format import DTYPES, broken
from torch_gsample.storage.feature_write import FeatureWriter
from torch_gsample.storage.inference.journal import Journal
from torch_gsample.storage.inference.rows import FileRows
from torch_gsample.storage.new_file import NewFile, naming, write_at
from torch_gsample.storage.reading import File

_PIECE = 4 << 20  # bytes that are read at a time
_NAMES = {str(dtype): dtype for dtype in (*DTYPES.values(), torch.float64)}


class _Writer(FeatureWriter):
    """A writer that knows the checksum of its rows, and can go on."""

    crc = 0

    def _put(self, data: np.ndarray) -> None:
        self.crc = crc32c(np.ascontiguousarray(data), self.crc)
        super()._put(data)

    def sync(self) -> None:
        """Puts all rows on disk, the beginning of a block, too."""
        fd, path = self._file.fileno(), self._file.name
        write_at(fd, self._rest, BLOCK * (1 + self._blocks), path)
        with naming(path):
            os.fdatasync(fd)

    def replay(
        self, shape: tuple[int, ...], rows: int, data: Iterator[np.ndarray]
    ) -> None:
        """Goes on after rows that are on disk.

        Args:
            shape (Tuple[int, ...]): The shape of a row.
            rows (int): Number of rows.
            data (Iterator[numpy.ndarray]): Their bytes.
        """
        self._shape, self._rows = shape, rows
        file = self._file
        with open(os.devnull, 'wb') as self._file:
            for piece in data:
                self._put(piece)
        self._file = file
        file.seek(BLOCK * (1 + self._blocks))


class LayerFile:
    """The file of one layer and type.

    Args:
        folder (Path): The work folder.
        name (str): Its name there.
        journal (Journal): The journal of the folder.
        dtype (torch.dtype, optional): The dtype on disk; that of rows if not
            given.

    Raises:
        OSError: If a file cannot be read.
        ValueError: If what another process left is damaged.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        journal: Journal,
        dtype: torch.dtype | None = None,
    ):
        self.path, self._name, self._journal = folder / name, name, journal
        self._dtype = dtype
        self._writer: _Writer | None = None
        self._file: Any = None
        facts = journal.facts.get(name, {})
        #: Rows that are on disk, and whether these are all.
        self.rows, self.whole = facts.get('rows', 0), 'whole' in facts
        #: The first row that this process adds.
        self.begun_at = self.rows
        #: Whether the layer returns no rows of the type.
        self.absent = facts.get('absent', False)
        if self.rows and not self.whole:
            self._go_on(facts)

    def _go_on(self, facts: dict[str, Any]) -> None:
        stored = _NAMES[facts['stored']]
        size = facts['size']
        have = os.stat(self.path).st_size if self.path.exists() else 0
        if have < BLOCK + size:
            broken(
                self.path,
                have,
                f'its size must be at least {BLOCK + size} (got {have}); '
                "'restart=True' computes it again",
            )
        self._file = NewFile(self.path, 'r+b')
        writer = _Writer(self._file, stored, facts['generation'])
        source = File(self.path)

        def pieces() -> Iterator[np.ndarray]:
            for at in range(0, size, _PIECE):
                data = np.empty(min(_PIECE, size - at), np.uint8)
                source.read(BLOCK + at, data)
                yield data

        writer.replay(tuple(facts['shape']), self.rows, pieces())
        if writer.crc != facts['crc']:
            broken(
                self.path,
                BLOCK,
                f'the checksum of its first {size} bytes of rows is wrong; '
                "'restart=True' computes them again",
            )
        self._file.truncate(BLOCK + size)
        self._writer = writer

    def add(self, rows: Tensor) -> None:
        """Adds rows.

        Raises:
            OSError: If the disk is full; it names the file and the offset.
        """
        if self._writer is None:
            self._begin(rows)
        assert self._writer is not None
        self._writer.add(_storable(rows, self._dtype))
        self.rows += len(rows)

    def _begin(self, rows: Tensor) -> None:
        if rows.dim() < 1 or rows.shape[1:].numel() == 0:
            raise ValueError(
                f'infer: a layer must return rows of at least one element '
                f'(got shape {list(rows.shape)})'
            )
        self._file = NewFile(self.path)
        self._writer = _Writer(self._file, self._dtype)
        stored = _storable(rows[:1], self._dtype)
        self._journal.add(
            self._name,
            generation=self._writer.generation,
            stored=str(self._dtype or stored.dtype),
            shape=list(stored.shape[1:]),
            dtype=str(self._dtype or rows.dtype),
        )

    def commit(self) -> None:
        """Makes what was added survive a kill.

        Raises:
            OSError: If the disk is full; it names the file and the offset.
        """
        writer = self._writer
        assert writer is not None
        writer.sync()
        self._journal.add(
            self._name, rows=self.rows, crc=writer.crc, size=writer.size
        )

    def finish(self) -> None:
        """Completes the file.

        Raises:
            OSError: If the disk is full; it names the file and the offset.
        """
        assert self._writer is not None
        self._writer.finish()
        self._file.sync()
        self.close()
        self._journal.add(self._name, whole=True)
        self.whole = True

    def leave_out(self) -> None:
        """Notes that the layer returns no rows of this type."""
        self._journal.add(self._name, absent=True, whole=True)
        self.absent = self.whole = True

    def open(self, direct: bool = False) -> FileRows:
        """Opens the rows of a complete file.

        Raises:
            OSError: If it cannot be read.
            ValueError: If it is damaged or another file.
        """
        facts = self._journal.facts[self._name]
        file = FeatureFile(self.path, direct=direct)
        if file.meta.generation != facts['generation']:
            broken(
                self.path,
                0,
                'it is the file of another layer or type of nodes; '
                "'restart=True' computes it again",
            )
        dtype = _NAMES[facts['dtype']]
        wide = dtype if dtype == torch.float64 else None
        return FileRows(file, wide)

    def close(self) -> None:
        """Closes the file, as it is."""
        if self._writer is not None:
            self._file.close()
        self._writer = None


def _storable(rows: Tensor, dtype: torch.dtype | None) -> Tensor:
    """Returns rows as files have them: float64 as pairs of float32."""
    rows = rows.contiguous()
    if dtype is None and rows.dtype == torch.float64:
        return rows.view(torch.float32)
    return rows
