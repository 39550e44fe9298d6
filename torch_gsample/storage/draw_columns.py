"""Draws at columns of a relation on disk, of which the bounds are known."""

import ctypes
from typing import Any

import torch
from torch import Tensor

from torch_gsample.storage.crc32c import functions
from torch_gsample.storage.hops import Frontier
from torch_gsample.storage.pooled import empty_vector


class _Draw(ctypes.Structure):
    """A draw at columns, as C functions receive it."""

    _fields_ = [
        ('node', ctypes.c_void_p),
        ('root', ctypes.c_void_p),
        ('start', ctypes.c_void_p),
        ('indptr', ctypes.c_void_p),
        ('cum_weight', ctypes.c_void_p),
        ('edge_time', ctypes.c_void_p),
        ('column_time', ctypes.c_void_p),
        ('n', ctypes.c_int64),
        ('k', ctypes.c_int64),
        ('key', ctypes.c_void_p),
        ('call_id', ctypes.c_int64),
        ('relation', ctypes.c_int64),
        ('replace', ctypes.c_int64),
        ('last', ctypes.c_int64),
        ('has_window', ctypes.c_int64),
        ('window', ctypes.c_int64),
        ('threads', ctypes.c_int64),
    ]


def draw_columns(
    start: Tensor,
    indptr: Tensor,
    frontier: Frontier,
    fanout: int,
    hop: int,
    relation: int,
    options: dict[str, Any],
    cum_weight: Tensor | None = None,
    edge_time: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Draws at columns as :func:`torch_gsample.ops.sample_columns`.

    Without the wrapper, which takes longer than the draws of a small batch.

    Args:
        start (torch.Tensor): int64 ``[n]``, position of each column.
        indptr (torch.Tensor): int64 ``[n + 1]``, the running total of their
            lengths.
        frontier (Frontier): The nodes of the columns.
        fanout (int): Edges per column.
        hop (int): The index of the hop.
        relation (int): The index of the relation.
        options (Dict[str, Any]): Options of the operators.
        cum_weight (torch.Tensor, optional): The cumulated weights of all
            edges, column by column.
        edge_time (torch.Tensor, optional): Their times.

    Returns:
        Tuple[torch.Tensor, torch.Tensor]: int64 ``indptr`` ``[n + 1]`` and
        positions.

    Raises:
        KeyboardInterrupt: On Ctrl-C.
        MemoryError: If there is not enough memory.
    """
    n, most = len(start), int(indptr[-1])
    replace, window = bool(options['replace']), options['time_window']
    if fanout >= 0:
        most = n * fanout if replace else min(n * fanout, most)
    time = None if edge_time is None else frontier.time
    columns = frontier.node, frontier.root, start, indptr, cum_weight
    tensors = [
        None if value is None else value.contiguous()
        for value in columns + (edge_time, time)
    ]
    draw = _Draw(
        *(None if value is None else value.data_ptr() for value in tensors),
        n,
        fanout,
        options['key'].data_ptr(),
        hop,
        relation,
        replace,
        options['temporal_strategy'] == 'last',
        window is not None,
        window or 0,
        options['num_threads'] or torch.get_num_threads(),
    )
    out, position = empty_vector(n + 1), empty_vector(most)
    count = functions().gsample_draw_columns(
        ctypes.byref(draw),
        ctypes.c_int64(most),
        ctypes.c_void_p(out.data_ptr()),
        ctypes.c_void_p(position.data_ptr()),
    )
    if count == -2:
        raise KeyboardInterrupt
    if count == -3:
        raise MemoryError(f'NeighborSampler: not enough memory for {n} draws')
    assert count >= 0, 'lengths of columns are not those of a relation'
    return out, position[:count]
