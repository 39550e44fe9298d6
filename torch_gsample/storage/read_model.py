"""The cost of disk reads, and the number of requests for rows.

Row numbers come in; requests, bytes and seconds go out.
"""

import statistics
import time
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from torch_gsample.storage.copy_rows import copy_rows
from torch_gsample.storage.crc32c import BLOCK
from torch_gsample.storage.packed_rows import MOST_WAITING, PackedRows
from torch_gsample.storage.sorted_keys import SortedKeys, distinct

#: Bytes of the largest request, as in csrc/storage/read_rows.cpp.
_MOST = 512 << 10
#: Number of reads of a calibration.
_RANDOM, _SEQUENTIAL, _ROUNDS = 4_096, 64 << 20, 6
#: Ids per row in the measurement of lookups, as in a sample of a large graph.
_SPREAD = 100
_PIECE = 16 << 20  # bytes of one read
_SCANNED = 256 << 20
#: Total bytes written, for this many batches.
_WRITTEN, _LISTS = 128 << 20, 64


@dataclass
class Reads:
    """Requests, and bytes and rows that are moved.

    Args:
        requests (float): Requests for rows.
        size (float): Their bytes.
        written (float): Bytes written to a scratch file.
        scanned (float): Bytes read in large pieces.
        rows (float): Rows found and copied in memory.
    """

    requests: float = 0
    size: float = 0
    written: float = 0
    scanned: float = 0
    rows: float = 0

    def __add__(self, other: 'Reads') -> 'Reads':
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Reads(*(a + b for a, b in pairs))

    def __truediv__(self, count: float) -> 'Reads':
        return Reads(*(value / count for value in astuple(self)))


@dataclass(frozen=True)
class DiskModel:
    r"""The time of reads in flight together on a disk.

    .. math::
        T = \mathrm{requests} \cdot a + \mathrm{bytes} / b
            + \mathrm{scanned} / s + \mathrm{written} / w
            + \mathrm{rows} \cdot c

    Args:
        request_seconds (float): :math:`a`.
        bytes_per_second (float): :math:`b`.
        written_per_second (float, optional): :math:`w`, for large writes; half
            of :math:`b` if not given.
        scanned_per_second (float, optional): :math:`s`, for reads of large
            pieces; :math:`b` if not given.
        row_seconds (float, optional): :math:`c`, the processor's time to find
            and copy a row.

    Example:
        >>> model = DiskModel(1e-5, 2e9)
        >>> round(model.seconds(Reads(1000, 4_000_000)), 6)
        0.012
        >>> model.gap
        4
    """

    request_seconds: float
    bytes_per_second: float
    written_per_second: float | None = None
    scanned_per_second: float | None = None
    row_seconds: float = 0.0

    def seconds(self, reads: Reads) -> float:
        """Returns the predicted time of reads."""
        return (
            reads.requests * self.request_seconds
            + reads.size / self.bytes_per_second
            + reads.written
            / (self.written_per_second or self.bytes_per_second / 2)
            + reads.scanned
            / (self.scanned_per_second or self.bytes_per_second)
            + reads.rows * self.row_seconds
        )

    def explain(self) -> str:
        """Describes the model in a sentence."""
        text = (
            f'disk: {self.request_seconds * 1e6:.1f} us a request, '
            f'{self.bytes_per_second / 1e9:.2f} GB/s'
        )
        if self.scanned_per_second is not None:
            text += f', {self.scanned_per_second / 1e9:.2f} GB/s scanned'
        if self.written_per_second is not None:
            text += f', {self.written_per_second / 1e9:.2f} GB/s written'
        if self.row_seconds > 0:
            text += f', {self.row_seconds * 1e6:.2f} us a row'
        return text

    @property
    def gap(self) -> int:
        """The largest gap, in blocks, that costs less than a request."""
        return int(self.request_seconds * self.bytes_per_second / BLOCK)

    @classmethod
    def calibrate(
        cls, file: Any, seed: int = 0, scratch: str | Path | None = None
    ) -> 'DiskModel':
        """Measures a disk and the processor's cost of rows.

        Open the file with ``direct=True``; otherwise the page cache is
        measured.

        Args:
            file (FeatureFile): The file. Reads 64 MiB in order and random
                rows, six times in turn, and 256 MiB in large pieces.
            seed (int, optional): The seed of random reads.
            scratch (str or Path, optional): A folder; also measures writes of
                128 MiB to it.
        """
        writes = None if scratch is None else _write_rate(Path(scratch))
        if len(file) == 0:
            return cls(1e-5, 2e9, writes)
        width = file.row_bytes
        piece = max(_PIECE // width, 1)
        out = np.empty((piece, width), np.uint8)
        row_seconds = _row_seconds(out, np.random.default_rng(seed))
        count = min(_RANDOM, piece)
        random = [
            np.random.default_rng(seed + i).integers(0, len(file), count)
            for i in range(_ROUNDS)
        ]
        order = np.arange(max(min(_SEQUENTIAL // width, len(file)), 1))
        # In turns: a disk may be faster for less than a second.
        rounds = [
            [_read_seconds(file, rows, out) for rows in (order, drawn)]
            for drawn in random
        ][1:]  # the first ones check blocks
        seconds, spread = map(statistics.median, zip(*rounds, strict=True))
        size = count_reads(order, width).size
        inverse = max(seconds - len(order) * row_seconds, seconds / 4) / size
        # T = R a + B / b + n c; b includes the cost of requests of 512 KiB.
        reads = sum((count_reads(distinct(o), width) for o in random), Reads())
        reads = reads / _ROUNDS
        rest = spread - reads.size * inverse - count * row_seconds
        a = rest / max(reads.requests, 1)
        return cls(
            max(a, 1e-7),
            1 / max(inverse, 1e-12),
            writes,
            _scan_rate(file),
            row_seconds,
        )


def _read_seconds(file: Any, order: np.ndarray, out: np.ndarray) -> float:
    """Measures reads of rows, piece by piece."""
    start = time.perf_counter()
    for at in range(0, len(order), len(out)):
        part = order[at : at + len(out)]
        file.read_to(part, out[: len(part)])
    return time.perf_counter() - start


def _row_seconds(rows: np.ndarray, rng: np.random.Generator) -> float:
    """Measures finding and copying a row in memory.

    Elapsed time: on a busy machine, the processor's share is smaller.
    """
    keys, out = SortedKeys(np.arange(len(rows)) * _SPREAD), np.empty_like(rows)
    rows[:] = out[:] = 0  # no page faults
    index = rng.permutation(len(rows)) * _SPREAD
    start = time.perf_counter()
    for _ in range(_ROUNDS):
        at, _ = keys.find(index)
        copy_rows(rows, at, out, None)
    return (time.perf_counter() - start) / (len(rows) * _ROUNDS)


def _scan_rate(file: Any) -> float:
    """Measures reads of large pieces, in bytes a second."""
    start, done = time.perf_counter(), 0
    for _, rows in file.scan(2 * _PIECE):
        done += rows.size
        if done >= _SCANNED:
            break
    return done / (time.perf_counter() - start)


def _write_rate(folder: Path) -> float:
    """Measures packing and freeing of rows, in bytes a second."""
    ends = np.linspace(0, _WRITTEN // BLOCK, _LISTS + 1, dtype=np.int64)
    lists = np.concatenate([np.arange(n) for n in np.diff(ends)])
    # All lists need all rows.
    rows = np.zeros((int(np.diff(ends).max()), BLOCK), np.uint8)
    packed = PackedRows(folder, BLOCK, ends, True)
    try:
        start = time.perf_counter()
        packed.pack(lists, [(0, rows)], _LISTS * MOST_WAITING)
        for i in range(_LISTS):
            packed.free(i)
        return packed.nbytes / (time.perf_counter() - start)
    finally:
        packed.close()


def count_reads(rows: np.ndarray, row_bytes: int, gap: int = 0) -> Reads:
    """Returns the reads of :class:`RowReader` for some rows.

    Args:
        rows (numpy.ndarray): int64 ``[n]``, ascending.
        row_bytes (int): Bytes of a row.
        gap (int, optional): See :meth:`FeatureFile.read`.

    Example:
        >>> count_reads(np.array([0, 1, 2, 40]), 1024)
        Reads(requests=2, size=8192, written=0, scanned=0, rows=0)
    """
    if len(rows) == 0:
        return Reads()
    first = rows * row_bytes // BLOCK
    last = ((rows + 1) * row_bytes - 1) // BLOCK
    starts = np.flatnonzero(first[1:] > last[:-1] + 1 + gap) + 1
    begins = first[np.concatenate([[0], starts])]
    ends = last[np.concatenate([starts - 1, [len(rows) - 1]])] + 1
    sizes = (ends - begins) * BLOCK
    return Reads(int((-(-sizes // _MOST)).sum()), int(sizes.sum()))
