"""``SparseSample``: its parts, and what can be extracted from it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling as is_compiling

from torch_gsample import ops, placement
from torch_gsample.list_cache import keep_lists
from torch_gsample.ops._check import as_int64
from torch_gsample.sparse_sample.build import Build
from torch_gsample.sparse_sample.compute import Compute
from torch_gsample.sparse_sample.convert import Convert
from torch_gsample.sparse_sample.extract import Extract
from torch_gsample.sparse_sample.layout import Layout
from torch_gsample.sparse_sample.product import Product
from torch_gsample.sparse_sample.select import Select
from torch_gsample.sparse_sample.show import Show
from torch_gsample.sparse_sample.subset import Subset
from torch_gsample.sparse_sample.walk import Walk


class SparseSample(
    Build, Extract, Compute, Product, Select, Subset, Walk, Convert, Show
):
    r"""A sparse matrix whose entries are edges.

    Rows are sources and columns are destinations: ``A[u, v]`` is the edge
    ``u -> v``, and ``A[:, seeds]`` holds the in-edges of ``seeds``. A sampler
    *extracts* a part of the matrix, *computes* with its values, *selects* at
    random, and *finalizes* the result: the model of `"gSampler: General and
    Efficient GPU-Based Graph Sampling for Graph Learning"
    <https://doi.org/10.1145/3600006.3613168>`_ (SOSP 2023).

    Matrices are made by :meth:`from_edge_index`, :meth:`from_csc`,
    :meth:`from_csr`, :meth:`from_coo` and :meth:`from_data`. ``dim`` names the
    dimension that is reduced, as in torch: ``A.sum(dim=0)`` has one number a
    column. Gradients flow to the values of edges and to dense operands.

    Args:
        csc (Layout, optional): Its compressed columns.
        csr (Layout, optional): Its compressed rows. One of the two is needed;
            the other one is made when it is asked for.
        shape (Tuple[int, int]): Number of rows and of columns.
        value (torch.Tensor, optional): ``[num_edges]`` or
            ``[num_edges, F]``, ones if not given.
        edge_id (torch.Tensor, optional): ``[num_edges]``, the edges of the
            original graph; their positions if not given.
        row_ids (torch.Tensor, optional): ``[num_rows]``, the node of each row
            in the original graph; its number if not given.
        col_ids (torch.Tensor, optional): ``[num_cols]``, as ``row_ids``.

    Example:
        >>> import torch
        >>> edge_index = torch.tensor([[0, 1, 2, 2], [1, 2, 0, 1]])
        >>> A = SparseSample.from_edge_index(edge_index)
        >>> A[:, torch.tensor([1])].row()
        tensor([0, 2])
        >>> A.sum(dim=0)
        tensor([1., 2., 1.])
    """

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
        csc: Layout | None,
        csr: Layout | None,
        shape: tuple[int, int],
        value: Tensor | None = None,
        edge_id: Tensor | None = None,
        row_ids: Tensor | None = None,
        col_ids: Tensor | None = None,
    ):
        self._csc, self._csr, self.shape = csc, csr, shape
        self.value, self._edge_id = value, edge_id
        self.row_ids, self.col_ids = row_ids, col_ids

    #: NumPy's arrays and numbers leave arithmetic to the matrix.
    __array_ufunc__ = None

    # Parts.

    @property
    def csc(self) -> Layout:
        """Its compressed columns."""
        if self._csc is not None:
            return self._csc
        assert self._csr is not None
        layout = self._csr.transpose(self.shape[1])
        if not is_compiling():  # a captured program changes no matrix
            layout = self._csc = _where(self._csr, layout)
        return layout

    @property
    def csr(self) -> Layout:
        """Its compressed rows."""
        if self._csr is not None:
            return self._csr
        assert self._csc is not None
        layout = self._csc.transpose(self.shape[0])
        if not is_compiling():
            layout = self._csr = _where(self._csc, layout)
        return layout

    @property
    def _primary(self) -> tuple[Layout, bool]:
        """The layout in whose order values are; whether it is by column."""
        if self._csc is not None and self._csc.perm is None:
            return self._csc, True
        assert self._csr is not None
        return self._csr, False

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
        """Number of edges, those of value 0 included."""
        return self._primary[0].indices.shape[0]

    nnz = num_edges

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the values."""
        if self.value is None:
            return torch.get_default_dtype()
        return self.value.dtype

    @property
    def device(self) -> torch.device:
        """Where its tensors are."""
        return self._primary[0].indices.device

    @property
    def edge_id(self) -> Tensor:
        """The edges of the original graph, int64 ``[num_edges]``."""
        if self._edge_id is None:
            return torch.arange(self.num_edges, device=self.device)
        return self._edge_id

    def coo(self) -> tuple[Tensor, Tensor]:
        """Returns the row and the column of each edge.

        Returns:
            Tuple[torch.Tensor, torch.Tensor]: int64 ``[num_edges]`` each,
            positions in the matrix, in the order of :attr:`value`.
        """
        layout, by_column = self._primary
        minor, major = as_int64(layout.indices), layout.major()
        return (minor, major) if by_column else (major, minor)

    def _index(self, dim: int) -> Tensor:
        """What an entry of a reduction over ``dim`` belongs to: an integer."""
        layout = self._primary[0]
        return layout.major() if self._is_major(dim) else layout.indices

    def _is_major(self, dim: int) -> bool:
        """Whether the edges of an entry of a reduction lie together.

        Dynamo knows ``dim`` as a symbol in functions that it compiles alone,
        and cannot compare booleans of symbols.
        """
        by_column = self._primary[1]
        return by_column if dim == 0 else not by_column

    def values(self) -> Tensor:
        """Returns the values of all edges: ones where none were given."""
        if self.value is None:
            return torch.ones(self.num_edges, device=self.device)
        return self.value

    # Nodes of the original graph.

    def row(self) -> Tensor:
        """Returns the ids of the rows that hold an edge.

        In the order of the rows where these were selected, else in the order
        in which the edges meet them.
        """
        return self._nodes_of(self._index(1), self.row_ids, self.num_rows)

    def column(self) -> Tensor:
        """Returns the ids of the columns that hold an edge."""
        ids = self.col_ids
        if ids is None:
            ids = torch.arange(self.num_cols, device=self.device)
        return self._nodes_of(self._index(0), ids, self.num_cols)

    @staticmethod
    def _nodes_of(index: Tensor, ids: Tensor | None, size: int) -> Tensor:
        if ids is None:
            return ops.unique_nodes(index, size)[0]
        held = torch.zeros(size, dtype=torch.bool, device=index.device)
        held.index_fill_(0, as_int64(index), True)
        return ids[held]

    def row_of_edge(self) -> Tensor:
        """Returns the id of the row of each edge, int64 ``[num_edges]``."""
        index = self._index(1)
        if self.row_ids is None:
            return as_int64(index)
        return self.row_ids.index_select(0, index)

    def column_of_edge(self) -> Tensor:
        """Returns the id of the column of each edge."""
        index = self._index(0)
        if self.col_ids is None:
            return as_int64(index)
        return self.col_ids.index_select(0, index)

    def nodes(self) -> Tensor:
        """Returns the ids of all columns, then of the new rows with edges."""
        cols = self.col_ids
        if cols is None:
            cols = torch.arange(self.num_cols, device=self.device)
        ids = torch.cat([cols, self.row()])
        return ops.unique_nodes(ids)[0]

    def share_memory_(self) -> 'SparseSample':
        """Moves all of its tensors to shared memory."""
        tensors = [self.value, self._edge_id, self.row_ids, self.col_ids]
        for layout in (self._csc, self._csr):
            if layout is not None:
                tensors += [layout.indptr, layout.indices, layout.perm]
        for tensor in tensors:
            if tensor is not None:
                tensor.share_memory_()
        return self

    def pin(self, cache_bytes: int = 0) -> 'SparseSample':
        """Returns the matrix in pinned memory, which GPUs read themselves.

        Memory is registered with CUDA where it is, and stays so as long as
        the result lives, see :func:`torch_gsample.placement.pin`. Seeds (or
        other positions) on a GPU then extract, sample and walk there, from
        the graph where it is: only what they touch crosses the bus. What is
        computed of the whole matrix is computed by the CPU.

        Args:
            cache_bytes (int, optional): Memory of the current GPU for the
                columns that are met most: :func:`ops.neighbor_sample` and
                :func:`ops.sample_hops`, to which compiled layers are fused,
                read them there. Columns are met as rows are.

        Raises:
            RuntimeError: If there is no GPU with a driver.
            ValueError: If this package was built without CUDA, or
                ``cache_bytes`` is negative, or given for a matrix that is not
                square or on a GPU.
        """
        if cache_bytes < 0:
            raise ValueError(
                f"pin: 'cache_bytes' must not be negative (got {cache_bytes})"
            )
        on_cpu = self.device.type == 'cpu'
        if cache_bytes and not (on_cpu and self.num_rows == self.num_cols):
            raise ValueError(
                "pin: 'cache_bytes' needs a square matrix on the CPU (got "
                f'shape {list(self.shape)} on {self.device})'
            )

        def pinned(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else placement.pin(tensor)

        def layout(part: Layout | None) -> Layout | None:
            return None if part is None else part.map(placement.pin)

        out = SparseSample(
            layout(self._csc),
            layout(self._csr),
            self.shape,
            pinned(self.value),
            pinned(self._edge_id),
            pinned(self.row_ids),
            pinned(self.col_ids),
        )
        if cache_bytes:
            keep_lists(out.csc.indptr, out.csc.indices, cache_bytes)
        return out

    # Matrices of the same edges.

    def with_value(self, value: Tensor | None) -> 'SparseSample':
        """Returns the matrix with other values.

        Args:
            value (torch.Tensor, optional): ``[num_edges]`` or
                ``[num_edges, F]``; :obj:`None` for ones.

        Raises:
            ValueError: If the length does not fit.
        """
        if value is not None and value.shape[:1] != (self.num_edges,):
            raise ValueError(
                f"with_value: 'value' must have {self.num_edges} rows, one "
                f'for each edge (got shape {list(value.shape)})'
            )
        return self._of_value(value)

    def _of_value(self, value: Tensor | None) -> 'SparseSample':
        """Is :meth:`with_value` for values that are known to fit."""
        return SparseSample(
            self._csc,
            self._csr,
            self.shape,
            value,
            self._edge_id,
            self.row_ids,
            self.col_ids,
        )

    @property
    def T(self) -> 'SparseSample':
        """The matrix with its edges reversed. Nothing is copied."""
        return SparseSample(
            self._csr,
            self._csc,
            (self.shape[1], self.shape[0]),
            self.value,
            self._edge_id,
            self.col_ids,
            self.row_ids,
        )

    def t(self) -> 'SparseSample':
        """Returns :attr:`T`."""
        return self.T

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        from torch_gsample.sparse_sample.torch_function import HANDLERS

        # By name: while Dynamo traces, functions are not the same objects.
        handler = HANDLERS.get(func.__name__)
        if handler is None:
            return NotImplemented
        return handler(*args, **(kwargs or {}))


def _where(given: Layout, made: Layout) -> Layout:
    """What was made of a layout in pinned memory is there, too."""
    if not placement.is_pinned(given.indices):
        return made
    return made.map(placement.pin)
