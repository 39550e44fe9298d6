"""The last edges of columns before a time, as padded rows."""

import torch
from torch import Tensor

from torch_gsample.ops import _check

_INT64_MIN = torch.iinfo(torch.int64).min


def last_neighbors(
    indptr: Tensor,
    indices: Tensor,
    edge_time: Tensor,
    cols: Tensor,
    until: Tensor,
    k: int,
    *,
    edge_id: Tensor | None = None,
    time_window: int | None = None,
    closed_start: bool = True,
    closed_end: bool = False,
    ascending: bool = False,
    return_edge: bool = True,
    num_threads: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the last ``k`` edges of each column before its time.

    The edges of column ``cols[i]`` in the interval from ``until[i] -
    time_window`` to ``until[i]`` fill slots ``0`` to ``k - 1`` of row ``i``,
    the latest first.

    Args:
        indptr (torch.Tensor): int32 or int64 ``[num_cols + 1]``.
        indices (torch.Tensor): int32 or int64 ``[num_edges]``.
        edge_time (torch.Tensor): int64 ``[num_edges]``, ascending in each
            column.
        cols (torch.Tensor): int32 or int64 ``[n]``, the columns; -1 is a
            column without edges.
        until (torch.Tensor): int64 ``[n]``, the end of each interval.
        k (int): Number of slots.
        edge_id (torch.Tensor, optional): int32 or int64 ``[num_edges]``, the
            id of each edge; default: its position.
        time_window (int, optional): Width of the intervals; default:
            unlimited.
        closed_start (bool, optional): Whether the start of an interval belongs
            to it.
        closed_end (bool, optional): Whether the end belongs to it.
        ascending (bool, optional): Whether the latest edge comes last, in slot
            ``k - 1``, and empty slots come first.
        return_edge (bool, optional): Whether to return ids of edges.
        num_threads (int, optional): Maximum number of threads; 0 for torch's
            number of threads.

    Returns:
        Tuple[torch.Tensor, torch.Tensor, torch.Tensor]: ``[n, k]`` neighbours
        in the dtype of ``indices``, int64 edges (``[n, 0]`` without
        ``return_edge``) and int64 times. Empty slots have -1, -1 and 0.

    Raises:
        IndexError: If a column is not in the matrix.
        TypeError: If an argument has the wrong type.
        ValueError: If an argument is invalid; the message names the rule.

    Example:
        >>> indptr, indices = torch.tensor([0, 3]), torch.tensor([4, 5, 6])
        >>> time, cols = torch.tensor([1, 3, 8]), torch.tensor([0, -1])
        >>> last_neighbors(indptr, indices, time, cols, time[1:] + 1, 3)[0]
        tensor([[ 5,  4, -1],
                [-1, -1, -1]])
    """
    op = 'last_neighbors'
    device = _check.graph_device(op, indptr)
    indptr, indices = _check.graph(op, indptr, indices, device, False)
    k = _check.count(op, 'k', k, 0)
    time_window = _check.time_window(op, time_window)
    size = indices.numel()
    if edge_id is not None:
        edge_id = _check.integer_vector(op, 'edge_id', edge_id, device)
        if edge_id.numel() != size:
            raise ValueError(
                f"{op}: 'edge_id' must have {size} elements (got "
                f'{edge_id.numel()})'
            )
    cols = _check.int64_vector(op, 'cols', cols, device=device)
    return _check.call(
        _operator,
        indptr,
        indices,
        _check.int64_vector(op, 'edge_time', edge_time, size, device),
        cols,
        _check.int64_vector(op, 'until', until, cols.numel(), device),
        k,
        edge_id,
        time_window,
        closed_start,
        closed_end,
        ascending,
        return_edge,
        num_threads,
    )


_operator = torch.ops.gsample.last_neighbors.default


def _by_columns(
    indptr: Tensor,
    indices: Tensor,
    edge_time: Tensor,
    cols: Tensor,
    until: Tensor,
    k: int,
    edge_id: Tensor | None = None,
    time_window: int | None = None,
    closed_start: bool = True,
    closed_end: bool = False,
    ascending: bool = False,
    return_edge: bool = True,
    num_threads: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """GPU implementation: `sample_columns`, then torch pads the columns.

    Times are integers, so an open end is a closed end moved by 1.
    """
    empty = cols < 0
    if indptr.shape[0] < 2:  # there is no column to replace -1
        if not torch.equal(cols, cols.new_full(cols.shape, -1)):
            at = int((cols != -1).nonzero()[0])
            raise IndexError(
                f"last_neighbors: 'cols' must be in [-1, 0) (got "
                f'{int(cols[at])} at position {at})'
            )
        indptr = indptr.new_zeros(2)
    if not closed_end:
        empty |= until == _INT64_MIN
        until = until.clamp(min=_INT64_MIN + 1) - 1
    options = [num_threads, 0, 1]
    if time_window is not None:
        width = time_window - (not closed_start) - (not closed_end)
        empty |= torch.full_like(empty, width < 0)
        options.append(max(width, 0))
    none = cols.new_empty(0)
    begin, position = torch.ops.gsample.sample_columns(
        indptr,
        k,
        torch.zeros(1, 3, dtype=torch.int64),  # nothing is drawn
        cols=cols.masked_fill(cols == -1, 0),
        columns=[none, none, edge_time, until],
        options=options,
    )
    slot = torch.arange(k, device=cols.device)
    count = begin.diff().masked_fill(empty, 0)
    mask = slot < count[:, None]
    at = position[(begin[1:, None].long() - 1 - slot)[mask]]
    ids = at if edge_id is None else edge_id[at]
    out = []
    for values, fill in ((indices[at], -1), (ids.long(), -1)):
        out.append(values.new_full(mask.shape, fill))
        out[-1][mask] = values
    out.append(edge_time.new_zeros(mask.shape))
    out[-1][mask] = edge_time[at]
    if ascending:
        out = [value.flip(1) for value in out]
    neighbor, edge, time = out
    return neighbor, edge if return_edge else edge[:, :0].contiguous(), time


torch.library.impl('gsample::last_neighbors', 'cuda')(_by_columns)


@torch.library.register_fake('gsample::last_neighbors')
def _fake(
    indptr, indices, edge_time, cols, until, k, *options, return_edge=True, **_
):
    if len(options) > 5:
        return_edge = options[5]
    n = cols.shape[0]
    return (
        indices.new_empty(n, k),
        cols.new_empty(n, k if return_edge else 0),
        cols.new_empty(n, k),
    )
