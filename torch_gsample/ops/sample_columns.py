"""Random selection of edges in columns of one relation."""

from typing import Any

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops._fake import dynamic_size
from torch_gsample.ops.formats import cum_weight_size


def sample_columns(
    indptr: Tensor,
    k: int,
    *,
    key: Tensor,
    call_id: int = 0,
    relation: int = 0,
    cols: Tensor | None = None,
    id: Tensor | None = None,
    root: Tensor | None = None,
    start: Tensor | None = None,
    cum_weight: Tensor | None = None,
    edge_time: Tensor | None = None,
    column_time: Tensor | None = None,
    time_window: int | None = None,
    temporal_strategy: str = 'uniform',
    replace: bool = False,
    num_threads: int = 0,
    ptr: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Samples edges of each column independently.

    A hop of :func:`sample_neighbors` draws the same edges. ``start`` is for
    sampling from disk: the operator needs only the lengths of columns, and the
    caller then reads the neighbours at the sampled positions.

    Args:
        indptr (torch.Tensor): int32 or int64 ``[all_cols + 1]``.
        k (int): Number of edges per column; -1 selects all. A column of at
            most ``k`` edges (of positive weight) has all of them selected, in
            order.
        key (torch.Tensor): int64 ``[1, 3]``, see
            :func:`torch_gsample.rng.make_key`.
        call_id (int, optional): Id of the draw in a program, or the hop.
        relation (int, optional): Index of the edge type.
        cols (torch.Tensor, optional): int32 or int64 ``[num_cols]``, the
            columns to sample, as in ``A[:, cols]``; default: all.
        id (torch.Tensor, optional): ``[num_cols]``, the node of each column;
            default: its position. Columns of the same node draw the same
            edges.
        root (torch.Tensor, optional): ``[num_cols]``, the tree of each column
            in disjoint sampling.
        start (torch.Tensor, optional): ``[num_cols]``, the position of the
            first edge of each column; default: that of ``indptr``.
        cum_weight (torch.Tensor, optional): A result of
            :func:`cumulate_weights` for ``indptr``; default: uniform sampling.
        edge_time (torch.Tensor, optional): int64 ``[indptr[-1]]``, ascending
            in each column.
        column_time (torch.Tensor, optional): ``[num_cols]``, the time of each
            column; later edges are excluded.
        time_window (int, optional): See :class:`Sampling`.
        temporal_strategy (str, optional): See :class:`Sampling`.
        replace (bool, optional): Whether to sample with replacement.
        num_threads (int, optional): Maximum number of threads; 0 for torch's
            number of threads.
        ptr (torch.Tensor, optional): int64 ``[B + 1]``, the start of the
            columns of each batch; ``key`` then has one row per batch.

    Returns:
        Tuple[torch.Tensor, torch.Tensor]: ``indptr`` ``[num_cols + 1]`` of the
        sample, and int64 ``edge``, the position of each sampled edge.

    Raises:
        IndexError: If a column is not in the relation.
        TypeError: If a tensor has the wrong dtype.
        ValueError: If an argument is invalid; the message names the rule.

    Example:
        >>> from torch_gsample.rng import make_key
        >>> indptr, key = torch.tensor([0, 2, 3]), make_key(0)
        >>> sample_columns(indptr, 2, key=key)
        (tensor([0, 2, 3]), tensor([0, 1, 2]))
        >>> sample_columns(indptr, -1, key=key, start=torch.tensor([70, 10]))
        (tensor([0, 2, 3]), tensor([70, 71, 10]))
    """
    op = 'sample_columns'
    device = _check.sampling_device(op, indptr, cols, 'cols')
    indptr = _check.pointers(op, indptr, device, or_pinned=True)
    all_cols = n = indptr.numel() - 1
    if cols is not None:
        cols = _check.node_ids(op, 'cols', cols, all_cols, device)
        n = cols.numel()
    if (edge_time is None) != (column_time is None):
        raise ValueError(
            f"{op}: 'edge_time' and 'column_time' must be given together"
        )
    id, start, root = [
        None
        if value is None
        else _check.int64_vector(op, name, value, n, device)
        for name, value in (('id', id), ('start', start), ('root', root))
    ]
    if cum_weight is not None:
        cum_weight = _check.int64_vector(
            op, 'cum_weight', cum_weight, None, device, or_pinned=True
        )
    times: list[Tensor] = []
    if edge_time is not None and column_time is not None:
        times = [
            _check.int64_vector(
                op, 'edge_time', edge_time, None, device, or_pinned=True
            ),
            _check.int64_vector(op, 'column_time', column_time, n, device),
        ]
    if ptr is not None:
        ptr = _check.segment_ptr(op, 'ptr', ptr, n, device)
    window = _check.time_window(op, time_window)
    last = _check.strategy(op, temporal_strategy) == 1
    given = {'cols': cols, 'id': id, 'cum_weight': cum_weight, 'ptr': ptr}
    options: dict[str, Any] = {
        name: value for name, value in given.items() if value is not None
    }
    if replace:
        options['replace'] = True
    if start is not None or root is not None or times:
        # Empty tensors stand for missing properties of columns.
        none = indptr.new_empty(0, dtype=torch.int64)
        places = [none if value is None else value for value in (start, root)]
        options['columns'] = [*places, *times]
    if num_threads != 0 or relation != 0 or times:
        hop = [num_threads, relation, int(last)]
        options['options'] = hop if window is None else [*hop, window]
    k = _check.count(op, 'k', k, -1)
    key = _check.random_keys(op, key, 1 if ptr is None else ptr.numel() - 1)
    try:
        return _operator(indptr, k, key, call_id, **options)
    except RuntimeError as error:
        if device == _check.CPU:
            _check_sizes(indptr, cum_weight, *times[:1])
        exception = _check.raised(error)
        raise exception from None


_operator = torch.ops.gsample.sample_columns.default


def _check_sizes(
    indptr: Tensor, cum_weight: Tensor | None, edge_time: Tensor | None = None
) -> None:
    """Finds the invalid argument of a failed call."""
    num_edges = max(int(indptr[-1]), 0)
    size = cum_weight_size(num_edges, indptr.numel() - 1)
    for name, value, items in (
        ('cum_weight', cum_weight, size),
        ('edge_time', edge_time, num_edges),
    ):
        if value is not None:
            _check.int64_vector('sample_columns', name, value, items)


@torch.library.register_fake('gsample::sample_columns')
def _(indptr, k, key, call_id=0, cols=None, **_):
    like = indptr if cols is None else cols
    num_cols = indptr.shape[0] - 1 if cols is None else cols.shape[0]
    edge = like.new_empty(dynamic_size(), dtype=torch.int64)
    return like.new_empty(num_cols + 1, dtype=indptr.dtype), edge
