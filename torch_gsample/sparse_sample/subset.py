"""What is chosen of a ``SparseSample`` without chance."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.sparse_sample.extract import ids_at
from torch_gsample.sparse_sample.layout import Layout

if TYPE_CHECKING:
    from torch_gsample.sparse_sample.matrix import SparseSample


class Subset:
    """The greatest edges, and induced subgraphs."""

    __slots__ = ()

    def top(
        self: Any, k: int | Tensor, by: Tensor | None = None
    ) -> 'SparseSample':
        """Keeps the ``k`` greatest edges of each column.

        Of equal ones, the first.

        Args:
            k (int or torch.Tensor): Edges a column: a number, or int64
                ``[num_cols]``. A column with no more keeps all of them.
            by (torch.Tensor, optional): ``[num_edges]``, what is compared; the
                values if not given.

        Raises:
            ValueError: If there is not one number for each edge or column.

        Example:
            >>> from torch_gsample import SparseSample
            >>> A = SparseSample.from_coo(
            ...     torch.tensor([0, 1, 2, 0]),
            ...     torch.tensor([0, 0, 0, 1]),
            ...     torch.tensor([1., 3., 2., 5.]),
            ... )
            >>> A.top(2).to_dense()[:, :2]
            tensor([[0., 5.],
                    [3., 0.],
                    [2., 0.]])
        """
        by = (self.values() if by is None else by).detach()
        if by.shape != (self.num_edges,):
            raise ValueError(
                f"top: 'by' must have {self.num_edges} elements, one for each "
                f'edge (got shape {list(by.shape)})'
            )
        column, degree = self._index(0), self.degree(0)
        if isinstance(k, Tensor):
            if k.shape != degree.shape:
                raise ValueError(
                    f"top: 'k' must have {self.num_cols} elements, one for "
                    f'each column (got shape {list(k.shape)})'
                )
            k = k[column]
        order = by.argsort(descending=True, stable=True)
        order = order[column[order].argsort(stable=True)]
        start = degree.cumsum(0) - degree
        rank = torch.empty_like(order)
        place = torch.arange(order.numel(), device=order.device)
        rank[order] = place - start[column[order]]
        return self.masked(rank < k)

    def induce(
        self: Any, nodes: Tensor, batch: Tensor | None = None
    ) -> 'SparseSample':
        """Returns the edges between nodes of a square matrix.

        Args:
            nodes (torch.Tensor): int64 ``[n]``, without duplicates in a batch.
            batch (torch.Tensor, optional): int64 ``[n]``; edges only connect
                nodes of the same batch, and a node of two batches is in both.

        Returns:
            SparseSample: ``[n, n]``; with ``batch``, block by block what
            ``A[nodes, nodes]`` is without.

        Example:
            >>> from torch_gsample import SparseSample
            >>> A = SparseSample.from_edge_index(
            ...     torch.tensor([[0, 1, 2], [1, 2, 0]])
            ... )
            >>> nodes = torch.tensor([0, 1, 0, 2])
            >>> A.induce(nodes, torch.tensor([0, 0, 1, 1])).to_edge_index()
            tensor([[0, 3],
                    [1, 2]])
        """
        layout = self.csc
        row, col, edge = ops.induce_subgraph(
            layout.indptr,
            layout.indices,
            self.num_rows,
            nodes,
            nodes,
            batch,
            batch,
        )
        # Edges come column by column.
        places = torch.arange(nodes.numel() + 1, device=col.device)
        indptr = torch.searchsorted(col, places)
        return self._of_csc(
            Layout(indptr, row),
            (nodes.numel(), nodes.numel()),
            edge,
            ids_at(self.row_ids, nodes),
            ids_at(self.col_ids, nodes),
        )
