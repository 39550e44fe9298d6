"""Slices of sparse matrices, and random numbers."""

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops._fake import allow_unknown_lengths, dynamic_size


def slice_cols(
    indptr: Tensor, indices: Tensor, cols: Tensor, *, num_threads: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns ``A[:, cols]`` of a matrix in compressed columns.

    With ``cols`` on a GPU, the matrix must be on the GPU as well, or in pinned
    memory (:func:`torch_gsample.placement.pin`). The same holds for all
    operators that extract parts of a graph: the positions determine the
    device.

    Args:
        indptr (torch.Tensor): int32 or int64 ``[num_cols + 1]``.
        indices (torch.Tensor): int32 or int64 ``[num_edges]``.
        cols (torch.Tensor): int32 or int64 ``[n]``; duplicates are copied.
        num_threads (int, optional): Maximum number of threads; 0 for torch's
            number of threads.

    Returns:
        Tuple[torch.Tensor, torch.Tensor, torch.Tensor]: ``indptr`` ``[n + 1]``
        and ``indices`` of the slice, and int64 ``edge``, the position of each
        edge in the original ``indices``.

    Raises:
        IndexError: If a column is not in the matrix.

    Example:
        >>> indptr = torch.tensor([0, 2, 3])
        >>> slice_cols(indptr, torch.tensor([4, 5, 6]), torch.tensor([1, 1]))
        (tensor([0, 1, 2]), tensor([6, 6]), tensor([2, 2]))
    """
    op = 'slice_cols'
    device = _check.sampling_device(op, indptr, cols, 'cols')
    indptr, indices = _check.graph(op, indptr, indices, device)
    cols = _check.node_ids(op, 'cols', cols, indptr.numel() - 1, device)
    return _check.call(
        torch.ops.gsample.slice_cols.default,
        indptr,
        indices,
        cols,
        num_threads=num_threads,
    )


def mask_columns(indptr: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the edges of a mask, of a matrix in compressed columns.

    Args:
        indptr (torch.Tensor): int32 or int64 ``[num_cols + 1]``.
        mask (torch.Tensor): bool ``[num_edges]``.

    Returns:
        Tuple[torch.Tensor, torch.Tensor]: ``indptr`` ``[num_cols + 1]`` of the
        edges with a mask, and int64 ``edge``, their positions, in order.

    Raises:
        RuntimeError: If ``indptr`` does not ascend from 0 to the number of
            edges.
        TypeError: If a tensor has the wrong dtype.
        ValueError: If a tensor is not a vector.

    Example:
        >>> indptr = torch.tensor([0, 2, 3])
        >>> mask_columns(indptr, torch.tensor([False, True, True]))
        (tensor([0, 1, 2]), tensor([1, 2]))
    """
    op = 'mask_columns'
    device = _check.graph_device(op, indptr)
    indptr = _check.pointers(op, indptr, device)
    if mask.dtype != torch.bool:
        raise TypeError(f"{op}: 'mask' must be bool (got {mask.dtype})")
    if mask.dim() != 1:
        raise ValueError(
            f"{op}: 'mask' must be a vector (got shape {list(mask.shape)})"
        )
    return _check.call(
        torch.ops.gsample.mask_columns.default,
        indptr,
        _check.contiguous(mask),
    )


@torch.library.register_fake('gsample::mask_columns')
def _(indptr, mask):
    return torch.empty_like(indptr), indptr.new_empty(
        dynamic_size(), dtype=torch.int64
    )


def mask_by_torch(indptr: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Computes :func:`mask_columns` by operators of torch, as on CUDA."""
    edge = mask.nonzero().view(-1)
    return torch.searchsorted(edge, indptr.long()).to(indptr.dtype), edge


torch.library.impl('gsample::mask_columns', 'cuda')(mask_by_torch)


def slice_rows(
    indptr: Tensor,
    indices: Tensor,
    num_rows: int,
    rows: Tensor,
    cols: Tensor | None = None,
    *,
    num_threads: int = 0,
    row_ptr: Tensor | None = None,
    col_ptr: Tensor | None = None,
    whole: bool = True,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns ``A[rows, cols]`` of a matrix in compressed columns.

    For several batches, the slices are concatenated.

    Args:
        indptr (torch.Tensor): int32 or int64 ``[num_cols + 1]``.
        indices (torch.Tensor): int32 or int64 ``[num_edges]``.
        num_rows (int): Number of rows of the matrix.
        rows (torch.Tensor): int32 or int64 ``[n]``; duplicates are copied.
        cols (torch.Tensor, optional): int32 or int64 ``[num_cols]``;
            duplicates are copied. Default: all columns.
        num_threads (int, optional): See :func:`slice_cols`.
        row_ptr (torch.Tensor, optional): int64 ``[B + 1]``, the start of the
            rows of each batch.
        col_ptr (torch.Tensor, optional): int64 ``[B + 1]``, likewise for
            columns.
        whole (bool, optional): Whether batches share the matrix. Otherwise
            ``col_ptr`` assigns columns to batches.

    Returns:
        Tuple[torch.Tensor, torch.Tensor, torch.Tensor]: ``indptr``
        ``[num_cols + 1]`` and ``indices`` (positions in ``rows``) of the
        slice, and int64 ``edge``, the position of each edge in ``indices``.

    Raises:
        IndexError: If a row or a column is not in the matrix.
        ValueError: If pointers are invalid.

    Example:
        >>> indptr = torch.tensor([0, 2, 3])
        >>> indices = torch.tensor([4, 5, 5])
        >>> slice_rows(indptr, indices, 6, torch.tensor([5]))
        (tensor([0, 1, 2]), tensor([0, 0]), tensor([1, 2]))
    """
    op = 'slice_rows'
    device = _check.sampling_device(op, indptr, rows, 'rows')
    indptr, indices = _check.graph(op, indptr, indices, device)
    rows = _check.node_ids(op, 'rows', rows, num_rows, device)
    if cols is not None:
        cols = _check.node_ids(op, 'cols', cols, indptr.numel() - 1, device)
    if row_ptr is not None:
        row_ptr = _check.segment_ptr(op, 'row_ptr', row_ptr, device=device)
    if col_ptr is not None:
        col_ptr = _check.segment_ptr(op, 'col_ptr', col_ptr, device=device)
    return _check.call(
        torch.ops.gsample.slice_rows.default,
        indptr,
        indices,
        num_rows,
        rows,
        cols,
        row_ptr,
        col_ptr,
        whole,
        num_threads,
    )


def random_uniform(id: Tensor, *, key: Tensor, call_id: int = 0) -> Tensor:
    """Draws a random number for each id; equal ids have equal numbers.

    Args:
        id (torch.Tensor): int32 or int64 ``[n]``.
        key (torch.Tensor): int64 ``[1, 3]``.
        call_id (int, optional): Id of the draw in a program.

    Returns:
        torch.Tensor: float64 ``[n]``, uniform in ``[0, 1)``.

    Example:
        >>> from torch_gsample.rng import make_key
        >>> a, b, c = random_uniform(torch.tensor([4, 7, 4]), key=make_key(0))
        >>> bool(a == c), bool(a == b)
        (True, False)
    """
    op = 'random_uniform'
    device = _check.graph_device(op, id, 'id')
    return _check.call(
        torch.ops.gsample.random_uniform.default,
        _check.int64_vector(op, 'id', id, device=device),
        _check.random_key(op, key),
        call_id,
    )


_key_state = torch.zeros(1, dtype=torch.int64)


def next_key() -> Tensor:
    """Draws the key of a program from torch's default generator.

    Returns:
        torch.Tensor: int64 ``[1, 3]``.

    Example:
        >>> _ = torch.manual_seed(12)
        >>> next_key().shape
        torch.Size([1, 3])
    """
    return torch.ops.gsample.next_key(_key_state)


@torch.library.register_fake('gsample::slice_cols')
def _(indptr, indices, cols, num_threads=0):
    size = dynamic_size()
    return (
        cols.new_empty(cols.shape[0] + 1, dtype=indptr.dtype),
        cols.new_empty(size, dtype=indices.dtype),
        cols.new_empty(size),
    )


@torch.library.register_fake('gsample::slice_rows')
def _(
    indptr,
    indices,
    num_rows,
    rows,
    cols=None,
    row_ptr=None,
    col_ptr=None,
    whole=True,
    num_threads=0,
):
    size = dynamic_size()
    num_cols = indptr.shape[0] - 1 if cols is None else cols.shape[0]
    if cols is None and whole and row_ptr is not None:
        num_cols = num_cols * (row_ptr.shape[0] - 1)
    return (
        rows.new_empty(num_cols + 1, dtype=indptr.dtype),
        rows.new_empty(size, dtype=indices.dtype),
        rows.new_empty(size),
    )


@torch.library.register_fake('gsample::random_uniform')
def _(id, key, call_id=0):
    return id.new_empty(id.shape[0], dtype=torch.float64)


@torch.library.register_fake('gsample::next_key')
def _(state):
    allow_unknown_lengths()
    return state.new_empty(1, 3)
