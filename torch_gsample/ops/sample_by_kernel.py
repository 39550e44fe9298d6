"""One edge of each column, by weights that a generated kernel computes."""

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops._fake import dynamic_size
from torch_gsample.ops.kernels import is_loaded

#: What an operand of the kernel is, by number: a tensor that all edges read; one
#: with a row for each of ``cols``; with a row for each edge of the matrix;
#: whether the row of an edge is in the column ``before``; where columns start.
ROLES = ('whole', 'column', 'edge', 'found', 'pointers')


def sample_by_kernel(
    indptr: Tensor,
    indices: Tensor,
    cols: Tensor,
    kernel: int,
    operands: Sequence[Tensor],
    roles: Sequence[str],
    key: Tensor,
    call_id: int = 0,
    *,
    id: Tensor | None = None,
    before: Tensor | None = None,
    num_rows: int | None = None,
    num_threads: int = 0,
) -> tuple[Tensor, Tensor]:
    r"""Samples an edge of each column by weights that a kernel computes.

    Selects what ``sample_columns`` selects of the extract :obj:`cols` with
    :obj:`k = 1` and these weights: edge :math:`e` of column :math:`i` with
    probability :math:`w_e / \sum_f w_f`. Neither the extract nor the weights
    are stored: columns are scanned in blocks that stay in the cache.

    Args:
        indptr (torch.Tensor): int32 or int64 ``[num_cols + 1]``.
        indices (torch.Tensor): int32 or int64 ``[num_edges]``.
        cols (torch.Tensor): int64 ``[n]``, the columns.
        kernel (int): Number of an edge map, of
            :func:`~torch_gsample.ops.kernels.load_kernel`, that gives a float
            of each edge.
        operands (Sequence[torch.Tensor]): What it reads; any tensor where the
            role says enough.
        roles (Sequence[str]): A name of :data:`ROLES` for each operand.
        key (torch.Tensor): int64 ``[1, 3]``.
        call_id (int, optional): Number of the call in its program.
        id (torch.Tensor, optional): int64 ``[n]``, by which columns draw;
            their positions if not given.
        before (torch.Tensor, optional): int64 ``[n]``, columns in which rows
            are searched.
        num_rows (int, optional): If given, searched rows must be below it.
        num_threads (int, optional): At most this many threads; 0 means as
            many as torch uses.

    Returns:
        Tuple[torch.Tensor, torch.Tensor]: ``indptr`` ``[n + 1]`` and the
        position of each edge, int64. A column without a positive weight has
        none.

    Raises:
        RuntimeError: If operands are not what the kernel reads, or an index
            is out of range.
        ValueError: If ``kernel`` is not loaded, or a role is not known.

    Example:
        >>> kernel = EdgeKernel(unit).loaded.number  # doctest: +SKIP
        >>> sample_by_kernel(
        ...     indptr, indices, cols, kernel, [values], ['edge'], key
        ... )  # doctest: +SKIP
    """
    op = 'sample_by_kernel'
    if not is_loaded(kernel):
        raise ValueError(
            f"{op}: 'kernel' must be loaded in this process (got {kernel!r})"
        )
    unknown = [role for role in roles if role not in ROLES]
    if unknown:
        raise ValueError(
            f"{op}: 'roles' must be of {', '.join(ROLES)} (got {unknown[0]!r})"
        )
    return _check.call(
        torch.ops.gsample.sample_by_kernel.default,
        indptr,
        indices,
        cols,
        kernel,
        list(operands),
        [ROLES.index(role) for role in roles],
        key,
        call_id,
        id=id,
        before=before,
        num_rows=num_rows,
        num_threads=num_threads,
    )


@torch.library.register_fake('gsample::sample_by_kernel')
def _fake(indptr, indices, cols, kernel, operands, roles, key, *_, **__):
    ptr = indptr.new_empty(cols.shape[0] + 1)
    return ptr, cols.new_empty(dynamic_size())
