"""The edges of each type of each vertex: what nested aggregation runs over."""

import weakref
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from torch_gsample.vertex.graph import Graph, Loops, graph_of


@dataclass(frozen=True)
class Relations:
    """The pairs of a vertex and a type of its in-edges, sorted by type.

    Args:
        type (torch.Tensor): int64 ``[num_pairs]``, ascending.
        vertex (torch.Tensor): int64 ``[num_pairs]``, ascending in each type.
        inner (List[torch.Tensor]): The edges of each pair, compressed: as of
            :func:`~torch_gsample.vertex.graph.read_graph`.
        outer (List[torch.Tensor]): The pairs of each vertex.
        sizes (Tuple[int, int, int]): Sources, destinations, rows of features
            of edges.
        starts (List[int]): Where the pairs of each type start.
    """

    type: Tensor
    vertex: Tensor
    inner: list[Tensor]
    outer: list[Tensor]
    sizes: tuple[int, int, int]
    starts: list[int]

    @classmethod
    def of(
        cls,
        tensors: Sequence[Tensor],
        sizes: tuple[int, int],
        loops: Loops,
        types: Tensor,
    ) -> 'Relations':
        """Returns those of a graph, made once for the types.

        Raises:
            TypeError: If types are no integers.
            ValueError: If there is no type for each edge, or one is negative.
        """
        graph = graph_of(tensors, *sizes, loops)
        known = graph.relations
        state = types._version
        if known is None or known[0]() is not types or known[1] != state:
            made = _make(graph, types)
            graph.relations = weakref.ref(types), state, made
            return made
        return known[2]

    def level(self, outer: bool) -> tuple[list[Tensor], tuple[int, int, int]]:
        """Returns the graph of a level of aggregation, and its sizes."""
        sources, destinations, edges = self.sizes
        pairs = self.type.numel()
        if outer:
            return self.outer, (pairs, destinations, pairs)
        return self.inner, (sources, pairs, edges)

    def product(self, x: Tensor, weight: Tensor) -> Tensor:
        """Multiplies each pair by the matrix of its type.

        Args:
            x (torch.Tensor): ``[num_pairs, ..., in_channels]``.
            weight (torch.Tensor): ``[num_types, in_channels, out_channels]``.
        """
        if len(self.starts) - 1 > weight.shape[0]:
            raise ValueError(
                f"vertex_program: 'type' must be in [0, {weight.shape[0]}) "
                f'(got {len(self.starts) - 2})'
            )
        sections = torch.tensor(self.starts).diff().tolist()
        parts = [
            part @ matrix
            for part, matrix in zip(x.split(sections), weight, strict=False)
            if part.shape[0] > 0
        ]
        if not parts:
            return x.new_zeros((*x.shape[:-1], weight.shape[-1]))
        return torch.cat(parts)


def _make(graph: Graph, types: Tensor) -> Relations:
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
    vertices = graph.num_destinations
    # By type, then by vertex; edges of a pair keep their order.
    key = each * vertices + layout.vertex()
    key, order = torch.sort(key, stable=True)
    pairs, counts = torch.unique_consecutive(key, return_counts=True)
    type_, vertex = pairs // max(1, vertices), pairs % max(1, vertices)
    zero = counts.new_zeros(1)
    edge_id = order
    if layout.edge_id is not None:
        edge_id = layout.edge_id.long()[order]
    dtype = layout.indices.dtype
    inner = [
        torch.cat([zero, counts.cumsum(0)]).to(dtype),
        layout.indices[order],
        edge_id,
    ]
    outer = torch.stack(
        [torch.arange(pairs.numel(), device=vertex.device), vertex]
    )
    count = int(type_[-1]) + 1 if pairs.numel() else 0
    bounds = torch.arange(count + 1, device=type_.device)
    starts = torch.searchsorted(type_, bounds).tolist()
    sizes = graph.num_sources, vertices, graph.num_edges
    return Relations(type_, vertex, inner, [outer], sizes, starts)
