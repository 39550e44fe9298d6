"""Conversion to compressed sparse columns, and their checks."""

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling as is_compiling

from torch_gsample.ops import _check
from torch_gsample.ops._fake import (
    allow_unknown_lengths,
    dynamic_size,
    pointers_like,
)

_INT32_MAX = 2**31 - 1


def coo_to_csc(
    row: Tensor,
    col: Tensor,
    num_rows: int,
    num_cols: int,
    index_dtype: torch.dtype | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Sorts edges by column with a stable sort, in linear time.

    Args:
        row (torch.Tensor): int32 or int64 ``[num_edges]``, sources.
        col (torch.Tensor): int32 or int64 ``[num_edges]``, destinations.
        num_rows (int): Number of source nodes.
        num_cols (int): Number of destination nodes.
        index_dtype (torch.dtype, optional): Dtype of the result; default:
            int32 if it suffices.

    Returns:
        Tuple[torch.Tensor, torch.Tensor, torch.Tensor]: ``indptr``
        ``[num_cols + 1]``, ``indices`` ``[num_edges]`` (the row of each edge)
        and ``perm`` int64 ``[num_edges]`` (the edge at each position).

    Raises:
        IndexError: If a node is out of range.
        TypeError: If a dtype is wrong.
        ValueError: If the lengths differ, or int32 does not suffice.

    Example:
        >>> coo_to_csc(torch.tensor([0, 1, 2]), torch.tensor([1, 0, 1]), 3, 2)
        (tensor([0, 1, 3], dtype=torch.int32), \
tensor([1, 0, 2], dtype=torch.int32), tensor([1, 0, 2]))
    """
    op = 'coo_to_csc'
    device = _check.graph_device(op, row, 'row')
    row = _check.integer_vector(op, 'row', row, device)
    col = _check.integer_vector(op, 'col', col, device)
    if row.dtype != col.dtype:
        row, col = _check.as_int64(row), _check.as_int64(col)
    if row.numel() != col.numel():
        raise ValueError(
            f"{op}: 'row' and 'col' must have the same length (got "
            f'{row.numel()} and {col.numel()})'
        )
    for name, value, size in (('row', row, num_rows), ('col', col, num_cols)):
        _check.in_range(op, name, value, size)
    return sort_by_column(row, col, num_rows, num_cols, index_dtype)


def sort_by_column(
    row: Tensor,
    col: Tensor,
    num_rows: int,
    num_cols: int,
    index_dtype: torch.dtype | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns :func:`coo_to_csc` of edges that are known to be valid."""
    op = 'coo_to_csc'
    wide_indptr, wide_indices = index_widths(
        op, row.numel(), max(num_rows, num_cols), index_dtype
    )
    return _check.call(
        torch.ops.gsample.coo_to_csc.default,
        row,
        col,
        num_cols,
        wide_indptr,
        wide_indices,
        *([num_rows] if row.is_cuda else []),  # the GPU kernel checks ids
    )


def index_widths(
    op: str,
    num_edges: int,
    num_nodes: int,
    index_dtype: torch.dtype | None,
) -> tuple[bool, bool]:
    """Returns whether ``indptr`` and ``indices`` are int64.

    Raises:
        TypeError: If ``index_dtype`` is not an index dtype.
        ValueError: If ``index_dtype`` is int32, which does not suffice.
    """
    if index_dtype is None:
        wide_indices = _check.is_known(num_nodes > _INT32_MAX)
        return (
            wide_indices or _check.is_known(num_edges > _INT32_MAX),
            wide_indices,
        )
    if index_dtype not in _check.INDEX_DTYPES:
        raise TypeError(
            f"{op}: 'index_dtype' must be torch.int32 or torch.int64 "
            f'(got {index_dtype})'
        )
    wide = index_dtype == torch.int64
    most = max(num_edges, num_nodes)
    if not wide and _check.is_known(most > _INT32_MAX):
        raise ValueError(
            f"{op}: 'index_dtype' must be torch.int64 for {num_edges} edges "
            f'and {num_nodes} nodes'
        )
    return wide, wide


def check_csc(
    indptr: Tensor, indices: Tensor, num_rows: int, name: str = 'graph'
) -> None:
    """Checks a graph in full, in parallel.

    Args:
        indptr (torch.Tensor): int32 or int64 ``[num_cols + 1]``.
        indices (torch.Tensor): int32 or int64 ``[num_edges]``.
        num_rows (int): Number of source nodes.
        name (str, optional): Name of the graph in errors.

    Raises:
        IndexError: If a source is outside ``[0, num_rows)``.
        ValueError: If ``indptr`` does not ascend from 0 to ``num_edges``.
    """
    op = 'check_csc'
    device = _check.graph_device(op, indptr)
    indptr, indices = _check.graph(op, indptr, indices, device, False)
    if is_compiling():  # operators check what they read
        return
    checked = torch.ops.gsample.check_csc
    found = _check.call(checked, indptr, indices, num_rows)
    rule, where, value = found.cpu().tolist()
    if rule == 1:
        raise ValueError(
            f"{op}: 'indptr' of {name} must start at 0 (got {value})"
        )
    if rule == 2:
        raise ValueError(
            f"{op}: 'indptr' of {name} must not descend (it does at "
            f'position {where}, to {value})'
        )
    if rule == 3:
        raise ValueError(
            f"{op}: 'indptr' of {name} must end at the number of edges, "
            f'{indices.numel()} (got {value})'
        )
    if rule == 4:
        raise IndexError(
            f"{op}: 'indices' of {name} must be in [0, {num_rows}) (got "
            f'{value} at position {where})'
        )


def cumulate_weights(
    indptr: Tensor, weight: Tensor, name: str = 'weight'
) -> Tensor:
    """Prepares edge weights for weighted sampling.

    Weights are scaled to integers such that each column sums to about 2^62,
    and cumulated along each column. A positive weight stays positive, however
    small. The sums are followed by one bit per column: whether it has a weight
    of 0.

    Args:
        indptr (torch.Tensor): int32 or int64 ``[num_cols + 1]``.
        weight (torch.Tensor): ``[num_edges]``, finite and not negative, in
            any real dtype.
        name (str, optional): Name of the weights in errors.

    Returns:
        torch.Tensor: int64 ``[num_edges + ceil(num_cols / 64)]``.

    Raises:
        TypeError: If the weights are complex.
        ValueError: If a weight is negative, infinite or not a number.

    Example:
        >>> indptr = torch.tensor([0, 2, 3])
        >>> w = cumulate_weights(indptr, torch.tensor([1.0, 3.0, 5.0]))
        >>> float(w[0] / w[1])
        0.25
    """
    op = 'cumulate_weights'
    device = _check.graph_device(op, indptr)
    indptr = _check.pointers(op, indptr, device)
    weight = real_vector(op, name, weight, device)
    try:
        return _check.call(torch.ops.gsample.cumulate_weights, indptr, weight)
    except torch.OutOfMemoryError:
        raise
    except RuntimeError:  # find the invalid weight
        check_weights(op, name, indptr, weight)
        raise


def cumulate_argument(
    op: str,
    name: str,
    indptr: Tensor,
    weight: Tensor,
    order: Tensor | None = None,
) -> Tensor:
    """Returns :func:`cumulate_weights` of an argument of an operation.

    Errors name the operation, and the position in the argument.

    Args:
        op (str): The operation.
        name (str): The argument.
        indptr (torch.Tensor): See :func:`cumulate_weights`.
        weight (torch.Tensor): The weights, as the user gave them.
        order (torch.Tensor, optional): int64 ``[num_edges]``, the weight of
            each edge; default: in the order of ``indptr``.
    """
    try:
        sorted_weight = weight if order is None else weight[order]
        return cumulate_weights(indptr, sorted_weight, name)
    except (TypeError, ValueError) as error:
        if isinstance(error, ValueError):
            check_valid(op, name, weight)
        rule = str(error).partition(': ')[2]
        raise type(error)(f'{op}: {rule}') from None


def check_weights(op: str, name: str, indptr: Tensor, weight: Tensor) -> None:
    """Raises a ValueError unless each edge has a valid weight."""
    if not is_compiling() and weight.numel() != int(indptr[-1]):
        raise ValueError(
            f"{op}: '{name}' must have {int(indptr[-1])} elements, one for "
            f'each edge (got {weight.numel()})'
        )
    check_valid(op, name, weight)


def positive_weights(
    weight: Tensor, name: str = 'weight', *, ptr: Tensor | None = None
) -> tuple[Tensor, ...]:
    """Prepares weights with many zeros for weighted sampling.

    Args:
        weight (torch.Tensor): ``[n]``, finite and not negative, in any real
            dtype.
        name (str, optional): Name of the weights in errors.
        ptr (torch.Tensor, optional): int64 ``[B + 1]``, the start of the
            weights of each batch.

    Returns:
        Tuple[torch.Tensor, ...]: int64 ``index``, the positions of the
        positive weights, and ``cum_weight``, the result of
        :func:`cumulate_weights` for a column of these. With ``ptr``, it has
        one column per batch, and the third item is the start of each batch's
        positive weights.

    Raises:
        TypeError: If the weights are complex.
        ValueError: If a weight is negative, infinite or not a number, or
            ``ptr`` is invalid.

    Example:
        >>> index, cum_weight = positive_weights(torch.tensor([0.0, 3.0, 1.0]))
        >>> index, float(cum_weight[0] / cum_weight[1])
        (tensor([1, 2]), 0.75)
    """
    op = 'positive_weights'
    device = _check.graph_device(op, weight, name)
    weight = real_vector(op, name, weight, device)
    if ptr is not None:
        ptr = _check.segment_ptr(op, 'ptr', ptr, weight.numel(), device)
    try:
        out = _check.call(
            torch.ops.gsample.positive_weights.default, weight, ptr
        )
    except torch.OutOfMemoryError:
        raise
    except RuntimeError:
        check_valid(op, name, weight)
        raise
    return out[:2] if ptr is None else out


def real_vector(
    op: str, name: str, weight: Tensor, device: torch.device = _check.CPU
) -> Tensor:
    """Converts weights to a dtype of the operators."""
    if weight.is_complex() or weight.dim() != 1:
        raise TypeError(
            f"{op}: '{name}' must be a vector of real numbers (got "
            f'{weight.dtype} of shape {list(weight.shape)})'
        )
    if weight.device != device:
        where = _check.place(device)
        raise ValueError(
            f"{op}: '{name}' must be on {where} (got {weight.device})"
        )
    if weight.dtype != torch.float64:
        exact = weight.dtype in (torch.float16, torch.bfloat16, torch.float32)
        dtype = torch.float32 if exact else torch.float64
        weight = weight if weight.dtype == dtype else weight.to(dtype)
    return _check.contiguous(_check.detached(weight))


def check_valid(op: str, name: str, weight: Tensor) -> None:
    """Raises a ValueError if a weight is negative or not finite."""
    if is_compiling():
        return  # the operators check
    valid = (weight >= 0) & (weight < float('inf'))
    if not bool(valid.all()):
        where = int(valid.long().argmin())
        raise ValueError(
            f"{op}: '{name}' must be finite and not negative (got "
            f'{float(weight[where])} at position {where})'
        )


def cum_weight_size(num_edges: int, num_cols: int) -> int:
    """Returns the length of a result of :func:`cumulate_weights`."""
    return num_edges + (num_cols + 63) // 64


@torch.library.register_fake('gsample::coo_to_csc')
def _(row, col, num_cols, wide_indptr, wide_indices, num_rows=None):
    allow_unknown_lengths()

    def dtype(wide: bool) -> torch.dtype:
        return torch.int64 if wide else torch.int32

    return (
        row.new_empty(num_cols + 1, dtype=dtype(wide_indptr)),
        row.new_empty(row.shape[0], dtype=dtype(wide_indices)),
        row.new_empty(row.shape[0], dtype=torch.int64),
    )


@torch.library.register_fake('gsample::sort_edges')
def _(edge_index, num_rows, num_cols, loops):
    size = edge_index.shape[1] if loops == 0 else dynamic_size()
    return (
        edge_index.new_empty(num_cols + 1, dtype=torch.int32),
        edge_index.new_empty(size, dtype=torch.int32),
        edge_index.new_empty(size, dtype=torch.int32),
        edge_index.new_empty(num_cols, dtype=torch.float32),
        edge_index.new_empty(1, dtype=torch.int64),
    )


@torch.library.register_fake('gsample::transpose_columns')
def _(indptr, indices, edge_id, num_rows):
    return (
        indptr.new_empty(num_rows + 1),
        torch.empty_like(indices),
        torch.empty_like(indices),
        indptr.new_empty(1, dtype=torch.int64),
    )


@torch.library.register_fake('gsample::check_csc')
def _(indptr, indices, num_rows):
    return indptr.new_empty(3, dtype=torch.int64)


@torch.library.register_fake('gsample::cumulate_weights')
def _(indptr, weight):
    size = cum_weight_size(weight.shape[0], indptr.shape[0] - 1)
    return indptr.new_empty(size, dtype=torch.int64)


@torch.library.register_fake('gsample::positive_weights')
def _(weight, ptr=None):
    index = weight.new_empty(dynamic_size(), dtype=torch.int64)
    size = index.shape[0] + 1 if ptr is None else dynamic_size()
    words = weight.new_empty(size, dtype=torch.int64)
    return index, words, pointers_like(weight, ptr)
