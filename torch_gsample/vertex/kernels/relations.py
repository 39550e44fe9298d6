"""The edges of each type of each vertex, for nested aggregation."""

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import torch
from torch import Tensor

from torch_gsample.ops._fake import dynamic_size
from torch_gsample.snapshot import Snapshot
from torch_gsample.vertex.kernels.layout import Layout, Loops
from torch_gsample.vertex.kernels.layouts import Layouts, layouts_of
from torch_gsample.vertex.kernels.tiles import Tiles


class Level(IntEnum):
    """The edges of a unit."""

    #: The edges of the graph.
    EDGES = 0
    #: From sources to (vertex, type) pairs.
    INNER = 1
    #: From pairs to their vertices.
    OUTER = 2
    #: The reversed edges of the graph.
    OUT = 3


def level_sizes(sizes: Sequence[Any], level: int) -> tuple[Any, Any, Any]:
    """Returns sources, destinations and rows of features of edges.

    Args:
        sizes (Sequence[int]): The sizes of the graph, and its number of pairs.
        level (int): The level of edges.
    """
    sources, destinations, edges, pairs = sizes
    if level == Level.INNER:
        return sources, pairs, edges
    if level == Level.OUTER:
        return pairs, destinations, pairs
    if level == Level.OUT:
        return destinations, sources, edges
    return sources, destinations, edges


@dataclass(frozen=True)
class Relations:
    """The pairs of a vertex and a type of its in-edges, sorted by type.

    Args:
        type (torch.Tensor): int64 ``[num_pairs]``, ascending.
        vertex (torch.Tensor): int64 ``[num_pairs]``, ascending in each type.
        inner (Layouts): The edges of each pair.
        outer (Layouts): The pairs of each vertex.
    """

    type: Tensor
    vertex: Tensor
    inner: Layouts
    outer: Layouts

    @classmethod
    def of(cls, graph: Layouts, types: Tensor) -> 'Relations':
        """Returns the cached relations of a graph and types.

        Raises:
            TypeError: If types are not integers.
            ValueError: If an edge has no type, or a type is negative.
        """
        return _once(graph, types, _make)


def _once(
    graph: Layouts, types: Tensor, make: Callable[[Layouts, Tensor], Any]
) -> Any:
    """Caches the result of ``make`` for a graph and types."""
    if types.is_inference():  # has no version
        return make(graph, types)
    known = graph.by_type.get(make)
    if known is None or known[0]() is not types or not known[1].holds([types]):
        snapshot = Snapshot([types])
        made = make(graph, types)
        graph.by_type[make] = weakref.ref(types), snapshot, made
        return made
    return known[2]


def layouts_at(
    tensors: Sequence[Tensor],
    types: Tensor | None,
    sizes: Sequence[int],
    loops: Loops,
    level: Level,
) -> Layouts:
    """Returns the graph of a level of aggregation.

    Args:
        tensors (Sequence[torch.Tensor]): The tensors of the graph.
        types (torch.Tensor, optional): The type of each edge.
        sizes (Sequence[int]): Sources, destinations, rows of features of
            edges, and pairs.
        loops (Loops): How to treat loops.
        level (Level): The level of edges.
    """
    graph = layouts_of(tensors, sizes[0], sizes[1], loops)
    if level == Level.OUT:
        return graph.turned
    if types is None or level == Level.EDGES:
        return graph
    relations = Relations.of(graph, types)
    return relations.outer if level == Level.OUTER else relations.inner


def tiles_at(
    tensors: Sequence[Tensor],
    types: Tensor,
    sizes: Sequence[int],
    loops: Loops,
) -> Tiles:
    """Returns the edges of a graph for products by type.

    Args:
        tensors (Sequence[torch.Tensor]): The tensors of the graph.
        types (torch.Tensor): The type of each edge.
        sizes (Sequence[int]): Sources and destinations.
        loops (Loops): How to treat loops.
    """
    graph = layouts_of(tensors, sizes[0], sizes[1], loops)
    return _once(graph, types, _tiles)


def _tiles(graph: Layouts, types: Tensor) -> Tiles:
    return Tiles(graph, _each(graph, types))


def _each(graph: Layouts, types: Tensor) -> Tensor:
    """Returns the type of each in-edge, checked."""
    if types.is_floating_point() or types.dtype == torch.bool:
        raise TypeError(
            f"vertex_program: 'type' must hold integers (got {types.dtype})"
        )
    if types.shape != (graph.num_edges,):
        raise ValueError(
            f"vertex_program: 'type' must have {graph.num_edges} elements "
            f'(got shape {list(types.shape)})'
        )
    layout = graph.incoming
    each = types.long()
    if layout.edge_id is not None:
        each = each[layout.edge_id]
    if each.numel() and int(each.min()) < 0:
        raise ValueError(
            f"vertex_program: 'type' must not be negative (got "
            f'{int(each.min())})'
        )
    return each


def _make(graph: Layouts, types: Tensor) -> Relations:
    each = _each(graph, types)
    layout = graph.incoming
    vertices = graph.num_destinations
    # By type, then by vertex; edges of a pair keep their order.
    key = each * vertices + layout.col(torch.int64)
    key, order = torch.sort(key, stable=True)
    pairs, counts = torch.unique_consecutive(key, return_counts=True)
    type_, vertex = pairs // max(1, vertices), pairs % max(1, vertices)
    edge_id = order
    if layout.edge_id is not None:
        edge_id = layout.edge_id.long()[order]
    dtype = layout.indices.dtype
    inner = Layout(
        torch.cat([counts.new_zeros(1), counts.cumsum(0)]).to(dtype),
        layout.indices[order],
        graph.num_sources,
        edge_id.to(dtype),
        checked=True,
    )
    count = pairs.numel()
    outer = torch.stack([torch.arange(count, device=vertex.device), vertex])
    return Relations(
        *(type_, vertex, Layouts(inner, graph.num_edges)),
        layouts_of([outer], count, vertices),
    )


def run_relations(
    graph: Sequence[Tensor],
    types: Tensor,
    num_sources: int,
    num_destinations: int,
    loops: int,
) -> tuple[Tensor, Tensor]:
    """Implements ``gsample::vertex_relations`` on any device.

    Returns:
        Tuple[torch.Tensor, torch.Tensor]: The type and the vertex of each
        pair: copies, because the compiler may reuse the memory of results.
    """
    made = layouts_of(graph, num_sources, num_destinations, Loops(loops))
    relations = Relations.of(made, types)
    return relations.type.clone(), relations.vertex.clone()


torch.library.impl('gsample::vertex_relations', ('cpu', 'cuda'))(run_relations)


@torch.library.register_fake('gsample::vertex_relations')
def _fake(
    graph: Sequence[Tensor],
    types: Tensor,
    num_sources: int,
    num_destinations: int,
    loops: int,
) -> tuple[Tensor, Tensor]:
    pairs = dynamic_size()
    type_, vertex = (
        types.new_empty(pairs, dtype=torch.int64) for _ in range(2)
    )
    return type_, vertex
