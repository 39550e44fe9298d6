"""What reads of a disk cost, and how many there are of some rows.

Row numbers come in; requests, bytes and seconds go out.
"""

import time
from dataclasses import dataclass

import numpy as np

from torch_gsample.storage.feature_file import FeatureFile
from torch_gsample.storage.row_reads import BLOCK

#: Bytes of the largest request, as in csrc/storage/read_rows.cpp.
_MOST = 512 << 10
#: Reads that calibrate a model.
_RANDOM, _SEQUENTIAL = 4_096, 256 << 20


@dataclass
class Reads:
    """Requests and their bytes."""

    requests: float = 0
    size: float = 0

    def __add__(self, other: 'Reads') -> 'Reads':
        return Reads(self.requests + other.requests, self.size + other.size)


@dataclass(frozen=True)
class DiskModel:
    r"""How long a disk takes for reads that are sent together.

    .. math::
        T = \mathrm{requests} \cdot a + \mathrm{bytes} / b

    Args:
        request_seconds (float): :math:`a`.
        bytes_per_second (float): :math:`b`.

    Example:
        >>> model = DiskModel(1e-5, 2e9)
        >>> round(model.seconds(Reads(1000, 4_000_000)), 6)
        0.012
        >>> model.gap
        4
    """

    request_seconds: float
    bytes_per_second: float

    def seconds(self, reads: Reads) -> float:
        """Returns the time of some reads."""
        return (
            reads.requests * self.request_seconds
            + reads.size / self.bytes_per_second
        )

    @property
    def gap(self) -> int:
        """Blocks that are read in less time than one more request takes."""
        return int(self.request_seconds * self.bytes_per_second / BLOCK)

    @classmethod
    def calibrate(cls, file: FeatureFile, seed: int = 0) -> 'DiskModel':
        """Measures a disk by random and by sequential reads of a file.

        Take a file that was opened with ``direct=True``, or the page cache is
        measured.

        Args:
            file (FeatureFile): The file; at most 256 MiB of it are read.
            seed (int, optional): Of the random reads.
        """
        few = np.empty(0, np.int64)
        file.read_bytes(few)  # what is made for the first read
        rng = np.random.default_rng(seed)
        count = max(min(_SEQUENTIAL // file.row_bytes, len(file)), 1)
        random = np.sort(rng.integers(0, len(file), _RANDOM))
        sequential = np.arange(count)
        rows, seconds = [], []
        for index in (random, sequential):
            reads = count_reads(np.unique(index), file.row_bytes)
            start = time.perf_counter()
            file.read_bytes(index)
            seconds.append(time.perf_counter() - start)
            rows.append([reads.requests, reads.size])
        # T = R a + B / b, twice.
        try:
            a, inverse = np.linalg.solve(rows, seconds)
        except np.linalg.LinAlgError:  # of a file of a few blocks
            a, inverse = 0.0, seconds[1] / rows[1][1]
        least = 1e-12  # of a small file in the page cache
        return cls(max(float(a), 1e-7), 1 / max(float(inverse), least))


def count_reads(rows: np.ndarray, row_bytes: int, gap: int = 0) -> Reads:
    """Returns the reads of some rows, as :class:`RowReader` makes them.

    Args:
        rows (numpy.ndarray): int64 ``[n]``, ascending.
        row_bytes (int): Bytes of a row.
        gap (int, optional): See :meth:`FeatureFile.read`.

    Example:
        >>> count_reads(np.array([0, 1, 2, 40]), 1024)
        Reads(requests=2, size=8192)
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
