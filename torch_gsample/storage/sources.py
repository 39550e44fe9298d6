"""A common form of edges from memory, files and streams.

PyG's data, tensors, edge files or batches of edges come in; a
:class:`GraphSource` goes out, whose relations yield sorted edges.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from torch_gsample.adjacency import read_adjacency
from torch_gsample.csc import CSC
from torch_gsample.graph_input import (
    GraphData,
    as_graph,
    edge_attributes,
    read_graph,
)
from torch_gsample.ops.formats import cumulate_argument
from torch_gsample.samplers.attributes import read_times

#: A batch of edges: ``col``, ``neighbor`` and other arrays.
Edges = dict[str, np.ndarray]
#: Yields an array in pieces.
Pieces = Callable[[], Iterator[np.ndarray]]

_BATCH = 1 << 20  # edges of a batch


@dataclass
class RelationSource:
    """The edges of one type.

    Args:
        edge_type (Tuple[str, str, str], optional): Its name.
        num_rows (int): Number of sources.
        num_cols (int): Number of destinations.
        num_edges (int, optional): Number of edges, if it is known.
        widths (Dict[str, int]): Bytes of an item of each array.
        batches (Callable): Returns the edges, sorted by ``col``.
    """

    edge_type: Any
    num_rows: int
    num_cols: int
    num_edges: int | None
    widths: dict[str, int]
    batches: Callable[[], Iterator[Edges]]


@dataclass
class GraphSource:
    """A graph to write.

    Args:
        num_nodes (Dict[str, int]): The number of nodes of each type.
        relations (List[RelationSource]): The edge types.
        node_times (Dict[str, torch.Tensor or Callable]): int64, times of
            nodes, or a function that yields them in pieces.
        memory (int): Bytes of memory for reading it.
        finish (Callable, optional): Writes further files before the directory
            is renamed.
    """

    num_nodes: dict[Any, int]
    relations: list[RelationSource]
    node_times: dict[Any, Tensor | Pieces] = field(default_factory=dict)
    memory: int = 0
    finish: Callable[[Path], None] | None = None


def index_width(count: int) -> int:
    """Returns the bytes of an integer in ``[0, count)``."""
    return 4 if count <= 1 << 31 else 8


def memory_source(
    data: GraphData | CSC | Tensor | tuple[Tensor, Tensor],
    num_nodes: int | None,
    weight_attr: str | None,
    time_attr: str | tuple[str, str] | None,
) -> GraphSource:
    """Reads a graph in memory, like :class:`NeighborSampler`."""
    if is_matrix(data):
        graph = as_graph(data)
        whole = Data(num_nodes=graph.counts[None])
        source: Any = _with_nodes(whole, num_nodes)
    else:
        source = _with_nodes(data, num_nodes)
        graph = read_graph(source).graph
    times, graph = read_times(source, graph, time_attr, False)
    weights = {}
    if weight_attr is not None:
        weights = edge_attributes(source, graph, weight_attr)
        if not weights:
            raise ValueError(
                f"ChunkedGraph.write: 'weight_attr' {weight_attr!r} is not an "
                f'edge-level attribute'
            )
    relations = [
        _memory_relation(t, csc, weights.get(t), weight_attr or '')
        for t, csc in graph.items()
    ]
    return GraphSource(graph.counts, relations, {**times.node})


def is_matrix(data: Any) -> bool:
    """Whether data is a matrix that :func:`as_graph` reads."""
    if isinstance(data, Tensor):
        return data.layout != torch.strided
    names = 'sparse_sizes', 'tocsc', '_by_column'
    return isinstance(data, CSC) or any(hasattr(data, n) for n in names)


def _with_nodes(data: Any, num_nodes: int | None) -> GraphData:
    pair = isinstance(data, tuple) and isinstance(data[0], Tensor)
    if isinstance(data, Tensor) or pair:
        edge_index = torch.stack(data) if pair else data
        read_adjacency('ChunkedGraph.write', 'data', edge_index)
        if num_nodes is None:
            num_nodes = int(edge_index.max()) + 1 if edge_index.numel() else 0
        return Data(edge_index=edge_index, num_nodes=num_nodes)
    if num_nodes is not None:
        raise ValueError(
            "ChunkedGraph.write: 'num_nodes' must be None for a graph, which "
            f'has its own (got {num_nodes})'
        )
    return data


def _memory_relation(
    edge_type: Any, csc: CSC, weight: Tensor | None, weight_attr: str
) -> RelationSource:
    arrays = {
        'neighbor': csc.indices,
        'edge_id': csc.edge_id,
        'time': csc.edge_time,
    }
    if weight is not None:
        weight = weight.cpu().view(-1)
        cumulate_argument(  # checks it
            'ChunkedGraph.write', weight_attr, csc.indptr, weight, csc.edge_id
        )
        weight = csc.in_columns(weight)
        single = weight.dtype in (torch.float16, torch.bfloat16, torch.float32)
        arrays['weight'] = weight.float() if single else weight.double()
    given = {k: v.numpy() for k, v in arrays.items() if v is not None}
    widths = dict.fromkeys(('neighbor', 'edge_id', 'weight', 'time'), 0)
    widths.update({k: v.itemsize for k, v in given.items()})
    widths['neighbor'] = index_width(csc.num_rows)
    if csc.edge_id is not None:
        widths['edge_id'] = index_width(csc.num_edges)
    indptr = csc.indptr.numpy()

    def batches() -> Iterator[Edges]:
        for first in range(0, csc.num_edges, _BATCH):
            last = min(first + _BATCH, csc.num_edges)
            at = np.arange(first, last)
            col = np.searchsorted(indptr, at, 'right').astype(np.int64) - 1
            yield {'col': col, **{k: v[first:last] for k, v in given.items()}}

    return RelationSource(
        edge_type, csc.num_rows, csc.num_cols, csc.num_edges, widths, batches
    )


def stream_source(
    batches: Iterable[tuple[Tensor, Tensor]],
    num_nodes: int | None,
    num_edges: int | None,
) -> GraphSource:
    """Reads an iterable of ``(row, col)`` batches sorted by ``col``."""
    if num_nodes is None:
        raise ValueError(
            "ChunkedGraph.write: batches of edges need 'num_nodes' (got None)"
        )
    widths = dict.fromkeys(('neighbor', 'edge_id', 'weight', 'time'), 0)
    widths['neighbor'] = index_width(num_nodes)

    def read() -> Iterator[Edges]:
        for row, col in batches:
            yield {'col': col.long().numpy(), 'neighbor': row.numpy()}

    relation = RelationSource(
        None, num_nodes, num_nodes, num_edges, widths, read
    )
    return GraphSource({None: num_nodes}, [relation])


def as_paths(data: Any) -> list[Path] | None:
    """Returns the files that ``data`` names, or None."""
    items = data if isinstance(data, list) and data else [data]
    if all(isinstance(item, (str, Path)) for item in items):
        return [Path(item) for item in items]
    return None
