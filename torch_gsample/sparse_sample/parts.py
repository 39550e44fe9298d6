"""The tensors of a sparse matrix: base of functions on matrices."""

from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling as is_compiling

from torch_gsample import ops, placement
from torch_gsample.csc import CSC
from torch_gsample.ops._check import as_int64
from torch_gsample.ops._fake import allow_unknown_lengths
from torch_gsample.ops.formats import check_csc
from torch_gsample.sparse_sample.errors import (
    call_as,
    check_tensors,
    check_value,
)


class Parts:
    """The layouts, values and ids of a matrix.

    See :class:`~torch_gsample.SparseSample` for the operations.
    """

    #: Reads extracts and walks of a matrix on disk.
    _disk: Any = None
    #: Whether rows, values and ids are read lazily.
    _is_later = False

    __slots__ = (
        '_csc',
        '_csr',
        '_edge_id',
        'col_ids',
        'row_ids',
        'shape',
        'value',
    )

    def __init__(
        self,
        csc: CSC | None,
        csr: CSC | None,
        shape: tuple[int, int],
        value: Tensor | None = None,
        edge_id: Tensor | None = None,
        row_ids: Tensor | None = None,
        col_ids: Tensor | None = None,
    ):
        self._csc, self._csr, self.shape = csc, csr, shape
        self.value, self._edge_id = value, edge_id
        self.row_ids, self.col_ids = row_ids, col_ids

    @classmethod
    def from_coo(
        cls: type['M'],
        row: Tensor,
        col: Tensor,
        value: Tensor | None = None,
        shape: tuple[int, int] | None = None,
    ) -> 'M':
        """Creates a matrix from edges in any order.

        Values and :attr:`edge_id` refer to the order of the input.

        Args:
            row (torch.Tensor): int32 or int64 ``[num_edges]``, sources.
            col (torch.Tensor): int32 or int64 ``[num_edges]``, destinations.
            value (torch.Tensor, optional): ``[num_edges]`` or
                ``[num_edges, F]``.
            shape (Tuple[int, int], optional): Number of rows and columns;
                default: the smallest square.

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
            check_value('from_coo', value, perm.numel())
            value = value.index_select(0, perm)
        layout = CSC(indptr, indices, shape[0], checked=True)
        return cls(layout, None, shape, value, perm)

    @classmethod
    def from_edge_index(
        cls: type['M'],
        edge_index: Tensor,
        value: Tensor | None = None,
        num_nodes: int | tuple[int, int] | None = None,
    ) -> 'M':
        """Creates a matrix from PyG's ``edge_index``.

        Args:
            edge_index (torch.Tensor): int64 ``[2, num_edges]``, sources and
                destinations.
            value (torch.Tensor, optional): ``[num_edges]`` or
                ``[num_edges, F]``.
            num_nodes (int or Tuple[int, int], optional): Number of nodes, or
                of sources and destinations.

        Raises:
            IndexError: If a node is out of range.
            TypeError: If an argument is not a tensor.
            ValueError: If shapes do not match.

        Example:
            >>> from torch_gsample import SparseSample
            >>> edge_index = torch.tensor([[0, 1], [1, 0]])
            >>> SparseSample.from_edge_index(edge_index).to_dense()
            tensor([[0., 1.],
                    [1., 0.]])
        """
        check_tensors('from_edge_index', edge_index=edge_index, value=value)
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
        cls: type['M'],
        indptr: Tensor,
        indices: Tensor,
        value: Tensor | None = None,
        num_rows: int | None = None,
    ) -> 'M':
        """Creates a matrix from compressed columns, without a copy.

        Args:
            indptr (torch.Tensor): int32 or int64 ``[num_cols + 1]``.
            indices (torch.Tensor): int32 or int64 ``[num_edges]``, rows.
            value (torch.Tensor, optional): ``[num_edges]`` or
                ``[num_edges, F]``.
            num_rows (int, optional): Number of rows; default: the number of
                columns.

        Raises:
            IndexError: If a row is out of range.
            ValueError: If ``indptr`` is malformed, or lengths differ.
        """
        return cls._of_pointers('from_csc', indptr, indices, value, num_rows)

    @classmethod
    def from_csr(
        cls: type['M'],
        indptr: Tensor,
        indices: Tensor,
        value: Tensor | None = None,
        num_cols: int | None = None,
    ) -> 'M':
        """Creates a matrix from compressed rows; see :meth:`from_csc`."""
        return cls._of_pointers('from_csr', indptr, indices, value, num_cols).T

    @classmethod
    def _of_pointers(
        cls: type['M'],
        name: str,
        indptr: Tensor,
        indices: Tensor,
        value: Tensor | None,
        num_rows: int | None,
    ) -> 'M':
        num_cols = indptr.numel() - 1
        num_rows = num_cols if num_rows is None else num_rows
        call_as(name, check_csc, indptr, indices, num_rows, name='the matrix')
        if value is not None:
            check_value(name, value, indices.numel())
        if indptr.dtype == torch.int32 and indices.dtype == torch.int64:
            indptr = indptr.to(torch.int64)
        layout = CSC(
            indptr.contiguous(), indices.contiguous(), num_rows, checked=True
        )
        return cls(layout, None, (num_rows, num_cols), value)

    @property
    def csc(self) -> CSC:
        """The compressed columns."""
        if self._csc is not None:
            return self._csc
        assert self._csr is not None
        layout = self._csr.transpose()
        if not is_compiling():  # capturing must not change the matrix
            layout = self._csc = _placed_as(self._csr, layout)
        return layout

    @property
    def csr(self) -> CSC:
        """The compressed rows."""
        if self._csr is not None:
            return self._csr
        assert self._csc is not None
        layout = self._csc.transpose()
        if not is_compiling():
            layout = self._csr = _placed_as(self._csc, layout)
        return layout

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self.shape[0]

    @property
    def num_cols(self) -> int:
        """Number of columns."""
        return self.shape[1]

    @property
    def num_edges(self) -> int:
        """Number of edges, including those of value 0."""
        return self._stored[0].indices.shape[0]

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the values."""
        if self.value is None:
            return torch.get_default_dtype()
        return self.value.dtype

    @property
    def device(self) -> torch.device:
        """The device of the tensors."""
        return self._stored[0].indices.device

    @property
    def edge_id(self) -> Tensor:
        """Edge ids in the original graph, int64 ``[num_edges]``."""
        if self._edge_id is None:
            return torch.arange(self.num_edges, device=self.device)
        return self._known_ids()

    @property
    def T(self: 'M') -> 'M':
        """The matrix with its edges reversed, without a copy."""
        return self._made(
            self._csr,
            self._csc,
            (self.shape[1], self.shape[0]),
            self.value,
            self._edge_id,
            self.col_ids,
            self.row_ids,
        )

    def values(self) -> Tensor:
        """Returns the values of all edges, by default ones."""
        if self.value is None:
            return torch.ones(self.num_edges, device=self.device)
        return self.value

    def coo(self) -> tuple[Tensor, Tensor]:
        """Returns the row and the column of each edge.

        Returns:
            Tuple[torch.Tensor, torch.Tensor]: int64 ``[num_edges]`` each,
            positions in the matrix, in the order of :attr:`value`.
        """
        if is_compiling():
            allow_unknown_lengths()
        layout, by_column = self._stored
        minor, major = as_int64(layout.indices), layout.col(torch.int64)
        return (minor, major) if by_column else (major, minor)

    # For the other modules of this package.

    @property
    def _stored(self) -> tuple[CSC, bool]:
        """The layout in whose order the values are; whether it is the CSC."""
        if self._csc is not None and self._csc.edge_id is None:
            return self._csc, True
        assert self._csr is not None
        return self._csr, False

    def _index(self, dim: int) -> Tensor:
        """Returns the entry of each edge in a reduction over ``dim``."""
        layout = self._stored[0]
        return (
            layout.col(torch.int64) if self._is_major(dim) else layout.indices
        )

    def _is_major(self, dim: int) -> bool:
        """Whether the edges of a reduction's entry are contiguous.

        In functions that Dynamo compiles alone, ``dim`` is a symbol, and
        booleans of symbols cannot be compared.
        """
        by_column = self._stored[1]
        return by_column if dim == 0 else not by_column

    def _made(self: 'M', *parts: Any) -> 'M':
        """Returns a matrix in memory, made from this one."""
        return self._kind()(*parts)

    def _kind(self: 'M') -> type['M']:
        """Returns the class of matrices in memory made from this one."""
        return type(self)

    def _known_ids(self) -> Any:
        """Returns the edge ids, read if they are lazy; None for positions."""
        ids: Any = self._edge_id
        if ids is None or isinstance(ids, Tensor):
            return ids
        return ids.read()

    def _take_cols(self: 'M', cols: Tensor) -> 'M':
        """See ``extract.take_cols``, for a matrix on disk."""
        raise NotImplementedError

    def _take_rows(self: 'M', rows: Tensor, cols: Tensor | None) -> 'M':
        """See ``extract.take_rows``, for a matrix on disk."""
        raise NotImplementedError

    def _take_edges(self: 'M', indptr: Tensor, edge: Tensor) -> 'M':
        """See ``extract.with_edges``, for lazily read edges."""
        raise NotImplementedError

    def _of_value(self: 'M', value: Tensor | None) -> 'M':
        """Returns the matrix with other values, which must fit."""
        return self._made(
            self._csc,
            self._csr,
            self.shape,
            value,
            self._edge_id,
            self.row_ids,
            self.col_ids,
        )


#: Functions of a matrix return one of the same class.
M = TypeVar('M', bound=Parts)


def _placed_as(source: CSC, made: CSC) -> CSC:
    """Pins a layout if it is made from a pinned one."""
    if not placement.is_pinned(source.indices):
        return made
    return made.pin()
