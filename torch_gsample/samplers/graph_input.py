"""Reads the graph of a sampler from what PyG calls ``data``.

``Data``, ``HeteroData`` or ``(FeatureStore, GraphStore)`` comes in; node
types, edge types and a :class:`CSC` for each edge type come out.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, FeatureStore, GraphStore, HeteroData
from torch_geometric.data.storage import EdgeStorage
from torch_geometric.sampler.base import DataType
from torch_geometric.typing import EdgeType, NodeType

from torch_gsample.formats import CSC

GraphData = Data | HeteroData | tuple[FeatureStore, GraphStore]


@dataclass
class SamplerGraph:
    """A graph as samplers see it.

    A homogeneous graph has the node type :obj:`None` and the edge type
    :obj:`None`. Node attributes are kept per node type, edge attributes per
    edge type, in the order of the edges of :obj:`csc`.
    """

    data_type: DataType
    node_types: list[NodeType | None]
    edge_types: list[EdgeType | None]
    num_nodes: dict[NodeType | None, int]
    csc: dict[EdgeType | None, CSC]
    #: Edge types whose ids refer to compressed columns, not to edge lists.
    compressed: set[EdgeType | None] = field(default_factory=set)

    @property
    def is_hetero(self) -> bool:
        """Whether there are node and edge types."""
        return self.edge_types != [None]

    def end_types(
        self, edge_type: EdgeType | None
    ) -> tuple[NodeType | None, NodeType | None]:
        """Returns the node types of the sources and of the destinations."""
        if edge_type is None:
            return None, None
        return edge_type[0], edge_type[2]


def read_graph(
    data: GraphData,
    *,
    is_sorted: bool = False,
    index_dtype: torch.dtype | None = None,
) -> SamplerGraph:
    """Converts the edges of ``data`` to columns and checks them.

    Args:
        data (Data or HeteroData or (FeatureStore, GraphStore)): The graph.
            Edges may be stored as ``edge_index`` (a tensor or an
            ``EdgeIndex``), ``adj_t`` or ``adj`` (``SparseTensor``,
            ``torch.sparse_csr`` or ``torch.sparse_csc``).
        is_sorted (bool, optional): Whether ``edge_index`` is sorted by
            destination already.
        index_dtype (torch.dtype, optional): int32 or int64; if not given,
            edge lists become int32 where it suffices, and compressed formats
            stay as they are.

    Raises:
        IndexError: If an edge has a node that does not exist.
        ValueError: If the format is not supported.
    """
    data_type = DataType.from_data(data)
    if data_type == DataType.remote:
        return _read_stores(*data, index_dtype=index_dtype)  # type: ignore
    if data_type == DataType.homogeneous:
        stores = {None: data._store}  # type: ignore[union-attr]
        num_nodes = {None: data.num_nodes}  # type: ignore[union-attr]
    else:
        stores = dict(data.edge_items())  # type: ignore[union-attr]
        num_nodes = {t: data[t].num_nodes for t in data.node_types}  # type: ignore
    graph = SamplerGraph(
        data_type, list(num_nodes), list(stores), num_nodes, {}
    )
    for node_type, size in num_nodes.items():
        if size is None:
            raise ValueError(
                f'read_graph: the number of nodes of {node_type!r} is unknown'
            )
    for edge_type, store in stores.items():
        src, dst = graph.end_types(edge_type)
        csc, compressed = _read_store(
            store,
            (num_nodes[src], num_nodes[dst]),
            is_sorted,
            index_dtype,
            _name(edge_type),
        )
        graph.csc[edge_type] = csc
        if compressed:
            graph.compressed.add(edge_type)
    return graph


def _name(edge_type: EdgeType | None) -> str:
    return 'the graph' if edge_type is None else f'{edge_type}'


def _read_store(
    store: EdgeStorage,
    size: tuple[int, int],
    is_sorted: bool,
    index_dtype: torch.dtype | None,
    name: str,
) -> tuple[CSC, bool]:
    """Returns the columns, and whether they were compressed already."""
    for key in ('adj', 'adj_t'):
        if key in store:
            indptr, indices, perm = _compressed_columns(store[key], key)
            csc = CSC.from_compressed(
                indptr,
                indices,
                *size,
                perm=perm,
                index_dtype=index_dtype,
                name=name,
            )
            return csc, True
    edge_index = store.get('edge_index')
    if edge_index is None:
        edge_index = torch.empty(2, 0, dtype=torch.long)
    if edge_index.is_sparse or edge_index.layout != torch.strided:
        raise ValueError(
            f"read_graph: 'edge_index' of {name} must be dense; store sparse "
            f"tensors as 'adj_t'"
        )
    is_sorted = is_sorted or getattr(edge_index, 'is_sorted_by_col', False)
    row, col = edge_index.as_subclass(Tensor).cpu()
    return CSC.from_coo(
        row, col, *size, is_sorted=is_sorted, index_dtype=index_dtype
    ), False


def _compressed_columns(
    adj: Any, key: str
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Returns the columns of an adjacency (``adj``) or its transpose."""
    transposed = key == 'adj_t'
    if isinstance(adj, Tensor):
        layouts = (torch.sparse_csr, torch.sparse_csc)
        if adj.layout not in layouts:
            raise ValueError(
                f"read_graph: '{key}' must be a SparseTensor, torch.sparse_csr"
                f' or torch.sparse_csc (got {adj.layout})'
            )
        if (adj.layout == torch.sparse_csr) == transposed:
            pointers, plain = (
                (adj.crow_indices(), adj.col_indices())
                if transposed
                else (adj.ccol_indices(), adj.row_indices())
            )
            return pointers.cpu(), plain.cpu(), None
        # Compressed along the other dimension. Values keep their order.
        pointers, plain = (
            (adj.ccol_indices(), adj.row_indices())
            if transposed
            else (adj.crow_indices(), adj.col_indices())
        )
        rows, cols = adj.shape if not transposed else adj.shape[::-1]
        other = CSC.from_compressed(pointers.cpu(), plain.cpu(), cols, rows)
        csc = other.transpose()
        return csc.indptr, csc.indices, csc.perm
    indptr, indices, _ = adj.csr() if transposed else adj.csc()
    perm = None if transposed else adj.storage.csr2csc().cpu()
    return indptr.cpu(), indices.cpu(), perm


def _read_stores(
    feature_store: FeatureStore,
    graph_store: GraphStore,
    index_dtype: torch.dtype | None,
) -> SamplerGraph:
    attrs = graph_store.get_all_edge_attrs()
    edge_types = list(dict.fromkeys(attr.edge_type for attr in attrs))
    if edge_types == [None]:
        row, colptr, perm = graph_store.csc()
        sizes = [a.size for a in attrs if a.size is not None]
        num_nodes = max(sizes[0]) if sizes else _store_size(feature_store)
        csc = CSC.from_compressed(
            colptr,
            row,
            num_nodes,
            num_nodes,
            perm=perm,
            index_dtype=index_dtype,
        )
        return SamplerGraph(
            DataType.remote, [None], [None], {None: num_nodes}, {None: csc}
        )
    from torch_geometric.data.remote_backend_utils import size

    groups = [a.group_name for a in feature_store.get_all_tensor_attrs()]
    node_types = [g for g in groups if isinstance(g, str)]
    for edge_type in edge_types:
        node_types += [edge_type[0], edge_type[2]]
    node_types = list(dict.fromkeys(node_types))
    counts = {t: size(feature_store, graph_store, t) for t in node_types}
    rows, colptrs, perms = graph_store.csc()
    columns = {
        t: CSC.from_compressed(
            colptrs[t],
            rows[t],
            counts[t[0]],
            counts[t[2]],
            perm=perms[t],
            index_dtype=index_dtype,
            name=_name(t),
        )
        for t in edge_types
    }
    return SamplerGraph(
        DataType.remote, node_types, edge_types, counts, columns
    )


def _store_size(feature_store: FeatureStore) -> int:
    for attr in feature_store.get_all_tensor_attrs():
        return feature_store.get_tensor_size(attr)[0]
    raise ValueError(
        'read_graph: the number of nodes is unknown: give the edges of the '
        'graph store a size'
    )


def node_attributes(
    data: GraphData, graph: SamplerGraph, name: str
) -> dict[NodeType | None, Tensor]:
    """Returns the node attribute ``name`` of each node type that has it."""
    if isinstance(data, Data):
        return {None: data[name]} if data.is_node_attr(name) else {}
    if isinstance(data, HeteroData):
        return {t: data[t][name] for t in data.node_types if name in data[t]}
    return _store_attributes(
        data[0], name, lambda g: g is None or isinstance(g, str)
    )


def edge_attributes(
    data: GraphData, graph: SamplerGraph, name: str
) -> dict[EdgeType | None, Tensor]:
    """Returns the edge attribute ``name`` of each edge type that has it.

    Values are in the order of the graph's columns.
    """
    if isinstance(data, Data):
        values = {None: data[name]} if data.is_edge_attr(name) else {}
    elif isinstance(data, HeteroData):
        values = {
            t: store[name] for t, store in data.edge_items() if name in store
        }
    else:
        values = _store_attributes(
            data[0], name, lambda g: isinstance(g, tuple)
        )
    out = {}
    for edge_type, value in values.items():
        csc = graph.csc[edge_type]
        if value.size(0) != csc.num_edges:
            raise ValueError(
                f"'{name}' of {_name(edge_type)} must have {csc.num_edges} "
                f'elements, one for each edge (got {value.size(0)})'
            )
        out[edge_type] = value if csc.perm is None else value[csc.perm]
    return out


def _store_attributes(
    feature_store: FeatureStore, name: str, accepts: Callable[[Any], bool]
) -> dict[Any, Tensor]:
    out = {}
    for attr in feature_store.get_all_tensor_attrs():
        if attr.attr_name == name and accepts(attr.group_name):
            attr.index = None
            out[attr.group_name] = feature_store.get_tensor(attr)
    return out
