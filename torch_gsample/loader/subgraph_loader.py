"""Base of our counterparts of PyG's subgraph loaders.

A graph and the indices of a batch come in; induced subgraphs with the
attributes of their nodes and edges go out.
"""

import copy
from dataclasses import replace
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch_geometric.data import Data
from typing_extensions import Unpack

from torch_gsample import rng
from torch_gsample.graph_input import stored_graph
from torch_gsample.loader.adjacency import with_edge_index
from torch_gsample.loader.base import KeyedLoader
from torch_gsample.loader.features import is_wide
from torch_gsample.loader.options import SubgraphOptions
from torch_gsample.ops import gather_rows, induce_subgraph
from torch_gsample.sparse_sample import SparseSample

#: A graph whose edges may be on disk.
SubgraphData: TypeAlias = Data | Any


class SubgraphLoader(KeyedLoader):
    """Makes the batches of a graph by programs on its matrix.

    As in :class:`KeyedLoader`, an iteration is an epoch, and draws of programs
    are a function of (seed, epoch, batch).

    Args:
        data (Data or ChunkedGraph or Tuple[Data, ChunkedGraph]): The graph;
            if its edges are on disk, with or without attributes in memory.
        num_items (int): Number of indices.
        **options (optional): See :class:`ShaDowKHopSampler`.

    Raises:
        TypeError: If ``data`` is not a homogeneous graph.
        ValueError: If it has no edges.
    """

    _edge_id: Any  # of the matrix's edges; None on disk

    def __init__(
        self,
        data: SubgraphData,
        num_items: int,
        **options: Unpack[SubgraphOptions],
    ):
        kwargs: dict[str, Any] = {**options}
        seed = kwargs.pop('seed', None)
        self.seed = rng.draw_seed() if seed is None else seed
        rng.make_key(self.seed)  # checks the seed
        self._init_epochs(seed, kwargs)
        self.data = data
        if kwargs.get('num_workers', 0) > 0:
            if self._edge_id is not None:
                self._edge_id.share_memory_()
            self.matrix.share_memory_()
        super().__init__(
            range(num_items),  # type: ignore[arg-type]
            collate_fn=self.collate_fn,
            **kwargs,
        )

    def _make_sample(self, index: list[int]) -> Data:
        items = torch.tensor(index)
        # A call outside of a loader has no batch id.
        place = rng.current_batch() or (0, rng.hash_ids(items))
        with rng.program_scope(rng.make_key(self.seed, *place)):
            return self._make_batch(items)

    def _make_batch(self, index: Tensor) -> Data:
        raise NotImplementedError

    @property
    def data(self) -> Data:
        """The graph, with an ``edge_index``."""
        return self._data

    @data.setter
    def data(self, data: Any) -> None:
        name = type(self).__name__
        graph = stored_graph(data)
        attributes = check_data(name, data)
        if graph is not None:
            self._data, self._edge_id = attributes, None
            self.matrix = graph.matrix(use_weights=False)
            return
        self._data = _spelled_out(with_edge_index(attributes))
        if self._data.edge_index is None:
            raise ValueError(
                f"{name}: 'data' must have an 'edge_index' or an 'adj_t'"
            )
        matrix = SparseSample.from_data(self._data)
        # Edges have ids by column, so that a column's attributes are
        # adjacent; original ids are looked up only where needed.
        columns = replace(matrix.csc, edge_id=None)
        self.matrix = SparseSample(columns, None, matrix.shape)
        self._edge_id = matrix.edge_id

    def _induce(
        self,
        out: Data,
        nodes: Tensor,
        batch: Tensor | None = None,
        skip: tuple[str, ...] = (),
    ) -> Tensor:
        """Adds the edges between nodes, and all attributes, to a batch.

        Args:
            out (Data): The batch.
            nodes (torch.Tensor): int64 ``[n]``.
            batch (torch.Tensor, optional): int64 ``[n]``, for disjoint
                subgraphs.
            skip (Tuple[str], optional): Attributes to leave out.

        Returns:
            torch.Tensor: int64 ``[num_edges]``, edge ids of the matrix.
        """
        row, col, edge, edge_id = self._edges_between(nodes, batch)
        out.edge_index = torch.stack([row, col])
        for key, value in self.data:
            if key in skip or key in ('edge_index', 'num_nodes'):
                continue
            out[key] = value
            if isinstance(value, Tensor):
                dim = self.data.__cat_dim__(key, value)
                if self.data.is_node_attr(key):
                    out[key] = _take(value, nodes, dim)
                elif self.data.is_edge_attr(key):
                    if edge_id is None:
                        edge_id = self._edge_id[edge]
                    out[key] = _take(value, edge_id, dim)
        return edge

    def _edges_between(
        self, nodes: Tensor, batch: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, Any]:
        """Returns ends of edges, and their ids in the matrix and the data."""
        if self._edge_id is None:  # on disk
            part = self.matrix.induce(nodes, batch)
            return *part.coo(), part.edge_id, part.edge_id
        csc = self.matrix.csc
        ends = induce_subgraph(
            csc.indptr,
            csc.indices,
            self.matrix.num_rows,
            nodes,
            nodes,
            batch,
            batch,
        )
        return *ends, None


def check_data(name: str, data: Any) -> Data:
    """Returns the attributes of a graph whose edges may be on disk.

    Args:
        name (str): The loader.
        data (Data or ChunkedGraph or Tuple[Data, ChunkedGraph]): The graph.

    Raises:
        TypeError: If it is none of these, or has node types.
        ValueError: If both have edges, or their numbers of nodes differ.
    """
    graph, out = stored_graph(data), data
    if graph is not None:
        out = data[0] if isinstance(data, tuple) else Data()
        if list(graph.num_nodes) != [None]:
            raise TypeError(
                f"{name}: 'data' must have one type of nodes (got "
                f'{list(graph.num_nodes)})'
            )
    if not isinstance(out, Data):
        raise TypeError(
            f"{name}: 'data' must be a Data (got {type(out).__name__}); for "
            "edges on disk pass 'data, graph'; for features on disk use "
            "'ShaDowSampler' or 'SaintSampler' in a NeighborLoader"
        )
    if graph is None:
        return out
    if 'edge_index' in out or 'adj_t' in out:
        raise ValueError(
            f"{name}: 'data' must have no edges in addition to those on disk"
        )
    out, size = copy.copy(out), graph.num_nodes[None]
    found = out.num_nodes if list(out.keys()) else size
    if found not in (None, size):
        raise ValueError(
            f"{name}: 'data' must have the {size} nodes of the graph on disk "
            f'(got {found})'
        )
    out.num_nodes = size
    return out


def _take(value: Tensor, index: Tensor, dim: int) -> Tensor:
    if dim == 0 and is_wide(value):
        return gather_rows(value, index)
    return value.index_select(dim, index)


def _spelled_out(data: Data) -> Data:
    """Replaces a ``SparseTensor`` with an ``edge_index`` in its order."""
    if 'adj_t' not in data:
        return data
    data = copy.copy(data)
    target, source, value = data.adj_t.coo()
    del data.adj_t
    data.edge_index = torch.stack([source, target])
    if value is not None and 'edge_weight' not in data:
        data.edge_weight = value
    return data
