"""The format of feature files: a header, rows in blocks, their checksums.

Bytes of a file come in, a checked description goes out. The specification is
``docs/storage_format.md``. Files are not trusted: a number is compared with
the file size before anything of its size is allocated.
"""

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
import torch

from torch_gsample.storage.crc32c import BLOCK, crc32c
from torch_gsample.storage.format import MAX_COUNT, malformed, round_up
from torch_gsample.storage.reading import File, page_aligned

MAGIC = b'gsFEATUR'
VERSION = 1
#: Bytes of a scale in front of an int8 row.
SCALE = 4
MAX_DIMS = 8

#: The dtypes of rows, by their codes.
DTYPES = {
    1: torch.float32,
    2: torch.float16,
    3: torch.bfloat16,
    4: torch.int8,
    5: torch.int64,  # unconverted: category indices, times
}
_CODES = {dtype: code for code, dtype in DTYPES.items()}

#: magic, version, dtype, number of rows, bytes of a row, number of blocks,
#: generation, checksum of the table, number of dimensions of a row, the
#: dimensions; then zeros, and the checksum of the header.
_HEADER = struct.Struct(f'<8s2I3qQ2I{MAX_DIMS}q')
_CHECKSUM = struct.Struct('<I')
#: Offset of the checksum of the header.
CHECKSUM_AT = BLOCK - _CHECKSUM.size


@dataclass
class FeatureMeta:
    """The layout of a feature file.

    Args:
        dtype (torch.dtype): The dtype of rows on disk.
        num_rows (int): Number of rows.
        shape (Tuple[int, ...]): The shape of a row.
        generation (int): A random 64-bit number of this file.
        table_checksum (int): The CRC-32C of the table of checksums.
    """

    dtype: torch.dtype
    num_rows: int
    shape: tuple[int, ...]
    generation: int
    table_checksum: int = 0

    @property
    def row_bytes(self) -> int:
        """Bytes of a row, with its scale."""
        scale = SCALE if self.dtype == torch.int8 else 0
        return math.prod(self.shape) * self.dtype.itemsize + scale

    @property
    def num_blocks(self) -> int:
        """Number of blocks of rows."""
        return -(-self.num_rows * self.row_bytes // BLOCK)

    @property
    def data_at(self) -> int:
        """Offset of the first row."""
        return BLOCK

    @property
    def table_at(self) -> int:
        """Offset of the table of checksums, the end of the file."""
        return self.data_at + self.num_blocks * BLOCK

    @property
    def table_bytes(self) -> int:
        """Size of the table, with its padding."""
        return int(round_up(4 * self.num_blocks, BLOCK))

    @property
    def file_size(self) -> int:
        """Size of the file."""
        return self.table_at + self.table_bytes

    def pack(self) -> bytes:
        """Returns the header."""
        dims = [*self.shape, *[0] * (MAX_DIMS - len(self.shape))]
        out = _HEADER.pack(
            MAGIC,
            VERSION,
            _CODES[self.dtype],
            self.num_rows,
            self.row_bytes,
            self.num_blocks,
            self.generation,
            self.table_checksum,
            len(self.shape),
            *dims,
        ).ljust(CHECKSUM_AT, b'\0')
        return out + _CHECKSUM.pack(crc32c(out))


def broken(path: Path, offset: int, rule: str) -> NoReturn:
    """Raises the error of a feature file that breaks a rule.

    Raises:
        ValueError: Always; it names the file and the offset in it.
    """
    malformed(path, offset, rule, 'FeatureFile')


def read_header(file: File, size: int) -> FeatureMeta:
    """Reads and checks the header of a file.

    Args:
        file (File): The file.
        size (int): Its size in bytes.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it breaks a rule of the format.
    """
    path = file.path
    if size < BLOCK:
        broken(path, size, f'it must have a header of {BLOCK} bytes')
    buffer = page_aligned(BLOCK)
    file.read(0, buffer)
    header = buffer.tobytes()
    fields = _HEADER.unpack_from(header)
    magic, version, code, rows, row_bytes, blocks, generation = fields[:7]
    table_checksum, dims, *shape = fields[7:]
    if magic != MAGIC:
        broken(path, 0, f'it must begin with {MAGIC!r} (got {magic!r})')
    if version != VERSION:
        broken(path, 8, f'its version must be {VERSION} (got {version})')
    (checksum,) = _CHECKSUM.unpack_from(header, CHECKSUM_AT)
    if crc32c(header[:CHECKSUM_AT]) != checksum:
        broken(path, CHECKSUM_AT, 'the checksum of the header is wrong')
    if code not in DTYPES:
        broken(path, 12, f'its dtype must be one of {[*DTYPES]} (got {code})')
    if not 0 <= rows < MAX_COUNT:
        broken(path, 16, f'its rows must be in [0, 2^48) (got {rows})')
    if dims > MAX_DIMS or not all(0 < d < MAX_COUNT for d in shape[:dims]):
        broken(
            path,
            52,
            f'a row must have at most {MAX_DIMS} dimensions, each in '
            f'[1, 2^48) (got {shape[:dims]})',
        )
    meta = FeatureMeta(
        DTYPES[code], rows, tuple(shape[:dims]), generation, table_checksum
    )
    want = meta.row_bytes, meta.num_blocks
    if (row_bytes, blocks) != want:
        broken(
            path,
            24,
            f'bytes of a row and blocks must be {want} (got '
            f'{(row_bytes, blocks)})',
        )
    if size != meta.file_size:
        broken(
            path,
            min(size, meta.file_size),
            f'its size must be {meta.file_size} (got {size})',
        )
    return meta


def read_table(file: File, meta: FeatureMeta) -> np.ndarray:
    """Reads the checksums of blocks into memory shared with forks.

    Returns:
        numpy.ndarray: uint32 ``[num_blocks]``.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If the table is damaged.
    """
    table = page_aligned(meta.table_bytes)
    file.read(meta.table_at, table)
    if crc32c(table) != meta.table_checksum:
        broken(
            file.path,
            meta.table_at,
            f'the checksum of the table of {meta.num_blocks} checksums is '
            'wrong',
        )
    return table.view('<u4')[: meta.num_blocks]
