"""A graph on disk as a ``SparseSample``."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling as is_compiling

from torch_gsample import ops
from torch_gsample.csc import CSC
from torch_gsample.ops import Walks
from torch_gsample.ops._check import node_ids
from torch_gsample.ops._walk_arguments import length as check_length
from torch_gsample.rng import current_program
from torch_gsample.sparse_sample import SparseSample, extract
from torch_gsample.storage.matrices.columns import (
    StoredColumns,
    StoredCSC,
    StoredIds,
    StoredVector,
)
from torch_gsample.storage.matrices.deferred import Deferred
from torch_gsample.storage.matrices.edges import StoredEdges
from torch_gsample.storage.matrices.operators import (
    stored_columns,
    stored_frontier,
    stored_metapath,
    stored_node2vec,
    stored_trees,
    stored_walk,
)
from torch_gsample.storage.matrices.refusals import refuse
from torch_gsample.storage.matrices.steps import of_columns
from torch_gsample.storage.matrices.stored_walks import StoredWalks, put


class StoredMatrix(Deferred):
    """All edges of a relation on disk; see :meth:`ChunkedGraph.matrix`.

    An extract is read at its first use, and is a matrix in memory. See
    :class:`Deferred` for its arguments, arithmetic and reductions.
    """

    __slots__ = ()

    @property
    def _disk(self) -> 'StoredMatrix':
        return self

    def _kind(self) -> Any:
        return SparseSample

    def _lists(self, name: str, by_column: bool) -> StoredEdges:
        """Returns the edges by column or by row."""
        if by_column is not self._is_transposed:
            return self._cols
        if self._rows is None:
            what = 'columns' if by_column else 'rows'
            raise ValueError(
                f'SparseSample: {name} needs stored {what} of a matrix on '
                "disk: write them with 'graph.write_rows()', or use 'A.T'"
            )
        return self._rows

    def _ids(self, edges: StoredEdges, position: Tensor) -> Any:
        """Returns the ids of edges, read on demand."""
        if edges is not self._cols:
            positions = StoredVector(edges, 'edge_id', position)
            if not self._cols.has_ids:
                return positions
            return StoredIds(self._cols, positions)
        return (
            StoredVector(edges, 'edge_id', position) if edges.has_ids else None
        )

    def operands(self) -> list[Any]:
        """Returns the operands of its values."""
        return [step.operand for step in self._steps.steps]

    def check_rows(self) -> None:
        """Checks that walks along edges are possible.

        Raises:
            ValueError: If the rows are not stored.
        """
        self._lists('a walk along edges', False)

    # Extract.

    def _take_cols(self, cols: Tensor) -> StoredColumns:  # type: ignore
        edges = self._lists('A[:, cols]', True)
        indptr, position = stored_columns(edges.pointers, cols)
        weights = None
        if self._steps.is_weighted:
            weights = StoredVector(edges, 'weight', position)
        rows = StoredVector(edges, 'neighbor', position)
        steps = self._steps.turned() if self._is_transposed else self._steps
        return StoredColumns(
            StoredCSC(indptr, rows, self.num_rows),
            weights,
            self._ids(edges, position),
            steps,
            cols,
            cols,
        )

    def _take_rows(self, rows: Tensor, cols: Tensor | None) -> Any:
        if self._is_transposed:  # its rows are columns of `T`
            if cols is None:
                return self.T._take_cols(rows).T
            return extract.take_rows(self.T, cols, rows).T
        if cols is not None:
            return extract.take_rows(self._take_cols(cols), rows)
        edges = self._lists('A[rows, :]', False)
        indptr, position = stored_columns(edges.pointers, rows)
        # Sorted by position in the columns; a repeated row keeps its order.
        place = StoredVector(edges, 'edge_id', position).read()
        order = place.argsort(stable=True)
        position, place = position[order], place[order]
        local = CSC(indptr, position, rows.shape[0]).col(torch.int64)[order]
        col = StoredVector(edges, 'neighbor', position).read().to(torch.int64)
        first = indptr.new_zeros(1)
        counts = torch.bincount(col, minlength=self.num_cols)
        known: Any = place
        if self._cols.has_ids:
            known = StoredVector(self._cols, 'edge_id', place)
        out = SparseSample(
            CSC(torch.cat([first, counts.cumsum(0)]), local, rows.shape[0]),
            None,
            (rows.shape[0], self.num_cols),
            StoredVector(edges, 'weight', position).read()
            if self._steps.is_weighted
            else None,
            known,
            rows,
        )
        return of_columns(out, self._steps.of_rows(rows), None)

    def induce(  # type: ignore[override]
        self, nodes: Tensor, batch: Tensor | None = None
    ) -> SparseSample:
        """Reads the edges between nodes; see :meth:`SparseSample.induce`."""
        distinct, local = ops.unique_nodes(nodes, self.num_cols)
        part = self._take_cols(distinct)
        row, col, edge = ops.induce_subgraph(
            part.csc.indptr,
            part.csc.indices,
            self.num_rows,
            nodes,
            local,
            batch,
            batch,
        )
        indptr = torch.searchsorted(col, torch.arange(nodes.shape[0] + 1))
        size = nodes.shape[0]
        layout = CSC(indptr, row, size)
        shape = size, size
        return extract.of_edges(part, layout, shape, edge, nodes, nodes)

    # Walk.

    def random_walk(
        self,
        seeds: Tensor,
        length: int,
        restart: float = 0.0,
        probs: Any = None,
    ) -> Walks:
        """Reads one edge per step; see :meth:`SparseSample.random_walk`."""
        edges, seeds = self._walked('random_walk', seeds, length)
        weighted = self._is_weighted('random_walk', probs)
        key, call_id = current_program()
        nodes, taken = stored_walk(
            edges.handle, seeds, length, key, call_id, restart, weighted
        )
        return self._walks(edges, nodes, taken)

    def node2vec_walk(
        self,
        seeds: Tensor,
        length: int,
        p: float,
        q: float,
        probs: Any = None,
    ) -> Walks:
        """Reads visited columns; see :meth:`SparseSample.node2vec_walk`."""
        edges, seeds = self._walked('node2vec_walk', seeds, length)
        weighted = self._is_weighted('node2vec_walk', probs)
        key, call_id = current_program()
        nodes, taken = stored_node2vec(
            edges.handle, seeds, length, p, q, key, call_id, weighted
        )
        return self._walks(edges, nodes, taken)

    def frontier_walk(self, seeds: Tensor, length: int) -> Walks:
        """Reads one edge per step; see :meth:`SparseSample.frontier_walk`."""
        edges, seeds = self._walked('frontier_walk', seeds, length)
        key, call_id = current_program()
        nodes, taken = stored_frontier(
            edges.handle, seeds, length, key, call_id
        )
        return self._walks(edges, nodes, taken)

    def _walked(
        self, name: str, seeds: Tensor, length: int
    ) -> tuple[StoredEdges, Tensor]:
        if self.num_rows != self.num_cols:
            raise ValueError(
                f'{name}: the matrix must be square, as walks use its '
                f'columns as rows (got shape {list(self.shape)})'
            )
        check_length(name, length)
        seeds = node_ids(name, 'seeds', seeds, self.num_rows)
        return self._lists(name, False), seeds

    def _is_weighted(self, name: str, probs: Any) -> bool:
        if probs is None:
            return False
        plain = isinstance(probs, StoredMatrix) and not probs._steps.steps
        if not plain or probs._cols is not self._cols:
            raise ValueError(
                f"{name}: 'probs' of a matrix on disk must be None, or the "
                'matrix itself for its stored weights (got '
                f'{type(probs).__name__})'
            )
        return probs._steps.is_weighted

    def _walks(
        self, edges: StoredEdges, nodes: Tensor, taken: Tensor
    ) -> Walks:
        """Returns walks whose edge ids are read on demand."""
        ids = self._ids(edges, taken[taken >= 0])
        if ids is None:
            return Walks(nodes, taken)
        if is_compiling():  # dropped if unused
            return Walks(nodes, put(taken, ids))
        return StoredWalks(nodes, taken, ids)

    def metapath_walk(
        self,
        relations: Sequence['StoredMatrix'],
        path: Sequence[int],
        seeds: Tensor,
        key: Tensor,
        call_id: int,
    ) -> Walks:
        """See :func:`torch_gsample.ops.metapath_walk`.

        Args:
            relations (List[StoredMatrix]): The relations.
            path (List[int]): The relation of each step.
            seeds (torch.Tensor): int64 ``[num_seeds]``.
            key (torch.Tensor): int64 ``[1, 3]``.
            call_id (int): Call id of the draw.
        """
        lists = [r._lists('metapath_walk', False) for r in relations]
        seeds = node_ids('metapath_walk', 'seeds', seeds, self.num_rows)
        handles = [edges.handle for edges in lists]
        return Walks(*stored_metapath(handles, path, seeds, key, call_id))

    def sample_trees(
        self, seeds: Tensor, fanouts: list[int], replace: bool
    ) -> tuple[Tensor, Tensor]:
        """Samples the nodes of neighbourhoods; see ``shadow_nodes``."""
        edges = self._lists('shadow', True)
        key, call_id = current_program()
        for _ in fanouts[1:]:
            current_program()  # one call id per hop
        return stored_trees(
            edges.handle, seeds, fanouts, key, call_id, replace
        )

    # Move.

    def share_memory_(self) -> 'StoredMatrix':
        """Does nothing: each process opens the files."""
        return self

    def cpu(self) -> 'StoredMatrix':
        """Returns the matrix."""
        return self

    def stats(self) -> dict[str, Any]:
        """Returns the read counters of this process for the matrix.

        Returns:
            Dict[str, Any]: ``plans``, the number of reads that were fully
            ``'cached'``, ``'random'``, ``'merged'`` (over short gaps) or a
            ``'stream'``; their ``requests`` and ``bytes`` by the disk model.
        """
        parts = [x.counts for x in self._opened()]
        plans: Counter[str] = sum((p.plans for p in parts), Counter())
        return {
            'plans': dict(plans),
            'requests': sum(p.requests for p in parts),
            'bytes': sum(p.bytes for p in parts),
        }

    def log_reads(self) -> None:
        """Starts to log each read, for ``explain``."""
        for edges in self._opened():
            edges.counts.log = []

    def logged_reads(self) -> list[str]:
        """Stops logging, and returns a line for each read."""
        out = []
        for edges in self._opened():
            out += [f'{edges.path.name}: {x}' for x in edges.counts.log or ()]
            edges.counts.log = None
        return out

    def _opened(self) -> list[StoredEdges]:
        return [x for x in (self._cols, self._rows) if x is not None]

    def __repr__(self) -> str:
        return (
            f'{type(self).__name__}(shape={list(self.shape)}, '
            f'num_edges={self.num_edges}, path={str(self._cols.path)!r})'
        )


refuse(StoredMatrix)
