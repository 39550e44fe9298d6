"""Writes a feature file atomically."""

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor

from torch_gsample.memory import bytes_of
from torch_gsample.owned_folder import owned_folder
from torch_gsample.path_argument import path_argument
from torch_gsample.quantize import quantize_rows
from torch_gsample.storage.chunk_writer import sync
from torch_gsample.storage.crc32c import BLOCK, block_checksums, crc32c
from torch_gsample.storage.feature_format import (
    DTYPES,
    MAX_DIMS,
    FeatureMeta,
)
from torch_gsample.storage.feature_sources import (
    Piece,
    as_tensor,
    feature_pieces,
)
from torch_gsample.storage.new_file import NewFile

#: The minimum memory of a writer.
MIN_MEMORY = 1 << 20
#: Pieces, their quantized rows, rows of the incomplete block, blocks.
_COPIES = 8


def write_features(
    path: str | Path,
    data: Any,
    *,
    dtype: torch.dtype | None = None,
    columns: list[str] | None = None,
    memory_limit: int = 256 << 20,
) -> None:
    """Writes features to a file, which appears when it is complete.

    Args:
        path (str or Path): The file, which must not exist.
        data (Any): Rows: a tensor or array ``[num_rows, *]``; a pair of int8
            values and float32 scales, as
            :func:`~torch_gsample.quantize_rows` returns it; an Arrow table or
            reader of batches; the path(s) of ``.npy``, Parquet or Arrow files,
            which are concatenated; or an iterable of tensors, arrays or pairs.
            A table has one column of lists of one length, or several columns
            of numbers.
        dtype (torch.dtype, optional): float32, float16, bfloat16, or int8 with
            a scale for each row; that of ``data`` if not given. int64 rows are
            stored unchanged.
        columns (List[str], optional): The columns of tables; all if not
            given.
        memory_limit (int, optional): The maximum bytes to use in addition to
            ``data``, and to 4 bytes for each 4 KiB of the file.

    Raises:
        FileExistsError: If ``path`` exists.
        ImportError: If PyArrow is needed and not installed.
        OSError: If the disk is full, or a file cannot be read.
        TypeError: If the type or dtype of ``data`` is not supported.
        ValueError: If an argument is invalid; the message names the rule.
    """
    path = path_argument('FeatureFile.write', 'path', path)
    if dtype is not None and dtype not in DTYPES.values():
        raise ValueError(
            f"FeatureFile.write: 'dtype' must be one of "
            f'{[*DTYPES.values()]} (got {dtype})'
        )
    name = "FeatureFile.write: 'memory_limit'"
    memory_limit = bytes_of(memory_limit, name)
    if memory_limit < MIN_MEMORY:
        raise ValueError(
            f"FeatureFile.write: 'memory_limit' must be at least {MIN_MEMORY} "
            f'(got {memory_limit})'
        )
    pieces = feature_pieces(data, columns, memory_limit // _COPIES)
    with _new_file(path) as file:
        writer = FeatureWriter(file, dtype)
        for piece in pieces:
            writer.add(piece)
        writer.finish()


@contextlib.contextmanager
def _new_file(path: Path) -> Iterator[IO[bytes]]:
    """Creates a file that gets its name when it is complete.

    An error removes it. After a crash, the name does not exist, and the next
    writer in the folder removes the hidden remains. The second of two
    concurrent writers fails.

    Raises:
        FileExistsError: If ``path`` exists.
    """
    _check_free(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with owned_folder(path.parent, f'.{path.name}.') as folder:
        made = folder / path.name
        with NewFile(made) as file:
            yield file
            file.sync()
        give_name(made, path)


def give_name(made: Path, path: Path) -> None:
    """Renames a complete file.

    Raises:
        FileExistsError: If ``path`` exists.
    """
    try:
        os.link(made, path)  # unlike a rename, never replaces a file
    except FileExistsError:
        _check_free(path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP):
            raise
        _check_free(path)  # no links in this file system
        os.rename(made, path)
    sync(path.parent)


def _check_free(path: Path) -> None:
    if os.path.lexists(path):
        raise FileExistsError(
            f"FeatureFile.write: 'path' must not exist yet (got {path})"
        )


class FeatureWriter:
    """Writes rows in blocks, then their checksums, and the header last.

    Args:
        file (IO[bytes]): The file, empty or to be continued.
        dtype (torch.dtype, optional): The dtype of rows on disk.
        generation (int, optional): The generation of a continued file.
    """

    def __init__(
        self,
        file: IO[bytes],
        dtype: torch.dtype | None,
        generation: int | None = None,
    ):
        self._file, self._dtype = file, dtype
        fresh = generation is None
        if generation is None:
            generation = secrets.randbits(64)
        self.generation = generation
        self._shape: tuple[int, ...] | None = None
        self._rows = self._blocks = 0
        self._rest = np.empty(0, np.uint8)  # of the last block
        self._checksums: list[np.ndarray] = []
        if fresh:
            file.write(bytes(BLOCK))

    @property
    def size(self) -> int:
        """Bytes of rows so far."""
        return self._blocks * BLOCK + len(self._rest)

    def add(self, piece: Piece) -> None:
        """Adds rows.

        Raises:
            TypeError: If their dtype cannot be stored.
            ValueError: If their shape is not that of the rows before.
        """
        values = piece[0] if isinstance(piece, tuple) else piece
        if self._shape is None:
            self._begin(values)
        if values.shape[1:] != self._shape:
            raise ValueError(
                f'FeatureFile.write: rows must have the shape '
                f'{list(self._shape or ())} of the first one (got '
                f'{list(values.shape[1:])})'
            )
        rows = self._encode(piece)
        self._rows += len(rows)
        self._put(rows.reshape(-1))

    def _begin(self, values: Tensor) -> None:
        self._shape = tuple(values.shape[1:])
        if len(self._shape) > MAX_DIMS or 0 in self._shape:
            raise ValueError(
                f'FeatureFile.write: a row must have at least one element and '
                f'at most {MAX_DIMS} dimensions (got {list(self._shape)})'
            )
        self._dtype = self._dtype or values.dtype
        if self._dtype == torch.int64 != values.dtype:
            raise TypeError(
                "FeatureFile.write: 'dtype' must be torch.int64 only "
                'for rows of torch.int64 (got rows of '
                f'{values.dtype})'
            )
        if self._dtype not in DTYPES.values():
            raise TypeError(
                f"FeatureFile.write: 'dtype' must be given for rows of "
                f'{values.dtype}: one of {[*DTYPES.values()]} (got None)'
            )

    def _encode(self, piece: Piece) -> np.ndarray:
        """Returns the bytes of rows, uint8 ``[n, row_bytes]``."""
        if isinstance(piece, tuple):
            values, scale = piece
            if self._dtype != torch.int8:
                raise TypeError(
                    "FeatureFile.write: 'dtype' must be torch.int8 for values "
                    f'with scales (got {self._dtype})'
                )
        elif self._dtype == torch.int8:
            values, scale = quantize_rows(as_tensor(piece))
        else:
            return _bytes_of(self._narrowed(piece))
        return np.concatenate([_bytes_of(scale), _bytes_of(values)], 1)

    def _narrowed(self, rows: Tensor) -> Tensor:
        """Returns rows in the dtype of the file.

        Raises:
            ValueError: If a finite value would become infinite.
        """
        out = rows.to(self._dtype)
        if out.dtype != rows.dtype and out.is_floating_point():
            lost = out.isinf() & ~rows.isinf()
            if bool(lost.any()):
                i = int(lost.reshape(len(lost), -1).any(1).nonzero()[0])
                raise ValueError(
                    f'FeatureFile.write: values must be finite in '
                    f'{self._dtype} (got {float(rows[lost][0])} in row '
                    f'{self._rows + i})'
                )
        return out

    def _put(self, data: np.ndarray) -> None:
        if len(self._rest):
            need = min(BLOCK - len(self._rest), len(data))
            head, data = data[:need], data[need:]
            self._rest = np.concatenate([self._rest, head])
            if len(self._rest) == BLOCK:
                self._write(self._rest)
                self._rest = self._rest[:0]
        whole = len(data) // BLOCK * BLOCK
        if whole:
            self._write(data[:whole])
        if whole < len(data):
            self._rest = data[whole:].copy()

    def _write(self, blocks: np.ndarray) -> None:
        blocks = np.ascontiguousarray(blocks)
        found = block_checksums(blocks, self._blocks, self.generation)
        self._checksums.append(found)
        self._blocks += len(found)
        self._file.write(blocks.data)

    def finish(self) -> None:
        """Completes the file.

        Raises:
            ValueError: If no rows were added, so the shape is unknown.
        """
        if self._shape is None or self._dtype is None:
            raise ValueError(
                "FeatureFile.write: 'data' must have at least one piece (got "
                'none)'
            )
        if len(self._rest):
            self._write(np.pad(self._rest, (0, BLOCK - len(self._rest))))
        meta = FeatureMeta(
            self._dtype, self._rows, self._shape, self.generation
        )
        assert meta.num_blocks == self._blocks
        table = np.zeros(meta.table_bytes // 4, '<u4')
        if self._checksums:
            table[: self._blocks] = np.concatenate(self._checksums)
        meta.table_checksum = crc32c(table.view(np.uint8))
        self._file.write(table.data)
        self._file.seek(0)
        self._file.write(meta.pack())


def _bytes_of(rows: Tensor) -> np.ndarray:
    if rows.numel() == 0:
        return np.empty((len(rows), 0), np.uint8)
    flat = rows.contiguous().reshape(len(rows), -1)
    return flat.view(torch.uint8).numpy()
