"""Reads the graph of a sampler from what PyG calls ``data``.

``Data``, ``HeteroData`` or ``(FeatureStore, GraphStore)`` comes in; node
types, edge types and a :class:`CSC` for each edge type come out.
"""

from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch_geometric.data import (
    Data,
    EdgeAttr,
    FeatureStore,
    GraphStore,
    HeteroData,
    remote_backend_utils,
)
from torch_geometric.data.graph_store import EdgeLayout
from torch_geometric.data.storage import EdgeStorage
from torch_geometric.sampler.base import DataType
from torch_geometric.typing import EdgeType, NodeType

from torch_gsample.formats import CSC

GraphData: TypeAlias = Data | HeteroData | tuple[FeatureStore, GraphStore]


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
    #: Whether the data holds edges, if only an ``edge_index`` of none.
    has_edges: bool = True

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
        for node_type in (src, dst):
            if node_type not in num_nodes:
                raise ValueError(
                    f'read_graph: edge type {edge_type} connects nodes of '
                    f'type {node_type!r}, which the data does not have'
                )
        if edge_type is not None and not _has_edges(store):
            raise ValueError(
                f"read_graph: {edge_type} must have an 'edge_index', 'adj_t' "
                f"or 'adj' (got {list(store.keys())})"
            )
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
    graph.has_edges = any(map(_has_edges, stores.values()))
    _unify_dtypes(graph)
    return graph


def _has_edges(store: Any) -> bool:
    return any(key in store for key in ('edge_index', 'adj', 'adj_t'))


def _unify_dtypes(graph: SamplerGraph) -> None:
    """Widens indices so that all edge types have the same dtypes."""
    columns = graph.csc.values()
    indices = {csc.indices.dtype for csc in columns}
    indptr = indices | {csc.indptr.dtype for csc in columns}
    for edge_type, csc in graph.csc.items():
        graph.csc[edge_type] = replace(
            csc,
            indptr=csc.indptr.to(_widest(indptr)),
            indices=csc.indices.to(_widest(indices)),
        )


def _widest(dtypes: set[torch.dtype]) -> torch.dtype:
    return torch.int64 if torch.int64 in dtypes else torch.int32


def check_edges(name: str, graph: SamplerGraph) -> None:
    """Checks that there are edges to sample.

    Args:
        name (str): The sampler, for messages.
        graph (SamplerGraph): Its graph.

    Raises:
        ValueError: If the data has none; an ``edge_index`` may be empty.
    """
    if not graph.has_edges:
        raise ValueError(
            f"{name}: 'data' must have edges, as 'edge_index', 'adj_t' or "
            f"'adj' (got none)"
        )


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
    attrs: dict[Any, list[EdgeAttr]] = {}
    for attr in graph_store.get_all_edge_attrs():
        attrs.setdefault(attr.edge_type, []).append(attr)
    counts: dict[Any, int]
    if list(attrs) == [None]:
        sizes = [a.size for a in attrs[None] if a.size is not None]
        counts = {None: max(sizes[0]) if sizes else _store_size(feature_store)}
    else:
        groups = [a.group_name for a in feature_store.get_all_tensor_attrs()]
        node_types: list[Any] = [g for g in groups if isinstance(g, str)]
        for edge_type in attrs:
            node_types += [edge_type[0], edge_type[2]]
        counts = {
            t: remote_backend_utils.size(feature_store, graph_store, t)
            for t in dict.fromkeys(node_types)
        }
    graph = SamplerGraph(
        DataType.remote, list(counts), list(attrs), counts, {}
    )
    graph.has_edges = len(attrs) > 0
    for edge_type, given in attrs.items():
        src, dst = graph.end_types(edge_type)
        attr = min(given, key=lambda a: _LAYOUT_ORDER.index(a.layout))
        graph.csc[edge_type] = _stored_columns(
            graph_store, attr, (counts[src], counts[dst]), index_dtype
        )
    _unify_dtypes(graph)
    return graph


#: Which layout to ask a store for, if it has several ones.
_LAYOUT_ORDER = (EdgeLayout.CSC, EdgeLayout.COO, EdgeLayout.CSR)


def _stored_columns(
    graph_store: GraphStore,
    attr: EdgeAttr,
    size: tuple[int, int],
    index_dtype: torch.dtype | None,
) -> CSC:
    # Not by the store's own `csc()`, whose sort is not stable.
    row, col = graph_store.get_edge_index(attr)
    if attr.layout == EdgeLayout.CSC:
        return CSC.from_compressed(
            col,
            row,
            *size,
            index_dtype=index_dtype,
            name=_name(attr.edge_type),
        )
    if attr.layout == EdgeLayout.CSR:
        row = CSC.from_compressed(row, col, size[1], size[0]).col()
    is_sorted = attr.layout == EdgeLayout.COO and attr.is_sorted
    return CSC.from_coo(
        row, col, *size, is_sorted=is_sorted, index_dtype=index_dtype
    )


def _store_size(feature_store: FeatureStore) -> int:
    if isinstance(feature_store, Data):
        return feature_store.num_nodes
    for attr in feature_store.get_all_tensor_attrs():
        if 'edge' not in str(attr.attr_name):
            return feature_store.get_tensor_size(attr)[0]
    raise ValueError(
        'read_graph: the number of nodes is unknown: give the edges of the '
        'graph store a size'
    )


def node_attributes(
    data: GraphData, graph: SamplerGraph, name: str
) -> dict[NodeType | None, Tensor]:
    """Returns the node attribute ``name`` of each node type that has it."""
    source = _as_data(data)
    if isinstance(source, Data):
        known = name in source and source.is_node_attr(name)
        return {None: source[name]} if known else {}
    if isinstance(source, HeteroData):
        return {
            t: source[t][name] for t in source.node_types if name in source[t]
        }
    return _store_attributes(source, graph, name, edge_level=False)


def edge_attributes(
    data: GraphData, graph: SamplerGraph, name: str
) -> dict[EdgeType | None, Tensor]:
    """Returns the edge attribute ``name`` of each edge type that has it.

    Values are in the order of the graph's columns.
    """
    source = _as_data(data)
    values: dict[Any, Tensor]
    if isinstance(source, Data):
        known = name in source and source.is_edge_attr(name)
        values = {None: source[name]} if known else {}
    elif isinstance(source, HeteroData):
        values = {
            t: store[name] for t, store in source.edge_items() if name in store
        }
    else:
        values = _store_attributes(source, graph, name, edge_level=True)
    out: dict[Any, Tensor] = {}
    for edge_type, value in values.items():
        csc = graph.csc[edge_type]
        if value.size(0) != csc.num_edges:
            raise ValueError(
                f"'{name}' of {_name(edge_type)} must have {csc.num_edges} "
                f'elements, one for each edge (got {value.size(0)})'
            )
        out[edge_type] = value if csc.perm is None else value[csc.perm]
    return out


def _as_data(data: GraphData) -> Any:
    """Returns a graph that keeps its own attributes, or a feature store."""
    return data if isinstance(data, (Data, HeteroData)) else data[0]


def _store_attributes(
    feature_store: FeatureStore,
    graph: SamplerGraph,
    name: str,
    edge_level: bool,
) -> dict[Any, Tensor]:
    out: dict[Any, Tensor] = {}
    for attr in feature_store.get_all_tensor_attrs():
        if attr.attr_name != name:
            continue
        attr.index = None
        if graph.is_hetero:
            if isinstance(attr.group_name, tuple) == edge_level:
                out[attr.group_name] = feature_store.get_tensor(attr)
            continue
        # A homogeneous graph has one group, whatever its name is.
        value = feature_store.get_tensor(attr)
        if _is_edge_level(name, value, graph) == edge_level:
            out[None] = value
    return out


def _is_edge_level(name: str, value: Tensor, graph: SamplerGraph) -> bool:
    """Tells by the length and, where it fits both, by the name, as PyG."""
    if value.size(0) != graph.csc[None].num_edges:
        return False
    return value.size(0) != graph.num_nodes[None] or 'edge' in name
