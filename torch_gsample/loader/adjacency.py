"""Converts ``torch.sparse`` adjacencies for PyG's loaders.

A graph comes in; if ``adj_t`` or ``adj`` is a tensor, a shallow copy with
``edge_index`` goes out. Batches of an ``adj_t`` get theirs back.
"""

import copy
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import (
    Data,
    FeatureStore,
    GraphStore,
    HeteroData,
)
from torch_geometric.utils import _trim_to_layer as pyg_trim

from torch_gsample.adjacency import read_adjacency
from torch_gsample.graph_input import SPARSE_LAYOUTS, GraphData
from torch_gsample.samplers.base import KeyedSampler

_trim_adj = pyg_trim.trim_adj


def with_edge_index(data: GraphData) -> GraphData:
    """Replaces ``torch.sparse`` adjacencies by ``edge_index``.

    Their values become ``edge_weight``. Edges keep the order of the
    adjacency, to which a sampler's edge ids refer.

    Example:
        >>> import torch
        >>> adj_t = torch.eye(2).to_sparse_csr()
        >>> with_edge_index(Data(adj_t=adj_t)).edge_index
        tensor([[0, 1],
                [0, 1]])
    """
    if not isinstance(data, (Data, HeteroData)):
        return data
    out = copy.copy(data)
    found = False
    for store in out.edge_stores:
        for key in ('adj', 'adj_t'):
            adj = store.get(key)
            if not _is_sparse(adj):
                continue
            found = True
            del store[key]
            edges = read_adjacency(
                'NeighborLoader', key, adj, transposed=key == 'adj_t'
            )
            store.edge_index = edges.edge_index()
            if 'edge_weight' not in store:
                store.edge_weight = edges.value
    return out if found else data


def with_sampled_edges(name: str, data: GraphData, sampler: Any) -> GraphData:
    """Adds an empty ``edge_index`` where only the sampler has edges.

    The loaders write edges only for the edge types of ``data``, and a graph on
    disk may be the sampler's alone.

    Args:
        name (str): The loader, for errors.
        data (Data or HeteroData or (Data, GraphStore)): The attributes; others
            are returned as they are.
        sampler (BaseSampler): Only samplers of this package are considered.

    Raises:
        ValueError: If there are fewer rows than the sampler has nodes, or the
            graph on disk in ``data`` has other nodes than the sampler's.
    """
    if not isinstance(sampler, KeyedSampler):
        return data
    _check_graph(name, data, sampler.graph.counts)
    data = attributes_of(data, sampler)
    if not isinstance(data, (Data, HeteroData)):
        _check_stores(name, data, sampler.graph.counts)
        return data
    if isinstance(data, Data):
        edge_types, stores = [None], {None: data}
    else:
        edge_types, stores = sampler.graph.edge_types, data._node_store_dict
    for node_type, size in sampler.graph.counts.items():
        rows = stores[node_type].get('x') if node_type in stores else None
        if isinstance(rows, Tensor):
            _check_rows(name, node_type, size, rows.shape[0])
    out = copy.copy(data)
    missing = [t for t in edge_types if not _has_edges(data, t)]
    for edge_type in missing:
        store = out._store if edge_type is None else out[edge_type]
        store.edge_index = torch.empty(2, 0, dtype=torch.int64)
    return out if missing else data


def _check_graph(name: str, data: Any, counts: Any) -> None:
    """Checks that a graph on disk has as many nodes as the sampler's."""
    pair = isinstance(data, tuple) and len(data) == 2
    # Graphs on disk know their numbers of nodes; PyG's stores do not.
    given = getattr(data[1], 'num_nodes', None) if pair else None
    if isinstance(given, dict) and given != dict(counts):
        raise ValueError(
            f"{name}: the graph in 'data' must be that of 'sampler', with "
            f'{_counted(dict(counts))} nodes (got {_counted(given)})'
        )


def _counted(counts: dict[Any, int]) -> str:
    return str(counts[None] if list(counts) == [None] else counts)


def _check_stores(name: str, data: Any, counts: Any) -> None:
    """Checks the order of a pair of stores, and the rows of one on disk."""
    if not isinstance(data, tuple) or len(data) != 2:
        return
    store = data[0]
    if isinstance(store, GraphStore) and not isinstance(store, FeatureStore):
        raise ValueError(
            f"{name}: 'data' must be a tuple of FeatureStore and GraphStore, "
            f'in this order (got {type(store).__name__} and '
            f'{type(data[1]).__name__})'
        )
    if hasattr(store, 'plans_reads'):  # it knows its sizes
        for attr in store.get_all_tensor_attrs():
            if attr.attr_name == 'x' and attr.group_name in counts:
                _check_rows(
                    name,
                    attr.group_name,
                    counts[attr.group_name],
                    store.get_tensor_size(attr)[0],
                )


def _check_rows(name: str, node_type: Any, size: int, rows: int) -> None:
    if rows < size:
        of = '' if node_type is None else f' of {node_type!r}'
        raise ValueError(
            f"{name}: 'x'{of} must have a row for each of the {size} "
            f"nodes of the sampler's graph (got {rows})"
        )


def attributes_of(data: Any, sampler: Any) -> Any:
    """Returns the ``Data`` of a pair of it and its sampler's graph store."""
    pyg = Data, HeteroData
    is_pair = isinstance(data, tuple) and isinstance(sampler, KeyedSampler)
    if is_pair and type(data[0]) in pyg and type(data[1]) not in pyg:
        return data[0]
    return data


def _has_edges(data: Any, edge_type: Any) -> bool:
    if edge_type is not None and edge_type not in data.edge_types:
        return False
    store = data._store if edge_type is None else data[edge_type]
    return any(key in store for key in ('edge_index', 'adj_t', 'adj'))


def _is_sparse(value: Any) -> bool:
    return isinstance(value, Tensor) and value.layout in SPARSE_LAYOUTS


def adj_t_values(data: GraphData) -> dict[Any, Tensor]:
    """Returns the values of each ``torch.sparse`` ``adj_t``.

    They are in the order of :func:`with_edge_index`, by edge type: None in a
    homogeneous graph.
    """
    if not isinstance(data, (Data, HeteroData)):
        return {}
    return {
        store._key: adj.values()
        for store in data.edge_stores
        if _is_sparse(adj := store.get('adj_t'))
    }


class AdjacencyBatches:
    """The graph of a loader, and of one that Lightning creates in its place.

    Lightning passes the attributes of the former loader, as its ``__dict__``
    has them: there, ``data`` has its ``adj_t``.
    """

    #: The values of each `adj_t` of the graph; batches have an `adj_t`, too.
    adj_t_values: dict[Any, Tensor]

    @property
    def data(self) -> Any:
        """The graph, with ``edge_index`` in place of a sparse tensor."""
        return self._data

    @data.setter
    def data(self, data: Any) -> None:
        self._data = self.__dict__['data'] = data


def add_adj_t(batch: Data | HeteroData, values: dict[Any, Tensor]) -> None:
    """Adds ``adj_t`` to a batch: its edges as a CSR tensor.

    Rows are destinations, and sources ascend in a row. An edge that was
    sampled twice is there twice.

    Args:
        batch (Data or HeteroData): With ``edge_index``, ``n_id`` and ``e_id``.
        values (Dict[EdgeType, torch.Tensor]): See :func:`adj_t_values`.

    Example:
        >>> ids = {'n_id': torch.arange(2), 'e_id': torch.tensor([1])}
        >>> batch = Data(edge_index=torch.tensor([[1], [0]]), **ids)
        >>> add_adj_t(batch, {None: torch.tensor([5.0, 7.0])})
        >>> batch.adj_t.to_dense()
        tensor([[0., 7.],
                [0., 0.]])
    """
    for edge_type, value in values.items():
        store = batch._store if edge_type is None else batch[edge_type]
        src, dst = (
            batch.n_id.numel() if t is None else batch[t].n_id.numel()
            for t in (edge_type or (None, None, None))[::2]
        )
        row, col = store.edge_index
        order = torch.argsort(col * max(src, 1) + row, stable=True)
        crow = torch.bincount(col, minlength=dst).cumsum(0)
        store.adj_t = _csr(
            torch.cat([crow.new_zeros(1), crow]),
            row[order],
            value[store.e_id.to(value.device)].to(row.device)[order],
            (dst, src),
        )


def trim_adj(
    edge_index: Any,
    layer: int,
    num_sampled_src_nodes_per_hop: list[int],
    num_sampled_dst_nodes_per_hop: list[int],
    num_sampled_edges_per_hop: list[int],
) -> Any:
    """PyG's function behind ``trim_to_layer``, also for an ``adj_t`` of torch.

    As with a ``SparseTensor``, rows beyond the destinations of the layer are
    empty, and nodes of the last hops are removed from both dimensions.
    """
    src, dst = num_sampled_src_nodes_per_hop, num_sampled_dst_nodes_per_hop
    if layer <= 0 or not _is_sparse(edge_index):
        edges = num_sampled_edges_per_hop
        return _trim_adj(edge_index, layer, src, dst, edges)
    adj = edge_index.to_sparse_csr()
    size = adj.size(0) - dst[-layer], adj.size(1) - src[-layer]
    rows = size[0] - dst[-layer - 1]  # that still have edges
    crow = adj.crow_indices()[: size[0] + 1].clone()
    crow[rows + 1 :] = crow[rows]
    count = int(crow[-1])
    return _csr(crow, adj.col_indices()[:count], adj.values()[:count], size)


def _csr(
    crow: Tensor, col: Tensor, value: Tensor, size: tuple[int, int]
) -> Tensor:
    # A sample with replacement may break torch's rule of distinct columns.
    return torch.sparse_csr_tensor(
        crow, col, value, (*size, *value.shape[1:]), check_invariants=False
    )
