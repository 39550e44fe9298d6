"""Copies what columns drew out of the samples of an epoch.

Positions of columns come in, their rows and edge ids go out, column by column.
"""

import ctypes

import numpy as np
import torch
from torch import Tensor

from torch_gsample.storage.crc32c import functions, pointer
from torch_gsample.storage.pooled import empty_vector
from torch_gsample.storage.spill import pieces_of
from torch_gsample.storage.spill_array import SpillArray

#: Columns that are copied before pages of files are given back.
_COLUMNS = 1 << 15
_BEHIND = 8  # items that are written behind the last one


def copy_columns(
    indptr: SpillArray, row: SpillArray, edge: SpillArray, place: np.ndarray
) -> tuple[Tensor, Tensor, Tensor]:
    """Copies columns; those of files on disk are checked, some at a time.

    Args:
        indptr (SpillArray): int64 ``[num_columns + 1]``, where columns start.
        row (SpillArray): ``[num_edges]``, int32 or int64.
        edge (SpillArray): ``[num_edges]``, int32 or int64.
        place (numpy.ndarray): int64 ``[n]``, which columns.

    Returns:
        Tuple[torch.Tensor, torch.Tensor, torch.Tensor]: Where each column
        starts, rows and ids of edges, int64.
    """
    arrays = indptr, row, edge
    on_disk = [array for array in arrays if array.is_on_disk]
    parts = list(pieces_of(len(place), _COLUMNS if on_disk else len(place)))
    starts, size = indptr.tensor.numpy(), ctypes.c_int64(len(row.tensor))
    offset = np.zeros(len(place) + 1, np.int64)
    for part in parts:
        at = place[part]
        indptr.check(at, at + 2)
        _check(
            functions().gsample_column_offsets(
                pointer(starts),
                pointer(at),
                ctypes.c_int64(len(at)),
                size,
                ctypes.c_int64(int(offset[part.start])),
                pointer(offset[part.start :]),
            )
        )
        _release(on_disk)
    total = int(offset[-1])
    rows, edges = (empty_vector(total + _BEHIND) for _ in range(2))
    for part in parts:
        at = place[part]
        indptr.check(at, at + 2)
        if on_disk:
            for array in (row, edge):
                array.check(starts[at], starts[at + 1])
        _check(
            functions().gsample_copy_columns(
                pointer(starts),
                pointer(at),
                ctypes.c_int64(len(at)),
                size,
                pointer(row.tensor.numpy()),
                ctypes.c_int64(row.tensor.itemsize),
                pointer(edge.tensor.numpy()),
                ctypes.c_int64(edge.tensor.itemsize),
                pointer(offset[part.start :]),
                ctypes.c_void_p(rows.data_ptr()),
                ctypes.c_void_p(edges.data_ptr()),
            )
        )
        _release(on_disk)
    return torch.from_numpy(offset), rows[:total], edges[:total]


def _check(malformed: int) -> None:
    assert malformed < 0, f'column {malformed} of an epoch is malformed'


def _release(arrays: list[SpillArray]) -> None:
    for array in arrays:
        array.release()
