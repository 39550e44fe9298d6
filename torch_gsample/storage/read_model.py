"""The cost of disk reads, and the number of requests for rows.

Row numbers come in; requests, bytes and seconds go out.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from torch_gsample.storage.crc32c import BLOCK
from torch_gsample.storage.reading import page_aligned
from torch_gsample.storage.scratch_file import ScratchFile

#: Bytes of the largest request, as in csrc/storage/read_rows.cpp.
_MOST = 512 << 10
#: Number of reads of a calibration.
_RANDOM, _SEQUENTIAL, _ROUNDS = 4_096, 128 << 20, 2
_PIECE = 16 << 20  # bytes of one read
#: Total bytes written, bytes of one write, writes in flight.
_WRITTEN, _WRITE, _WRITERS = 64 << 20, 256 << 10, 8


@dataclass
class Reads:
    """Requests, their bytes, and bytes written for them."""

    requests: float = 0
    size: float = 0
    written: float = 0

    def __add__(self, other: 'Reads') -> 'Reads':
        return Reads(
            self.requests + other.requests,
            self.size + other.size,
            self.written + other.written,
        )

    def __truediv__(self, count: float) -> 'Reads':
        return Reads(
            self.requests / count, self.size / count, self.written / count
        )


@dataclass(frozen=True)
class DiskModel:
    r"""The time of reads in flight together on a disk.

    .. math::
        T = \mathrm{requests} \cdot a + \mathrm{bytes} / b
            + \mathrm{written} / w

    Args:
        request_seconds (float): :math:`a`.
        bytes_per_second (float): :math:`b`.
        written_per_second (float, optional): :math:`w`, for large writes; half
            of :math:`b` if not given.

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

    def seconds(self, reads: Reads) -> float:
        """Returns the predicted time of reads."""
        return (
            reads.requests * self.request_seconds
            + reads.size / self.bytes_per_second
            + reads.written
            / (self.written_per_second or self.bytes_per_second / 2)
        )

    def explain(self) -> str:
        """Describes the model in a sentence."""
        text = (
            f'disk: {self.request_seconds * 1e6:.1f} us a request, '
            f'{self.bytes_per_second / 1e9:.2f} GB/s'
        )
        if self.written_per_second is None:
            return text
        return text + f', {self.written_per_second / 1e9:.2f} GB/s written'

    @property
    def gap(self) -> int:
        """The largest gap, in blocks, that costs less than a request."""
        return int(self.request_seconds * self.bytes_per_second / BLOCK)

    @classmethod
    def calibrate(
        cls, file: Any, seed: int = 0, scratch: str | Path | None = None
    ) -> 'DiskModel':
        """Measures a disk by random and by sequential reads of a file.

        Open the file with ``direct=True``; otherwise the page cache is
        measured.

        Args:
            file (FeatureFile): The file; 128 MiB of it are read, twice.
            seed (int, optional): The seed of random reads.
            scratch (str or Path, optional): A folder; also measures writes of
                64 MiB to it.
        """
        writes = None if scratch is None else _write_rate(Path(scratch))
        if len(file) == 0:
            return cls(1e-5, 2e9, writes)
        rng = np.random.default_rng(seed)
        piece = max(_PIECE // file.row_bytes, 1)
        count = min(_SEQUENTIAL // file.row_bytes, len(file))
        random = np.sort(rng.integers(0, len(file), min(_RANDOM, piece)))
        sequential = np.arange(max(count, 1))
        out = np.empty((piece, file.row_bytes), np.uint8)
        reads, seconds = [], []
        for index in (sequential, random):
            reads.append(count_reads(np.unique(index), file.row_bytes))
            times = []
            for _ in range(_ROUNDS):
                start = time.perf_counter()
                for at in range(0, len(index), piece):
                    part = index[at : at + piece]
                    file.read_to(part, out[: len(part)])
                times.append(time.perf_counter() - start)
            seconds.append(min(times))
        # T = R a + B / b; b includes the cost of requests of 512 KiB.
        inverse = seconds[0] / max(reads[0].size, 1)
        rest = seconds[1] - reads[1].size * inverse
        a = rest / max(reads[1].requests, 1)
        return cls(max(a, 1e-7), 1 / max(inverse, 1e-12), writes)


def _write_rate(folder: Path) -> float:
    """Measures the rate of large writes in flight, in bytes a second."""
    data, file = page_aligned(_WRITE), ScratchFile(folder, direct=True)
    try:
        file.reserve(_WRITTEN)
        start = time.perf_counter()
        with ThreadPoolExecutor(_WRITERS) as pool:
            offsets = range(0, _WRITTEN, _WRITE)
            list(pool.map(lambda at: file.write(at, data), offsets))
        return _WRITTEN / (time.perf_counter() - start)
    finally:
        file.close()


def count_reads(rows: np.ndarray, row_bytes: int, gap: int = 0) -> Reads:
    """Returns the reads of :class:`RowReader` for some rows.

    Args:
        rows (numpy.ndarray): int64 ``[n]``, ascending.
        row_bytes (int): Bytes of a row.
        gap (int, optional): See :meth:`FeatureFile.read`.

    Example:
        >>> count_reads(np.array([0, 1, 2, 40]), 1024)
        Reads(requests=2, size=8192, written=0)
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
