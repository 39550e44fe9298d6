"""Copies rows of fixed width between positions of two arrays."""

import ctypes

import numpy as np

from torch_gsample.storage.crc32c import functions, pointer


def copy_rows(
    data: np.ndarray,
    at: np.ndarray | None,
    out: np.ndarray,
    to: np.ndarray | None,
) -> None:
    """Copies rows: ``out[to] = data[at]``.

    Args:
        data (numpy.ndarray): uint8 ``[num_rows, row_bytes]``, contiguous.
        at (numpy.ndarray, optional): int64 ``[n]``; by default, all rows.
        out (numpy.ndarray): uint8 ``[num_out, row_bytes]``, contiguous.
        to (numpy.ndarray, optional): int64 ``[n]``; by default, the first
            ``n`` rows.
    """
    assert data.shape[1] == out.shape[1]
    assert data.flags.c_contiguous
    assert out.flags.c_contiguous
    count = len(data) if at is None else len(at)
    for index in (at, to):
        if index is not None:
            assert index.dtype == np.int64
            assert index.flags.c_contiguous
            assert len(index) == count
    functions().gsample_copy_rows(
        pointer(data),
        pointer(at),
        pointer(out),
        pointer(to),
        ctypes.c_int64(count),
        ctypes.c_int64(data.shape[1]),
    )
