"""Operators of several batches at once.

Each batch gets what the operator of one batch gives; results lie one batch
after another. ``ptr``, int64 ``[B + 1]``, says where each batch begins.
"""

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops._fake import dynamic_size
from torch_gsample.ops.formats import (
    check_valid,
    cum_weight_size,
    real_vector,
)


def slice_rows_segments(
    indptr: Tensor,
    indices: Tensor,
    num_rows: int,
    rows: Tensor,
    row_ptr: Tensor,
    cols: Tensor | None,
    col_ptr: Tensor,
    whole: bool = True,
    *,
    num_threads: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns ``A[rows, cols]`` of each batch; see :func:`slice_rows`.

    Args:
        indptr (torch.Tensor): int32 or int64 ``[all_cols + 1]``.
        indices (torch.Tensor): int32 or int64 ``[num_edges]``.
        num_rows (int): Number of rows of the matrix.
        rows (torch.Tensor): int64 ``[n]``, the rows of all batches.
        row_ptr (torch.Tensor): int64 ``[B + 1]``.
        cols (torch.Tensor, optional): int64 ``[num_cols]``, the columns of
            all batches; all columns of the matrix for each if not given.
        col_ptr (torch.Tensor): int64 ``[B + 1]``, where the columns of each
            batch begin.
        whole (bool, optional): Whether batches share the matrix. If not, each
            has the columns of its own that ``col_ptr`` tells apart.
        num_threads (int, optional): See :func:`slice_cols`.

    Returns:
        Tuple[torch.Tensor, torch.Tensor, torch.Tensor]: ``indptr``,
        ``indices`` (positions in ``rows``) and int64 ``edge``.

    Raises:
        IndexError: If a row or a column is not in the matrix.
        ValueError: If pointers do not fit.

    Example:
        >>> indptr = torch.tensor([0, 2, 3])
        >>> indices = torch.tensor([4, 5, 5])
        >>> rows, cols = torch.tensor([5, 4]), torch.tensor([0, 1, 0])
        >>> row_ptr, col_ptr = torch.tensor([0, 1, 2]), torch.tensor([0, 2, 3])
        >>> slice_rows_segments(
        ...     indptr, indices, 6, rows, row_ptr, cols, col_ptr
        ... )
        (tensor([0, 1, 2, 3]), tensor([0, 0, 1]), tensor([1, 2, 0]))
    """
    op = 'slice_rows_segments'
    device = _check.sampling_device(op, indptr, rows, 'rows')
    indptr, indices = _check.graph(op, indptr, indices, device)
    rows = _check.node_ids(op, 'rows', rows, num_rows, device)
    if cols is not None:
        cols = _check.node_ids(op, 'cols', cols, indptr.numel() - 1, device)
    return _check.call(
        torch.ops.gsample.slice_rows_segments.default,
        indptr,
        indices,
        num_rows,
        rows,
        _check.segment_ptr(op, 'row_ptr', row_ptr, device=device),
        cols,
        _check.segment_ptr(op, 'col_ptr', col_ptr, device=device),
        whole,
        num_threads=num_threads,
    )


def sample_nodes_segments(
    num_nodes: int,
    k: int,
    *,
    key: Tensor,
    call_id: int = 0,
    ptr: Tensor | None = None,
    cum_weight: Tensor | None = None,
    replace: bool = False,
    device: torch.device | None = None,
) -> tuple[Tensor, Tensor]:
    """Samples nodes for each batch; see :func:`sample_nodes`.

    Args:
        num_nodes (int): Number of nodes to choose from, of all batches.
        k (int): How many to sample for each batch.
        key (torch.Tensor): int64 ``[B, 3]``, the key of each batch.
        call_id (int, optional): Number of the draw in a program.
        ptr (torch.Tensor, optional): int64 ``[B + 1]``, where the nodes of
            each batch begin; each batch chooses from all if not given.
        cum_weight (torch.Tensor, optional): What :func:`cumulate_weights`
            returned for a column of each batch, or for one column of all.
        replace (bool, optional): Whether a node may be drawn repeatedly.
        device (torch.device, optional): Where the result is to be, if neither
            ``ptr`` nor ``cum_weight`` is given, which are there then.

    Returns:
        Tuple[torch.Tensor, torch.Tensor]: int64 ``node``, and where the nodes
        of each batch begin.

    Raises:
        ValueError: If ``k`` is negative, a length does not fit, or there are
            no kernels for the device.

    Example:
        >>> from torch_gsample.rng import make_key
        >>> key = torch.cat([make_key(0), make_key(1)])
        >>> sample_nodes_segments(3, 2, key=key, ptr=torch.tensor([0, 1, 3]))
        (tensor([0, 1, 2]), tensor([0, 1, 3]))
    """
    op = 'sample_nodes_segments'
    if k < 0:
        raise ValueError(f"{op}: 'k' must not be negative (got {k})")
    columns, batches = 1, None
    first = cum_weight if ptr is None else ptr
    name = 'cum_weight' if ptr is None else 'ptr'
    there = {}
    if first is None and device is not None and device.type == 'cuda':
        first = torch.empty(0, dtype=torch.int64, device=device)
        there['device_of'], name = first, 'device'
    place = _check.graph_device(op, first, name)
    if ptr is not None:
        ptr = _check.segment_ptr(op, 'ptr', ptr, num_nodes, place)
        columns = batches = ptr.numel() - 1
    if cum_weight is not None:
        size = cum_weight_size(num_nodes, columns)
        cum_weight = _check.int64_vector(
            op, 'cum_weight', cum_weight, size, place
        )
    return _check.call(
        torch.ops.gsample.sample_nodes_segments,
        num_nodes,
        k,
        _check.random_keys(op, key, batches),
        call_id,
        ptr=ptr,
        cum_weight=cum_weight,
        replace=replace,
        **there,
    )


def unique_nodes_segments(
    id: Tensor, ptr: Tensor, num_nodes: int = 2**62, sorted: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Numbers the distinct nodes of each batch; see :func:`unique_nodes`.

    Args:
        id (torch.Tensor): int32 or int64 ``[n]``.
        ptr (torch.Tensor): int64 ``[B + 1]``.
        num_nodes (int, optional): What ids are below.
        sorted (bool, optional): Whether numbers ascend with ids.

    Returns:
        Tuple[torch.Tensor, torch.Tensor, torch.Tensor]: int64 ``node``,
        ``local`` ``[n]``, where each id is in ``node``, and where the nodes of
        each batch begin.

    Raises:
        IndexError: If an id is outside ``[0, num_nodes)``.
        ValueError: If ``ptr`` does not fit.

    Example:
        >>> unique_nodes_segments(
        ...     torch.tensor([5, 3, 5, 5]), torch.tensor([0, 3, 4])
        ... )
        (tensor([5, 3, 5]), tensor([0, 1, 0, 2]), tensor([0, 2, 3]))
    """
    op = 'unique_nodes_segments'
    device = _check.graph_device(op, id, 'id')
    id = _check.integer_vector(op, 'id', id, device)
    return _check.call(
        torch.ops.gsample.unique_nodes_segments.default,
        _check.in_range(op, 'id', id, num_nodes),
        _check.segment_ptr(op, 'ptr', ptr, id.numel(), device),
        num_nodes,
        sorted,
    )


def positive_weights_segments(
    weight: Tensor, ptr: Tensor, name: str = 'weight'
) -> tuple[Tensor, Tensor, Tensor]:
    """Finds and sums the positive weights of each batch.

    See :func:`positive_weights`; the sums are those of
    :func:`cumulate_weights` for a column of each batch.

    Args:
        weight (torch.Tensor): ``[n]``, finite and not negative, in any real
            dtype.
        ptr (torch.Tensor): int64 ``[B + 1]``.
        name (str, optional): What errors call the weights.

    Returns:
        Tuple[torch.Tensor, torch.Tensor, torch.Tensor]: int64 ``index``,
        ``cum_weight`` for :func:`sample_nodes_segments`, and where the
        positive weights of each batch begin.

    Raises:
        TypeError: If the weights are complex.
        ValueError: If a weight is negative or not finite, or ``ptr`` does not
            fit.

    Example:
        >>> index, _, ptr = positive_weights_segments(
        ...     torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0, 2, 3])
        ... )
        >>> index, ptr
        (tensor([1, 2]), tensor([0, 1, 2]))
    """
    op = 'positive_weights_segments'
    device = _check.graph_device(op, weight, name)
    weight = real_vector(op, name, weight, device)
    ptr = _check.segment_ptr(op, 'ptr', ptr, weight.numel(), device)
    try:
        return _check.call(
            torch.ops.gsample.positive_weights_segments, weight, ptr
        )
    except torch.OutOfMemoryError:
        raise
    except RuntimeError:
        check_valid(op, name, weight)
        raise


@torch.library.register_fake('gsample::slice_rows_segments')
def _(
    indptr,
    indices,
    num_rows,
    rows,
    row_ptr,
    cols,
    col_ptr,
    whole=True,
    num_threads=0,
):
    size = dynamic_size()
    num_cols = indptr.shape[0] - 1
    if cols is not None:
        num_cols = cols.shape[0]
    elif whole:
        num_cols = num_cols * (row_ptr.shape[0] - 1)
    return (
        rows.new_empty(num_cols + 1, dtype=indptr.dtype),
        rows.new_empty(size, dtype=indices.dtype),
        rows.new_empty(size),
    )


@torch.library.register_fake('gsample::sample_nodes_segments')
def _(
    num_nodes,
    k,
    key,
    call_id=0,
    ptr=None,
    cum_weight=None,
    device_of=None,
    **_,
):
    batches = key.shape[0] if ptr is None else ptr.shape[0] - 1
    given = ptr, cum_weight, device_of, key
    like = next(x for x in given if x is not None)
    return like.new_empty(dynamic_size()), like.new_empty(batches + 1)


@torch.library.register_fake('gsample::unique_nodes_segments')
def _(id, ptr, num_nodes, sorted=False):
    node = ptr.new_empty(dynamic_size())
    return node, torch.empty_like(id), torch.empty_like(ptr)


@torch.library.register_fake('gsample::positive_weights_segments')
def _(weight, ptr):
    size, words = dynamic_size(), dynamic_size()
    return ptr.new_empty(size), ptr.new_empty(words), torch.empty_like(ptr)
