"""Features on disk: rows of fixed width, read by index."""

import errno
import inspect
import math
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torch_gsample.options import check_known
from torch_gsample.path_argument import path_argument
from torch_gsample.storage.checksums import VERIFY, shared_zeros
from torch_gsample.storage.crc32c import BLOCK, block_checksums
from torch_gsample.storage.feature_format import (
    SCALE,
    FeatureMeta,
    broken,
    read_header,
    read_table,
)
from torch_gsample.storage.feature_write import write_features
from torch_gsample.storage.format import round_up
from torch_gsample.storage.read_model import DiskModel
from torch_gsample.storage.reading import (
    ENGINES,
    File,
    ReadAhead,
    file_identity,
)
from torch_gsample.storage.row_reads import RowReader
from torch_gsample.storage.row_source import RowSource

_PIECE = 4 << 20  # bytes verified at a time


class FeatureFile(RowSource):
    r"""Rows of features in a file, read on demand.

    Reads are sorted and merged to few requests, all in flight at once. The
    4-KiB blocks of the rows are checked against their CRC-32C. An int8 row
    :math:`q_i` with its scale :math:`s_i` is read as float32 :math:`s_i q_i`.

    It may be forked and pickled: each process opens the file itself.

    Args:
        path (str or Path): A file written by :meth:`write`.
        verify (str, optional): When blocks are checked: ``'once'``, on the
            first read by this process or its forks, and again if the file
            changes; ``'always'``, or ``'never'``. The header is always
            checked. Except with ``'never'``, this takes 4 bytes of memory (5
            for ``'once'``) for each block.
        direct (bool, optional): Whether to read by direct I/O, bypassing the
            page cache, if the file system supports it.
        engine (str, optional): ``'io_uring'``, ``'threads'``, or ``'auto'``:
            the first one that works.

    Raises:
        OSError: If the file is missing or cannot be read.
        ValueError: If the file breaks a rule of the format, or an argument is
            invalid.

    Example:
        >>> import tempfile
        >>> x = torch.arange(12.0).view(4, 3)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = FeatureFile.write(f'{folder}/x.gsf', x)
        ...     file.shape, file[torch.tensor([2, 0])]
        (torch.Size([4, 3]), tensor([[6., 7., 8.],
                [0., 1., 2.]]))
    """

    def __init__(
        self,
        path: str | Path,
        *,
        verify: str = 'once',
        direct: bool = False,
        engine: str = 'auto',
    ):
        self.path = path_argument('FeatureFile', 'path', path)
        for name, value, known in (
            ('verify', verify, VERIFY),
            ('engine', engine, ENGINES),
        ):
            if value not in known:
                raise ValueError(
                    f'FeatureFile: {name!r} must be one of {known} (got '
                    f'{value!r})'
                )
        self._when, self._direct, self._engine = verify, direct, engine
        try:
            self._file = File(self.path, direct)
            facts = os.fstat(self._file.fd)
            if stat.S_ISDIR(facts.st_mode):
                raise IsADirectoryError(errno.EISDIR, '', path)
        except (FileNotFoundError, IsADirectoryError) as error:
            why = os.strerror(error.errno or 0)
            text = f"FeatureFile: 'path' must be a feature file ({why})"
            raise type(error)(error.errno, text, str(path)) from None
        self.meta: FeatureMeta = read_header(self._file, facts.st_size)
        self._identity = file_identity(facts)
        self.shape = torch.Size([self.meta.num_rows, *self.meta.shape])
        stored = self.meta.dtype
        self.dtype = torch.float32 if stored == torch.int8 else stored
        self.row_bytes = self.meta.row_bytes
        self._table = self._checked = None
        if verify != 'never':
            self._table = read_table(self._file, self.meta)
        if verify == 'once':
            self._checked = shared_zeros(self.meta.num_blocks)
        self._readers: dict[int, RowReader] = {}
        self._scanned = 0  # bytes

    @classmethod
    def write(
        cls, path: str | Path, data: Any, **kwargs: Any
    ) -> 'FeatureFile':
        """Writes features; see :func:`write_features` for its arguments."""
        known = list(inspect.signature(write_features).parameters)
        check_known('FeatureFile.write', kwargs, known)
        write_features(path, data, **kwargs)
        return cls(path)

    def read_to(
        self, index: np.ndarray, out: np.ndarray, gap: int = 0
    ) -> None:
        """See :meth:`RowSource.read_to`.

        Raises:
            IndexError: If a row does not exist.
            OSError: If the file cannot be read; it names file and offset.
            ValueError: If a block is damaged; it names file and offset.
        """
        self._reader().read(index, out, gap)

    def decode(self, rows: Tensor) -> Tensor:
        """See :meth:`RowSource.decode`."""
        shape = len(rows), *self.meta.shape
        if self.meta.dtype != torch.int8:
            return rows.view(self.meta.dtype).view(shape)
        # A slice of one row counts as contiguous, with the stride of a row.
        scale = rows[:, :SCALE].reshape(-1).view(torch.float32).view(-1, 1)
        return rows[:, SCALE:].view(torch.int8).float().mul_(scale).view(shape)

    def verify(self) -> None:
        """Reads the whole file, and checks every byte of it.

        Raises:
            OSError: If the file cannot be read.
            ValueError: If it is damaged; it names the file and the offset.
        """
        file = type(self)(self.path, verify='always', direct=self._direct)
        for _ in file.scan(_PIECE):
            pass

    @property
    def disk(self) -> Any:
        """The source of reads: the device, and whether by direct I/O."""
        return os.fstat(self._file.fd).st_dev, self._file.direct

    def cost(self, scratch: Path | None = None) -> DiskModel:
        """See :meth:`RowSource.cost`; measured, by reads and writes."""
        return DiskModel.calibrate(self, scratch=scratch)

    def scan(self, memory: int) -> Iterator[tuple[int, np.ndarray]]:
        """See :meth:`RowSource.scan`; a thread reads the next piece.

        Raises:
            OSError: If the file cannot be read; it names file and offset.
            ValueError: If a block is damaged; it names file and offset.
        """
        meta, width = self.meta, self.meta.row_bytes
        # Pieces start at block boundaries if they have that many rows.
        whole, count = BLOCK // math.gcd(width, BLOCK), memory // 2 // width
        count = max(count // whole * whole or count, 1)
        starts = range(0, meta.num_rows, count)
        ranges = []
        for first in starts:
            last = min(first + count, meta.num_rows)
            begin = first * width // BLOCK * BLOCK
            end = round_up(last * width, BLOCK)
            ranges.append((meta.data_at + begin, end - begin))
        with ReadAhead(self._file, ranges) as pieces:
            for first, (at, _), data in zip(
                starts, ranges, pieces, strict=True
            ):
                self._check_blocks((at - meta.data_at) // BLOCK, data)
                self._scanned += data.size
                begin = first * width % BLOCK
                rows = min(count, meta.num_rows - first)
                part = data[begin : begin + rows * width]
                yield first, part.reshape(rows, width)

    def _check_blocks(self, first: int, data: np.ndarray) -> None:
        """Checks consecutive blocks, whose first one is ``first``."""
        self._forget_if_changed()
        if self._table is None:
            return
        part = slice(first, first + data.size // BLOCK)
        if self._checked is not None and self._checked[part].all():
            return
        found = block_checksums(data, first, self.meta.generation)
        wrong = found != self._table[part]
        if wrong.any():
            block = first + int(wrong.argmax())
            broken(
                self.path,
                self.meta.data_at + block * BLOCK,
                f'the checksum of block {block} ({BLOCK} bytes) is wrong',
            )
        if self._checked is not None:
            self._checked[part] = True

    @property
    def memory(self) -> int:
        """Memory in bytes for checksums and blocks in flight."""
        arrays = self._table, self._checked, self._reader().staging
        return sum(a.nbytes for a in arrays if a is not None)

    def stats(self) -> dict[str, Any]:
        """Returns read counters of this process.

        Returns:
            Dict[str, Any]: ``rows``, ``requests``, ``bytes_read`` and the
            ``engine``.
        """
        reader = self._reader()
        return {
            **reader.stats,
            'bytes_read': reader.stats['bytes_read'] + self._scanned,
            'engine': reader.engine,
        }

    def _reader(self) -> RowReader:
        """Returns the reader of this process, for the file as it is now.

        A forked process creates its own: it must not share locks or reads in
        flight.
        """
        self._forget_if_changed()
        process = os.getpid()
        reader = self._readers.get(process)
        if reader is None:
            reader = RowReader(
                self._file,
                self.meta.data_at,
                self.meta.row_bytes,
                self.meta.num_rows,
                self.meta.generation,
                self._table,
                self._checked,
                self._engine,
            )
            self._readers = {process: reader}
        return reader

    def _forget_if_changed(self) -> None:
        """Marks the blocks of a changed file as unchecked."""
        now = file_identity(os.fstat(self._file.fd))
        if now != self._identity:
            self._identity = now
            if self._checked is not None:
                self._checked[:] = False

    def __repr__(self) -> str:
        return (
            f'{type(self).__name__}({str(self.path)!r}, '
            f'shape={list(self.shape)}, dtype={self.meta.dtype})'
        )

    def __reduce__(self) -> Any:
        facts = self._when, self._direct, self._engine, self.meta.generation
        return _reopen, (self.path, *facts)


def _reopen(
    path: Path, verify: str, direct: bool, engine: str, generation: int
) -> FeatureFile:
    """Opens a file in another process.

    Raises:
        ValueError: If the path now names another file.
    """
    file = FeatureFile(path, verify=verify, direct=direct, engine=engine)
    if file.meta.generation != generation:
        broken(path, 0, 'it is another file than the one that was pickled')
    return file
