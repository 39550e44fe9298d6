"""Columns of a graph on disk as a matrix whose edges are read on demand.

Positions of edges come in. Only selected edges are read:
``A[:, s].individual_sample(k)`` reads the drawn ones.
"""

from typing import Any

import torch
from torch import Tensor

from torch_gsample.csc import CSC
from torch_gsample.ops.features import select_rows
from torch_gsample.sparse_sample import SparseSample
from torch_gsample.sparse_sample.ids import ids_at
from torch_gsample.storage.matrices.edges import StoredEdges
from torch_gsample.storage.matrices.operators import (
    ARRAYS,
    read_edges,
    stored_columns,
)
from torch_gsample.storage.matrices.steps import Steps, of_columns


class StoredVector:
    """The stored values of some edges, read once, on demand.

    Args:
        edges (StoredEdges): The edges of a graph; kept open.
        array (str): One of :data:`ARRAYS`.
        position (torch.Tensor): int64 ``[n]``, positions of edges.
        data (torch.Tensor, optional): ``[n]``, the values, if already read.
    """

    __slots__ = ('array', 'data', 'edges', 'position')

    def __init__(
        self,
        edges: StoredEdges,
        array: str,
        position: Tensor,
        data: Tensor | None = None,
    ):
        self.edges, self.array = edges, array
        self.position, self.data = position, data

    def read(self) -> Tensor:
        """Returns the values, ``[n]``."""
        data = self.data
        if data is None:
            data = self.data = read_edges(
                self.edges.handle,
                self.position,
                ARRAYS.index(self.array),
                self.edges.dtypes[self.array],
            )
        return data

    def __reduce__(self) -> Any:
        return Tensor.clone, (self.read(),)  # handles belong to a process

    def at(self, index: Tensor) -> 'StoredVector':
        """Returns the values of the edges at positions ``[k]``."""
        data = None if self.data is None else select_rows(self.data, index)
        position = select_rows(self.position, index)
        return StoredVector(self.edges, self.array, position, data)


class StoredIds:
    """Ids of edges found by row, by their positions in columns.

    Args:
        edges (StoredEdges): The columns, which store the ids.
        position (StoredVector): The position of each edge in the columns.
    """

    __slots__ = ('edges', 'position')

    def __init__(self, edges: StoredEdges, position: StoredVector):
        self.edges, self.position = edges, position

    def read(self) -> Tensor:
        """Returns the ids, int64 ``[n]``."""
        return StoredVector(self.edges, 'edge_id', self.position.read()).read()

    def __reduce__(self) -> Any:
        return Tensor.clone, (self.read(),)

    def at(self, index: Tensor) -> 'StoredIds':
        """Returns the ids of the edges at positions ``[k]``."""
        return StoredIds(self.edges, self.position.at(index))


class StoredCSC(CSC):
    """Compressed columns whose rows are read on demand.

    Args:
        indptr (torch.Tensor): int64 ``[num_cols + 1]``.
        rows (StoredVector): The row of each edge.
        num_rows (int): Number of sources.
    """

    def __init__(self, indptr: Tensor, rows: StoredVector, num_rows: int):
        put = object.__setattr__  # it is frozen
        put(self, 'indptr', indptr)
        put(self, 'rows', rows)
        put(self, 'num_rows', num_rows)
        put(self, 'edge_id', None)
        put(self, 'cum_weight', None)
        put(self, 'edge_time', None)
        put(self, 'checked', True)

    @property
    def indices(self) -> Tensor:
        """The row of each edge, ``[num_edges]``."""
        return self.rows.read()  # type: ignore[attr-defined]

    @property
    def num_edges(self) -> int:
        """Number of edges."""
        return self.rows.position.shape[0]  # type: ignore[attr-defined]


class StoredColumns(SparseSample):
    """Selected columns and edges of a graph on disk.

    Args:
        layout (StoredCSC): The edges.
        weights (StoredVector, optional): Their weights.
        ids (StoredVector or StoredIds, optional): Their ids; their positions
            if not given.
        steps (Steps): Operations on their values.
        cols (torch.Tensor): int64 ``[num_cols]``, the columns of the graph.
        col_ids (torch.Tensor): int64 ``[num_cols]``.
        value (torch.Tensor, optional): ``[num_edges]``, the values, if already
            read.
    """

    __slots__ = ('_cols', '_steps', '_value', '_weights')
    _is_later = True

    def __init__(
        self,
        layout: StoredCSC,
        weights: StoredVector | None,
        ids: StoredVector | StoredIds | None,
        steps: Steps,
        cols: Tensor,
        col_ids: Tensor | None,
        value: Tensor | None = None,
    ):
        self._csc, self._csr = layout, None
        self.shape = layout.num_rows, layout.indptr.shape[0] - 1
        self.row_ids, self.col_ids = None, col_ids
        rows: Any = layout.rows  # type: ignore[attr-defined]
        self._edge_id: Any = rows.position if ids is None else ids
        self._weights, self._steps = weights, steps
        self._cols, self._value = cols, value

    def __reduce__(self) -> Any:
        layout = CSC(self.csc.indptr, self.csc.indices, self.num_rows)
        ids, cols = self.edge_id, self.col_ids
        parts = layout, None, self.shape, self.value, ids, None, cols
        return SparseSample, parts

    @property
    def value(self) -> Tensor | None:  # type: ignore[override]
        """The values of the edges; reads them."""
        if self._value is None and (self._weights or self._steps.steps):
            weights = self._weights
            known = None if weights is None else weights.read()
            matrix = SparseSample(self._csc, None, self.shape, known)
            made = of_columns(matrix, self._steps, lambda: self._cols)
            self._value = made.value
        return self._value

    @property
    def num_edges(self) -> int:
        """Number of edges."""
        return self._layout.num_edges

    @property
    def device(self) -> torch.device:
        """The device of its tensors."""
        return self._layout.indptr.device

    @property
    def _layout(self) -> StoredCSC:
        assert isinstance(self._csc, StoredCSC)
        return self._csc

    def _kind(self) -> Any:
        return SparseSample

    def _of_value(  # type: ignore[override]
        self, value: Tensor | None
    ) -> SparseSample:
        if value is None:
            value = torch.ones(self.num_edges, device=self.device)
        ids = self._edge_id
        return StoredColumns(
            self._layout,
            None,
            None if isinstance(ids, Tensor) else ids,
            Steps(False),
            self._cols,
            self.col_ids,
            value,
        )

    def _take_edges(  # type: ignore[override]
        self, indptr: Tensor, edge: Tensor
    ) -> SparseSample:
        return self._with(indptr, edge, self._cols, self.col_ids)

    def _take_cols(self, cols: Tensor) -> SparseSample:  # type: ignore[override]
        indptr, edge = stored_columns(self._layout.indptr, cols)
        taken = select_rows(self._cols, cols)
        return self._with(indptr, edge, taken, ids_at(self.col_ids, cols))

    def _with(
        self, indptr: Tensor, edge: Tensor, cols: Tensor, col_ids: Any
    ) -> SparseSample:
        ids, weights, value = self._edge_id, self._weights, self._value
        rows: Any = self._layout.rows  # type: ignore[attr-defined]
        return StoredColumns(
            StoredCSC(indptr, rows.at(edge), self.num_rows),
            None if weights is None else weights.at(edge),
            None if isinstance(ids, Tensor) else ids.at(edge),
            self._steps,
            cols,
            col_ids,
            None if value is None else select_rows(value, edge),
        )
