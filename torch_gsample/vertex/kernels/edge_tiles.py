"""Tiles of edges of whole vertices, and functions of one tile at a time.

A function computed tile by tile holds the edge values of one tile, in the
cache. Its derivatives are functions of tiles that compute the tile again, so
derivatives of any order exist.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from torch_gsample.codegen.unit import (
    DESTINATION,
    EDGE,
    PARAMETER,
    SOURCE,
)
from torch_gsample.vertex.frontend.precision import (
    cast,
    kernel_dtype,
    without_autocast,
)
from torch_gsample.vertex.kernels.layout import Layout
from torch_gsample.vertex.kernels.layouts import Layouts

#: Elements of a tile's widest value, and maximum and minimum edges of a tile.
#: Half as many have too much overhead, twice as many exceed the cache.
_VALUES, _MOST, _LEAST = 1 << 18, 8192, 1024

#: Graph types of vertices with more in-edges than a tile, and of their parts.
HUB, PIECE = 'hub', 'piece'


def tile_size(width: int) -> int:
    """Returns the number of edges of a tile.

    Args:
        width (int): The width of its widest value.
    """
    return max(_LEAST, min(_MOST, _VALUES // width))


@dataclass(frozen=True)
class Tile:
    """The in-edges of consecutive destinations, or a part of one's.

    Args:
        number (int): Its index.
        graph (Tuple[torch.Tensor, torch.Tensor]): Pointers and local sources.
        sources (torch.Tensor): int64, the distinct sources.
        first (int): The first destination.
        last (int): The last destination plus one.
        edges (torch.Tensor): int64 ``[num_edges]``, their rows in features.
        hub (int, optional): For a part of a destination, its index among the
            split destinations.
        piece (int, optional): The index among all parts.
    """

    number: int
    graph: tuple[Tensor, Tensor]
    sources: Tensor
    first: int
    last: int
    edges: Tensor
    hub: int | None = None
    piece: int | None = None

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """Numbers of sources and destinations."""
        return self.sources.numel(), self.last - self.first

    def rows(self, kind: str, x: Tensor) -> Tensor:
        """Returns the tile's rows of a tensor.

        Args:
            kind (str): Its graph type.
            x (torch.Tensor): The tensor.
        """
        if kind == DESTINATION:
            return x[self.first : self.last].detach()
        if kind == PARAMETER:
            return x.detach()
        if kind in (HUB, PIECE):
            return x[self._row(kind)].detach()
        return x.index_select(
            0, self.sources if kind == SOURCE else self.edges
        )

    def _row(self, kind: str) -> slice:
        """The row of its part, or of its destination."""
        row = self.hub if kind == HUB else self.piece
        return slice(0, 0) if row is None else slice(row, row + 1)

    def add(self, kind: str, total: Tensor, part: Tensor) -> None:
        """Adds the tile's values to those of all tiles.

        Args:
            kind (str): Its graph type.
            total (torch.Tensor): The values of all tiles.
            part (torch.Tensor): The values of the tile.
        """
        if kind == DESTINATION and self.hub is None:
            total[self.first : self.last] = part
        elif kind == DESTINATION:
            total[self.first] += part[0]
        elif kind == PIECE:
            total[self._row(kind)] = part
        elif kind == HUB:
            total[self._row(kind)] += part
        elif kind == EDGE:
            total.index_copy_(0, self.edges, part)
        elif kind == SOURCE:
            # Sources are distinct in a tile, so sums follow the order of
            # tiles.
            total.index_add_(0, self.sources, part)
        else:
            total += part


@dataclass(frozen=True)
class Hubs:
    """The destinations with more in-edges than a tile, in parts.

    Args:
        vertices (torch.Tensor): int64 ``[num_hubs]``, ascending.
        degree (torch.Tensor): int64 ``[num_hubs]``, their in-edges.
        pieces (List[Tile]): Parts, vertex by vertex.
    """

    vertices: Tensor
    degree: Tensor
    pieces: list[Tile]

    @cached_property
    def edges(self) -> Tensor:
        """The rows of all their in-edges in features."""
        return torch.cat([piece.edges for piece in self.pieces])


def tiles_of(graph: Layouts, size: int) -> tuple[list[Tile], Hubs | None]:
    """Returns the cached tiles of a graph.

    A vertex with more in-edges than a tile gets its own tile, after all
    others.

    Args:
        graph (Layouts): The graph.
        size (int): Maximum edges and destinations of a tile.

    Returns:
        Tuple[List[Tile], Hubs, optional]: The tiles, and the parts of split
        vertices, if any.
    """
    if size not in graph.tiles:
        # Inference tensors cannot be saved for gradients later.
        with torch.inference_mode(False):
            graph.tiles[size] = _tiles(graph, size)
    return graph.tiles[size]


def _tiles(graph: Layouts, size: int) -> tuple[list[Tile], Hubs | None]:
    layout = graph.incoming
    ends: list[tuple[int, int]] = []
    rows = torch.arange(layout.num_cols + 1, device=layout.indptr.device)
    work = layout.indptr + rows
    first = 0
    while first < layout.num_cols:
        most = torch.searchsorted(work, work[first] + 2 * size, right=True)
        enough = torch.searchsorted(
            layout.indptr, layout.indptr[first] + size, right=True
        )
        last = max(first + 1, int(torch.minimum(most, enough)) - 1)
        ends.append((first, last))
        first = last
    pointers = layout.indptr.tolist()
    large = [pointers[last] - pointers[first] > size for first, last in ends]
    ends.sort(key=lambda pair: pointers[pair[1]] - pointers[pair[0]] > size)
    tiles = [
        _tile(layout, number, layout.indptr[first : last + 1], first)
        for number, (first, last) in enumerate(ends)
    ]
    count = len(ends) - sum(large)
    hubs = [tile.first for tile in tiles[count:]]
    return tiles, _hubs(layout, hubs, size, len(tiles)) if hubs else None


def _hubs(layout: Layout, hubs: list[int], size: int, number: int) -> Hubs:
    vertices = torch.tensor(hubs, device=layout.indptr.device)
    degree = layout.degree()[vertices].long()
    pieces: list[Tile] = []
    for hub, (vertex, count) in enumerate(
        zip(hubs, degree.tolist(), strict=True)
    ):
        parts = -(-count // size)
        bounds = [count * i // parts for i in range(parts + 1)]
        for pair in itertools.pairwise(bounds):
            pointers = layout.indptr[vertex] + layout.indptr.new_tensor(pair)
            tile = _tile(layout, number + len(pieces), pointers, vertex)
            pieces.append(replace(tile, hub=hub, piece=len(pieces)))
    return Hubs(vertices, degree, pieces)


def _tile(layout: Layout, number: int, pointers: Tensor, first: int) -> Tile:
    """Returns a tile.

    Args:
        layout (Layout): The graph.
        number (int): The index of the tile.
        pointers (torch.Tensor): The first edge of each destination.
        first (int): Its first destination.
    """
    start, stop = pointers[[0, -1]].tolist()
    sources, places = layout.indices[start:stop].unique(return_inverse=True)
    if layout.edge_id is None:
        edges = torch.arange(start, stop, device=pointers.device)
    else:
        edges = layout.edge_id[start:stop].long()
    pointers = pointers - start
    return Tile(
        *(number, (pointers, places.to(pointers.dtype)), sources.long()),
        *(first, first + len(pointers) - 1, edges),
    )


@dataclass(frozen=True, eq=False)
class TileFunction:
    """A function of tiles.

    Results of sources and parameters are summed over tiles, in order.

    Args:
        inputs (Tuple[str, ...]): The graph types of its arguments.
        outputs (Tuple[str, ...]): The graph types of its results.
        run (Callable): Takes a tile and rows of the arguments.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    run: Callable[[Tile, Sequence[Tensor]], Sequence[Tensor | None]]

    def adjoint(
        self, wanted: Sequence[int], known: Sequence[int]
    ) -> 'TileFunction':
        """Returns the gradients of some arguments.

        It takes the arguments, and the gradients of some results.

        Args:
            wanted (Sequence[int]): The arguments.
            known (Sequence[int]): The results.
        """
        count = len(self.inputs)

        def run(tile: Tile, given: Sequence[Tensor]) -> Any:
            again = torch.is_grad_enabled()
            args, grads = list(given[:count]), given[count:]
            for i in wanted:
                if not args[i].requires_grad:
                    args[i] = args[i].detach().requires_grad_()
            with torch.enable_grad():
                out = self.run(tile, args)
            pairs = [
                (x, grad)
                for x, grad in zip([out[i] for i in known], grads, strict=True)
                if x is not None and x.requires_grad
            ]
            if not pairs:
                return [None] * len(wanted)
            return torch.autograd.grad(
                [x for x, _ in pairs],
                [args[i] for i in wanted],
                [grad for _, grad in pairs],
                create_graph=again,
                allow_unused=True,
            )

        given = *self.inputs, *(self.outputs[i] for i in known)
        return TileFunction(given, tuple(self.inputs[i] for i in wanted), run)


def over_tiles(
    function: TileFunction,
    tiles: Sequence[Tile],
    rows: Mapping[str, int],
    inputs: Sequence[Tensor],
) -> list[Tensor | None]:
    """Computes a function tile by tile, under autograd.

    Args:
        function (TileFunction): The function.
        tiles (Sequence[Tile]): The tiles.
        rows (Mapping[str, int]): Rows of values by graph type.
        inputs (Sequence[torch.Tensor]): Its arguments.
    """
    return list(_OverTiles.apply(function, tiles, rows, *inputs))


class _OverTiles(torch.autograd.Function):
    """Runs a function over tiles, and its gradients over the same tiles."""

    @staticmethod
    def forward(
        ctx: Any,
        function: TileFunction,
        tiles: Sequence[Tile],
        rows: Mapping[str, int],
        *inputs: Tensor,
    ) -> tuple[Tensor | None, ...]:
        ctx.save_for_backward(*inputs)
        ctx.known = function, tiles, rows
        sums = [_Sum(kind, rows) for kind in function.outputs]
        with without_autocast(inputs[0].device):
            for tile in tiles:
                kinds = zip(function.inputs, inputs, strict=True)
                given = [tile.rows(kind, x) for kind, x in kinds]
                found = function.run(tile, given)
                del given
                for total, part in zip(sums, found, strict=True):
                    if part is not None:
                        total.put(tile, part.detach())
        return tuple(total.value() for total in sums)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        function, tiles, rows = ctx.known
        wanted = [i for i, x in enumerate(ctx.needs_input_grad[3:]) if x]
        inputs = ctx.saved_tensors
        known = [i for i, grad in enumerate(grads) if grad is not None]
        given = [*inputs, *(grads[i] for i in known)]
        adjoint = function.adjoint(wanted, known)
        out = over_tiles(adjoint, tiles, rows, given)
        found: list[Tensor | None] = [None] * len(inputs)
        for i, grad in zip(wanted, out, strict=True):
            if grad is not None:
                found[i] = cast(grad, inputs[i].dtype)
        return None, None, None, *found


class _Sum:
    """A result of all tiles.

    Args:
        kind (str): Its graph type.
        rows (Mapping[str, int]): Rows of values by graph type.
    """

    def __init__(self, kind: str, rows: Mapping[str, int]):
        self._kind, self._rows = kind, rows
        self._total: Tensor | None = None

    def put(self, tile: Tile, part: Tensor) -> None:
        """Adds the result of a tile."""
        adds = self._kind in (SOURCE, PARAMETER, HUB)
        adds |= self._kind == DESTINATION and tile.hub is not None
        dtype = kernel_dtype(part.dtype) if adds else part.dtype
        if self._total is None:
            shape = list(part.shape)
            if self._kind != PARAMETER:
                shape[0] = self._rows[self._kind]
            self._total = part.new_zeros(shape, dtype=dtype)
        elif adds:
            self._total = cast(self._total, dtype)
        tile.add(self._kind, self._total, cast(part, self._total.dtype))

    def value(self) -> Tensor | None:
        """Returns the result; None if no tile has one."""
        return self._total
