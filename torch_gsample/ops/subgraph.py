"""Induced subgraphs."""

import torch
from torch import Tensor

from torch_gsample.ops import _check
from torch_gsample.ops._fake import dynamic_size


def induce_subgraph(
    indptr: Tensor,
    indices: Tensor,
    num_rows: int,
    row_nodes: Tensor,
    col_nodes: Tensor,
    row_batch: Tensor | None = None,
    col_batch: Tensor | None = None,
    *,
    num_threads: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns all edges from ``row_nodes`` to ``col_nodes``.

    Args:
        indptr (torch.Tensor): int32 or int64 ``[num_cols + 1]``.
        indices (torch.Tensor): int32 or int64 ``[num_edges]``.
        num_rows (int): Number of source nodes of the graph.
        row_nodes (torch.Tensor): ``[num_row_nodes]``; the first of duplicates
            gets the edges.
        col_nodes (torch.Tensor): ``[num_col_nodes]``; each duplicate gets the
            edges.
        row_batch (torch.Tensor, optional): ``[num_row_nodes]``, the batch of
            each node; only edges within a batch are returned.
        col_batch (torch.Tensor, optional): ``[num_col_nodes]``.
        num_threads (int, optional): Maximum number of threads; 0 for torch's
            number of threads.

    Returns:
        Tuple[torch.Tensor, torch.Tensor, torch.Tensor]: int64
        ``[num_induced_edges]`` each: position in ``row_nodes``, position in
        ``col_nodes`` and position in ``indices``, column by column.

    Raises:
        IndexError: If a node is not in the graph.

    Example:
        >>> indptr = torch.tensor([0, 2, 3, 3])
        >>> indices = torch.tensor([1, 2, 2])
        >>> nodes = torch.tensor([2, 0])
        >>> induce_subgraph(indptr, indices, 3, nodes, nodes)
        (tensor([0]), tensor([1]), tensor([1]))
    """
    op = 'induce_subgraph'
    device = _check.sampling_device(op, indptr, row_nodes, 'row_nodes')
    indptr, indices = _check.graph(op, indptr, indices, device)
    row_nodes = _check.node_ids(op, 'row_nodes', row_nodes, num_rows, device)
    num_cols = indptr.numel() - 1
    col_nodes = _check.node_ids(op, 'col_nodes', col_nodes, num_cols, device)
    if (row_batch is None) != (col_batch is None):
        raise ValueError(
            f"{op}: 'row_batch' and 'col_batch' must be given together"
        )
    if row_batch is not None and col_batch is not None:
        row_batch = _check.int64_vector(
            op, 'row_batch', row_batch, row_nodes.numel(), device
        )
        col_batch = _check.int64_vector(
            op, 'col_batch', col_batch, col_nodes.numel(), device
        )
    return _check.call(
        torch.ops.gsample.induce_subgraph.default,
        indptr,
        indices,
        num_rows,
        row_nodes,
        col_nodes,
        row_batch,
        col_batch,
        num_threads=num_threads,
    )


@torch.library.register_fake('gsample::induce_subgraph')
def _(indptr, indices, num_rows, row_nodes, *_, **__):
    size = dynamic_size()
    return tuple(row_nodes.new_empty(size) for _ in range(3))
