"""How a ``SparseSample`` is made of other formats."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.ops._check import is_known
from torch_gsample.sparse_sample.errors import call_as
from torch_gsample.sparse_sample.layout import Layout

if TYPE_CHECKING:
    from torch_gsample.sparse_sample.matrix import SparseSample


class Build:
    """The constructors."""

    __slots__ = ()

    @classmethod
    def from_coo(
        cls,
        row: Tensor,
        col: Tensor,
        value: Tensor | None = None,
        shape: tuple[int, int] | None = None,
    ) -> 'SparseSample':
        """Makes a matrix of edges in any order.

        Values and :attr:`edge_id` refer to edges in the given order.

        Args:
            row (torch.Tensor): int32 or int64 ``[num_edges]``, sources.
            col (torch.Tensor): int32 or int64 ``[num_edges]``, destinations.
            value (torch.Tensor, optional): ``[num_edges]`` or
                ``[num_edges, F]``.
            shape (Tuple[int, int], optional): Number of rows and columns; a
                square one that holds all edges if not given.

        Raises:
            IndexError: If a node is out of range.
            ValueError: If lengths differ.
        """
        if shape is None:
            size = max(
                (int(x.max()) + 1 for x in (row, col) if x.numel() > 0),
                default=0,
            )
            shape = size, size
        indptr, indices, perm = call_as(
            'from_coo', ops.coo_to_csc, row, col, *shape
        )
        if value is not None:
            _check_value('from_coo', value, perm.numel())
            value = value.index_select(0, perm)
        return cls(Layout(indptr, indices), None, shape, value, perm)  # type: ignore

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Tensor,
        value: Tensor | None = None,
        num_nodes: int | tuple[int, int] | None = None,
    ) -> 'SparseSample':
        """Makes a matrix of PyG's ``edge_index``.

        Args:
            edge_index (torch.Tensor): int64 ``[2, num_edges]``, sources and
                destinations.
            value (torch.Tensor, optional): ``[num_edges]`` or
                ``[num_edges, F]``.
            num_nodes (int or Tuple[int, int], optional): Number of nodes, or
                of sources and destinations.

        Raises:
            IndexError: If a node is out of range.
            ValueError: If shapes do not fit.

        Example:
            >>> from torch_gsample import SparseSample
            >>> edge_index = torch.tensor([[0, 1], [1, 0]])
            >>> SparseSample.from_edge_index(edge_index).to_dense()
            tensor([[0., 1.],
                    [1., 0.]])
        """
        if edge_index.dim() != 2 or edge_index.shape[0] != 2:
            raise ValueError(
                "from_edge_index: 'edge_index' must have shape [2, num_edges] "
                f'(got {list(edge_index.shape)})'
            )
        if isinstance(num_nodes, int):
            num_nodes = num_nodes, num_nodes
        row, col = edge_index.as_subclass(Tensor)
        return cls.from_coo(row, col, value, num_nodes)

    @classmethod
    def from_csc(
        cls,
        indptr: Tensor,
        indices: Tensor,
        value: Tensor | None = None,
        num_rows: int | None = None,
    ) -> 'SparseSample':
        """Takes over compressed columns, after checks.

        Args:
            indptr (torch.Tensor): int32 or int64 ``[num_cols + 1]``.
            indices (torch.Tensor): int32 or int64 ``[num_edges]``, rows.
            value (torch.Tensor, optional): ``[num_edges]`` or
                ``[num_edges, F]``.
            num_rows (int, optional): Number of rows; that of columns if not
                given.

        Raises:
            IndexError: If a row is out of range.
            ValueError: If ``indptr`` is malformed, or lengths differ.
        """
        return cls._of_pointers('from_csc', indptr, indices, value, num_rows)

    @classmethod
    def _of_pointers(
        cls,
        name: str,
        indptr: Tensor,
        indices: Tensor,
        value: Tensor | None,
        num_rows: int | None,
    ) -> 'SparseSample':
        num_cols = indptr.numel() - 1
        num_rows = num_cols if num_rows is None else num_rows
        call_as(
            name, ops.check_csc, indptr, indices, num_rows, name='the matrix'
        )
        if value is not None:
            _check_value(name, value, indices.numel())
        if indptr.dtype == torch.int32 and indices.dtype == torch.int64:
            indptr = indptr.to(torch.int64)
        layout = Layout(indptr.contiguous(), indices.contiguous())
        return cls(layout, None, (num_rows, num_cols), value)  # type: ignore

    @classmethod
    def from_csr(
        cls,
        indptr: Tensor,
        indices: Tensor,
        value: Tensor | None = None,
        num_cols: int | None = None,
    ) -> 'SparseSample':
        """Takes over compressed rows: the transpose of :meth:`from_csc`."""
        return cls._of_pointers('from_csr', indptr, indices, value, num_cols).T

    @classmethod
    def from_data(
        cls, data: Any, edge_type: Any = None, value: Any = None
    ) -> 'SparseSample':
        """Makes a matrix of a graph in another library's format.

        Args:
            data: PyG's ``Data``, ``HeteroData`` (with ``edge_type``) or
                ``EdgeIndex``, a torch-sparse ``SparseTensor`` (read as
                ``adj_t``: rows are destinations), a ``torch.sparse`` tensor
                in COO, CSR or CSC layout, a SciPy matrix, or a
                :class:`torch_gsample.CSC`.
            edge_type (Tuple[str, str, str], optional): The relation.
            value (str or torch.Tensor, optional): The values, or the name of
                an edge attribute that holds them.

        Raises:
            TypeError: If the format is not known.
            ValueError: If the graph has no edges to read.
        """
        from torch_gsample.sparse_sample.sources import read_source

        return read_source(cls, data, edge_type, value)


def _check_value(name: str, value: Tensor, num_edges: int) -> None:
    if value.dim() == 0 or is_known(value.shape[0] != num_edges):
        raise ValueError(
            f"{name}: 'value' must have {num_edges} rows, one for each edge "
            f'(got shape {list(value.shape)})'
        )
