"""Reads PyG's data as a :class:`~torch_gsample.graph.Graph`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch_geometric.data import (
    Data,
    Dataset,
    EdgeAttr,
    FeatureStore,
    GraphStore,
    HeteroData,
    remote_backend_utils,
)
from torch_geometric.data.graph_store import EdgeLayout
from torch_geometric.sampler.base import DataType
from torch_geometric.typing import EdgeType, NodeType

from torch_gsample.adjacency import Adjacency, naming_edges, read_adjacency
from torch_gsample.graph import Graph
from torch_gsample.graph_types import GraphTypes

GraphData: TypeAlias = Data | HeteroData | tuple[FeatureStore, GraphStore]

#: Layouts of tensors that may be ``adj`` or ``adj_t``.
SPARSE_LAYOUTS = (torch.sparse_csr, torch.sparse_csc)


@dataclass(frozen=True)
class InputGraph:
    """A graph, and what only its source knows.

    Args:
        graph (Graph): The graph.
        data_type (DataType): What PyG calls the kind of source.
        compressed (FrozenSet[EdgeType]): Edge types whose ids refer to
            compressed columns, not to edge lists.
        has_edges (bool): Whether the data holds edges, if only an
            ``edge_index`` of none.
    """

    graph: Graph
    data_type: DataType
    compressed: frozenset[EdgeType | None] = frozenset()
    has_edges: bool = True


def stored_graph(data: Any) -> Any:
    """Returns the graph on disk that data has in place of edges, if it does.

    Args:
        data: A :class:`~torch_gsample.storage.ChunkedGraph`, features and one,
            or anything else.
    """
    store = data[1] if isinstance(data, tuple) and len(data) == 2 else data
    return store if hasattr(store, 'open_programs') else None


def read_graph(
    data: GraphData,
    *,
    is_sorted: bool = False,
    index_dtype: torch.dtype | None = None,
    name: str = 'read_graph',
) -> InputGraph:
    """Converts the edges of PyG's data to columns and checks them.

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
        name (str, optional): Who reads it, for messages.

    Raises:
        IndexError: If an edge has a node that does not exist.
        ValueError: If the format is not supported.
    """
    data_type = type_of_data(name, data)
    if data_type == DataType.remote:
        return _read_stores(*data, index_dtype, name)  # type: ignore
    if data_type == DataType.homogeneous:
        stores = {None: data._store}  # type: ignore[union-attr]
        num_nodes = {None: data.num_nodes}  # type: ignore[union-attr]
    else:
        stores = dict(data.edge_items())  # type: ignore[union-attr]
        num_nodes = {t: data[t].num_nodes for t in data.node_types}  # type: ignore
    for node_type, size in num_nodes.items():
        if size is None:
            raise ValueError(
                f'{name}: the number of nodes of '
                f"{node_type or 'the graph'!r} is unknown: set 'num_nodes'"
            )
    adjacencies = {
        t: _adjacency(name, store, _name(t)) for t, store in stores.items()
    }
    return InputGraph(
        _make_graph(num_nodes, adjacencies, is_sorted, index_dtype, name),
        data_type,
        frozenset(t for t, a in adjacencies.items() if a.layout != 'coo'),
        any(map(_has_edges, stores.values())),
    )


def type_of_data(name: str, data: Any) -> DataType:
    """Returns what PyG calls the kind of a graph.

    Args:
        name (str): Who reads it, for messages.
        data: The graph.

    Raises:
        ValueError: If it is none of PyG's.
    """
    kinds = {*map(type, data)} if isinstance(data, list) else {None}
    try:
        if kinds <= {Data, HeteroData}:  # two would pass as two stores
            raise ValueError
        return DataType.from_data(data)
    except ValueError:
        hint = ''
        if kinds <= {Data, HeteroData}:
            hint = '; Batch.from_data_list joins graphs'
        elif isinstance(data, Dataset):
            hint = ', whose first graph is data[0]'
        elif isinstance(data, GraphStore):
            hint = ', the second of such a tuple'
        elif isinstance(data, (str, Path)):
            hint = ': ChunkedGraph(path) opens a graph on disk'
        raise ValueError(
            f"{name}: 'data' must be a Data, a HeteroData or a tuple of "
            f'FeatureStore and GraphStore (got {type(data).__name__}{hint})'
        ) from None


def as_graph(
    data: Any,
    *,
    is_sorted: bool = False,
    index_dtype: torch.dtype | None = None,
) -> Graph:
    """Converts a graph in any format to a :class:`Graph`.

    Args:
        data: PyG's ``Data``, ``HeteroData`` or ``(FeatureStore, GraphStore)``;
            or a homogeneous graph as ``edge_index``, ``EdgeIndex``,
            ``SparseTensor`` (an ``adj_t``: rows are destinations),
            ``torch.sparse`` tensor, SciPy matrix, :class:`CSC` or
            ``SparseSample``. A :class:`Graph` is returned as it is.
        is_sorted (bool, optional): Whether an ``edge_index`` is already sorted
            by destination.
        index_dtype (torch.dtype, optional): int32 or int64; default: int32 for
            edge lists, if it suffices.

    Raises:
        IndexError: If a node is out of range.
        TypeError: If the format is not supported.
        ValueError: If the graph is malformed.

    Example:
        >>> as_graph(torch.tensor([[1, 2, 2], [0, 0, 1]]))
        Graph(num_nodes=3, num_edges=3)
    """
    if isinstance(data, Graph):
        return data
    if isinstance(data, (Data, HeteroData, tuple)):
        return read_graph(
            data, is_sorted=is_sorted, index_dtype=index_dtype, name='as_graph'
        ).graph
    adjacency = read_adjacency(
        'as_graph', 'data', data, kinds='a Data, HeteroData, '
    )
    size = max(adjacency.sizes)
    return Graph.from_csc(
        adjacency.csc(size, size, is_sorted=is_sorted, index_dtype=index_dtype)
    )


def _make_graph(
    num_nodes: dict[Any, int],
    adjacencies: dict[Any, Adjacency],
    is_sorted: bool,
    index_dtype: torch.dtype | None,
    name: str,
) -> Graph:
    parts = tuple(num_nodes), tuple(adjacencies), tuple(num_nodes.values())
    types = GraphTypes(*parts)
    columns = []
    for edge_type, adjacency in adjacencies.items():
        src, dst = types.end_types(edge_type)
        with naming_edges(name, 'edge_index', _name(edge_type)):
            csc = adjacency.cpu().csc(
                num_nodes[src],
                num_nodes[dst],
                is_sorted=is_sorted,
                index_dtype=index_dtype,
                name=_name(edge_type),
            )
        columns.append(csc.drop_identity())
    return Graph(*parts, tuple(columns))


def _has_edges(store: Any) -> bool:
    return any(key in store for key in ('edge_index', 'adj', 'adj_t'))


def check_edges(name: str, has_edges: bool) -> None:
    """Checks that there are edges to sample.

    Args:
        name (str): The sampler, for messages.
        has_edges (bool): See :class:`InputGraph`.

    Raises:
        ValueError: If the data has none; an ``edge_index`` may be empty.
    """
    if not has_edges:
        raise ValueError(
            f"{name}: 'data' must have edges, as 'edge_index', 'adj_t' or "
            f"'adj' (got none)"
        )


def _name(edge_type: EdgeType | None) -> str:
    return 'the graph' if edge_type is None else f'{edge_type}'


def _adjacency(op: str, store: Any, name: str) -> Adjacency:
    """Returns the edges of a store: compressed ones, if it has these."""
    for key in ('adj', 'adj_t'):
        if key not in store:
            continue
        adj = store[key]
        if isinstance(adj, Tensor) and adj.layout not in SPARSE_LAYOUTS:
            raise ValueError(
                f"{op}: '{key}' must be a SparseTensor, torch.sparse_csr"
                f' or torch.sparse_csc (got {adj.layout})'
            )
        return read_adjacency(op, key, adj, transposed=key == 'adj_t')
    edge_index = store.get('edge_index')
    if edge_index is None:
        if name != _name(None):
            raise ValueError(
                f"{op}: {name} must have an 'edge_index', 'adj_t' or "
                f"'adj' (got {list(store.keys())})"
            )
        edge_index = torch.empty(2, 0, dtype=torch.long)
    if not isinstance(edge_index, Tensor):
        raise TypeError(
            f"{op}: 'edge_index' of {name} must be a tensor (got "
            f'{type(edge_index).__name__})'
        )
    if edge_index.layout != torch.strided:
        raise ValueError(
            f"{op}: 'edge_index' of {name} must be dense; store sparse "
            f"tensors as 'adj_t'"
        )
    return read_adjacency(op, 'edge_index', edge_index)


def _read_stores(
    feature_store: FeatureStore,
    graph_store: GraphStore,
    index_dtype: torch.dtype | None,
    name: str,
) -> InputGraph:
    attrs: dict[Any, list[EdgeAttr]] = {}
    for attr in graph_store.get_all_edge_attrs():
        attrs.setdefault(attr.edge_type, []).append(attr)
    counts: dict[Any, int]
    if list(attrs) == [None]:
        sizes = [a.size for a in attrs[None] if a.size is not None]
        counts = {
            None: max(sizes[0]) if sizes else _store_size(name, feature_store)
        }
    else:
        groups = [a.group_name for a in feature_store.get_all_tensor_attrs()]
        node_types: list[Any] = [g for g in groups if isinstance(g, str)]
        for edge_type in attrs:
            node_types += [edge_type[0], edge_type[2]]
        counts = {
            t: remote_backend_utils.size(feature_store, graph_store, t)
            for t in dict.fromkeys(node_types)
        }
    adjacencies = {
        t: _stored_edges(
            graph_store, min(a, key=lambda x: _LAYOUTS.index(x.layout))
        )
        for t, a in attrs.items()
    }
    graph = _make_graph(counts, adjacencies, False, index_dtype, name)
    return InputGraph(graph, DataType.remote, has_edges=len(attrs) > 0)


#: Which layout to ask a store for, if it has several ones.
_LAYOUTS = (EdgeLayout.CSC, EdgeLayout.COO, EdgeLayout.CSR)


def _stored_edges(graph_store: GraphStore, attr: EdgeAttr) -> Adjacency:
    # Not by the store's own `csc()`, whose sort is not stable.
    row, col = graph_store.get_edge_index(attr)
    layout: Any = attr.layout.value
    return Adjacency(layout, row, col, is_sorted=attr.is_sorted)


def _store_size(name: str, feature_store: FeatureStore) -> int:
    if isinstance(feature_store, Data):
        return feature_store.num_nodes
    for attr in feature_store.get_all_tensor_attrs():
        if 'edge' not in str(attr.attr_name):
            return feature_store.get_tensor_size(attr)[0]
    raise ValueError(
        f'{name}: the number of nodes is unknown: give the edges of the '
        'graph store a size'
    )


def node_attributes(
    data: GraphData, graph: Graph, name: str
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
    data: GraphData, graph: Graph, name: str
) -> dict[EdgeType | None, Tensor]:
    """Returns an edge attribute of each type that has it, in edge order."""
    source = _as_data(data)
    values: dict[Any, Tensor]
    if isinstance(source, Data):
        known = name in source and source.is_edge_attr(name)
        values = {None: source[name]} if known else {}
    elif isinstance(source, HeteroData):
        values = {t: s[name] for t, s in source.edge_items() if name in s}
    else:
        values = _store_attributes(source, graph, name, edge_level=True)
    for edge_type, value in values.items():
        num_edges = graph[edge_type].num_edges
        if not isinstance(value, Tensor):
            raise TypeError(
                f"NeighborSampler: '{name}' must be a tensor (got "
                f'{type(value).__name__})'
            )
        if len(value) != num_edges:
            raise ValueError(
                f"NeighborSampler: '{name}' of {_name(edge_type)} must have "
                f'{num_edges} elements, one for each edge (got {len(value)})'
            )
    return values


def _as_data(data: GraphData) -> Any:
    """Returns a graph that keeps its own attributes, or a feature store."""
    return data if isinstance(data, (Data, HeteroData)) else data[0]


def _store_attributes(
    feature_store: FeatureStore,
    graph: Graph,
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


def _is_edge_level(name: str, value: Tensor, graph: Graph) -> bool:
    """Tells by the length and, where it fits both, by the name, as PyG."""
    if value.size(0) != graph[None].num_edges:
        return False
    return value.size(0) != graph.counts[None] or 'edge' in name
