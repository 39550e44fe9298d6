"""The one reader of edges in the formats of other libraries."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from torch_gsample.csc import CSC
from torch_gsample.ops._check import INDEX_DTYPES


@dataclass(frozen=True, eq=False)
class Adjacency:
    """Edges as another library stores them: rows are sources.

    Args:
        layout (str): ``'coo'``, ``'csc'`` or ``'csr'``.
        row (torch.Tensor): The source of each edge; pointers of ``'csr'``.
        col (torch.Tensor): Its destination; pointers of ``'csc'``.
        shape (Tuple[int, int], optional): Sources and destinations, if known.
        value (torch.Tensor, optional): The value of each edge.
        edge_id (torch.Tensor, optional): The original edge at each position.
        is_sorted (bool, optional): Whether ``'coo'`` is sorted by ``col``.
    """

    layout: Literal['coo', 'csc', 'csr']
    row: Tensor
    col: Tensor
    shape: tuple[int, int] | None = None
    value: Tensor | None = None
    edge_id: Tensor | None = None
    is_sorted: bool = False

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of sources and of destinations, at least."""
        if self.shape is not None:
            return self.shape
        rows, cols = (
            int(end.max()) + 1 if end.numel() else 0
            for end in (self.row, self.col)
        )
        return rows, cols

    def transpose(self) -> 'Adjacency':
        """Returns the edges with sources and destinations exchanged."""
        layouts: Any = {'csc': 'csr', 'csr': 'csc'}
        return replace(
            self,
            layout=layouts.get(self.layout, self.layout),
            row=self.col,
            col=self.row,
            shape=None if self.shape is None else self.shape[::-1],
            is_sorted=False,
        )

    def cpu(self) -> 'Adjacency':
        """Returns the edges in the memory of the host."""
        return replace(self, row=self.row.cpu(), col=self.col.cpu())

    def edge_index(self) -> Tensor:
        """Returns the edges as ``[2, num_edges]``, in their order."""
        row, col = self.row, self.col
        if self.layout == 'csr':
            row = CSC(row, col, 0).col()
        elif self.layout == 'csc':
            col = CSC(col, row, 0).col()
        return torch.stack([row, col])

    def csc(
        self,
        num_rows: int,
        num_cols: int,
        *,
        is_sorted: bool = False,
        index_dtype: torch.dtype | None = None,
        name: str = 'graph',
    ) -> CSC:
        """Returns compressed columns, after checks.

        Args:
            num_rows (int): Number of sources.
            num_cols (int): Number of destinations.
            is_sorted (bool, optional): Whether ``'coo'`` is sorted by
                destination, if it does not say so itself.
            index_dtype (torch.dtype, optional): See :class:`CSC`.
            name (str, optional): Name of the graph in errors.

        Raises:
            IndexError: If a node is out of range.
            ValueError: If pointers are malformed, or ``is_sorted`` is wrong.
        """
        row, col = self.row, self.col
        if self.layout == 'coo':
            is_sorted = is_sorted or self.is_sorted
            return CSC.from_coo(
                row,
                col,
                num_rows,
                num_cols,
                is_sorted=is_sorted,
                index_dtype=index_dtype,
            )
        by_column = self.layout == 'csc'
        out = CSC.from_compressed(
            *((col, row, num_rows, num_cols) if by_column else ()),
            *(() if by_column else (row, col, num_cols, num_rows)),
            edge_id=self.edge_id,
            index_dtype=index_dtype,
            name=name,
        )
        return out if by_column else out.transpose()


@contextmanager
def naming_edges(op: str, argument: str, owner: str = '') -> Iterator[None]:
    """Names a caller's ``[2, num_edges]`` in an error of ``coo_to_csc``."""
    try:
        yield
    except (IndexError, ValueError) as error:
        text = str(error).replace('CSC.from_coo:', f'{op}:')
        for i, end in enumerate(('row', 'col')):
            text = text.replace(
                f"coo_to_csc: '{end}'",
                f"{op}: '{argument}[{i}]'{owner and f' of {owner}'}",
            )
        raise type(error)(text) from None


def read_adjacency(
    name: str,
    argument: str,
    source: Any,
    *,
    transposed: bool | None = None,
    kinds: str = 'an ',
) -> Adjacency:
    """Reads edges in any format but PyG's data.

    Args:
        name (str): Who reads them, for messages.
        argument (str): What it is called there.
        source: An ``edge_index`` or ``EdgeIndex``, a ``SparseTensor`` of
            torch-sparse, a ``torch.sparse`` tensor in COO, CSR or CSC layout,
            a SciPy matrix, a :class:`CSC`, or a ``SparseSample``.
        transposed (bool, optional): Whether rows of a matrix are destinations,
            as in ``adj_t``; if not given, those of a ``SparseTensor`` are.
        kinds (str, optional): Other formats that the caller reads, for errors.

    Raises:
        TypeError: If the format or a dtype is not supported.
        ValueError: If an ``edge_index`` has another shape.
    """
    if isinstance(source, CSC):
        shape = source.num_rows, source.num_cols
        return Adjacency(
            'csc',
            source.indices,
            source.indptr,
            shape,
            edge_id=source.edge_id,
        )
    if hasattr(source, '_by_column'):  # a SparseSample
        matrix = source._by_column()
        ends = matrix.csc.indices, matrix.csc.indptr
        ids = matrix._known_ids()
        return Adjacency('csc', *ends, matrix.shape, matrix.value, ids)
    if isinstance(source, Tensor) and source.layout == torch.strided:
        return _edge_index(name, argument, source)
    if isinstance(source, Tensor):
        out = _torch_sparse(name, source)
    elif hasattr(source, 'csr') and hasattr(source, 'sparse_sizes'):
        transposed = transposed is not False
        out = Adjacency('csr', *_of_sparse_tensor(source))
    elif hasattr(source, 'tocsc'):
        matrix = source.tocsc()
        out = Adjacency(
            'csc',
            torch.from_numpy(matrix.indices),
            torch.from_numpy(matrix.indptr),
            matrix.shape,
            torch.from_numpy(matrix.data),
        )
    else:
        raise TypeError(
            f"{name}: '{argument}' must be {kinds}edge_index, EdgeIndex, "
            'SparseTensor, torch.sparse tensor, SciPy matrix, CSC or '
            f'SparseSample (got {type(source).__name__})'
        )
    return out.transpose() if transposed else out


def _edge_index(name: str, argument: str, source: Tensor) -> Adjacency:
    if source.dim() != 2 or source.shape[0] != 2:
        raise ValueError(
            f"{name}: '{argument}' must have shape [2, num_edges] (got "
            f'{list(source.shape)})'
        )
    if source.dtype not in INDEX_DTYPES:
        raise TypeError(
            f"{name}: '{argument}' must be int32 or int64 (got {source.dtype})"
        )
    size = getattr(source, 'sparse_size', None)  # of an EdgeIndex
    shape: Any = (None, None) if size is None else tuple(size())
    as_tensor = getattr(source, 'as_tensor', None)
    row, col = source if as_tensor is None else as_tensor()
    return Adjacency(
        'coo',
        row,
        col,
        None if None in shape else shape,
        is_sorted=getattr(source, 'is_sorted_by_col', False),
    )


def _torch_sparse(name: str, source: Tensor) -> Adjacency:
    shape: Any = tuple(source.shape)
    if source.layout == torch.sparse_coo:
        source = source.coalesce()
        row, col = source.indices()
        return Adjacency('coo', row, col, shape, source.values())
    if source.layout == torch.sparse_csr:
        row, col = source.crow_indices(), source.col_indices()
        return Adjacency('csr', row, col, shape, source.values())
    if source.layout == torch.sparse_csc:
        row, col = source.row_indices(), source.ccol_indices()
        return Adjacency('csc', row, col, shape, source.values())
    raise TypeError(
        f'{name}: a torch.sparse tensor must be COO, CSR or CSC (got '
        f'{source.layout})'
    )


def _of_sparse_tensor(source: Any) -> tuple[Any, ...]:
    # Not its columns: torch-sparse does not sort them stably.
    indptr, indices, value = source.csr()
    return indptr, indices, tuple(source.sparse_sizes()), value
