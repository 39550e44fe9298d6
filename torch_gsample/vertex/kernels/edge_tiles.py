"""Edges in tiles of whole vertices, and functions of one tile at a time.

A function that is computed tile by tile holds values of the edges of one tile,
in the cache. Its derivatives are functions of tiles, which compute the tile
again: so they have derivatives of any order, too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
from torch_gsample.vertex.kernels.layouts import Layouts

#: Numbers of a tile's widest value, and most and least edges of a tile. Half
#: as many are slower by their overhead, twice as many do not fit the cache.
_VALUES, _MOST, _LEAST = 1 << 18, 8192, 1024


def tile_size(width: int) -> int:
    """Returns how many edges a tile has.

    Args:
        width (int): Of its widest value.
    """
    return max(_LEAST, min(_MOST, _VALUES // width))


@dataclass(frozen=True)
class Tile:
    """The in-edges of consecutive destinations.

    Args:
        number (int): Which one it is.
        graph (Tuple[torch.Tensor, torch.Tensor]): Pointers and sources, which
            are numbered in the tile.
        sources (torch.Tensor): int64, the sources, each once.
        first (int): The first destination.
        last (int): The destination behind the last one.
        edges (torch.Tensor): int64 ``[num_edges]``, their rows in features.
    """

    number: int
    graph: tuple[Tensor, Tensor]
    sources: Tensor
    first: int
    last: int
    edges: Tensor

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """Numbers of sources and destinations."""
        return self.sources.numel(), self.last - self.first

    def rows(self, kind: str, x: Tensor) -> Tensor:
        """Returns what the tile reads of a tensor.

        Args:
            kind (str): Its graph type.
            x (torch.Tensor): The tensor.
        """
        if kind == DESTINATION:
            return x[self.first : self.last].detach()
        if kind == PARAMETER:
            return x.detach()
        return x.index_select(
            0, self.sources if kind == SOURCE else self.edges
        )


def tiles_of(graph: Layouts, size: int) -> list[Tile]:
    """Returns the tiles of a graph, made once.

    A vertex with more in-edges than a tile has one of its own.

    Args:
        graph (Layouts): The graph.
        size (int): Most edges and destinations of a tile.
    """
    if size not in graph.tiles:
        # Tensors of inference mode could not be saved for gradients later.
        with torch.inference_mode(False):
            graph.tiles[size] = _tiles(graph, size)
    return graph.tiles[size]


def _tiles(graph: Layouts, size: int) -> list[Tile]:
    layout = graph.incoming
    found: list[Tile] = []
    rows = torch.arange(layout.num_cols + 1, device=layout.indptr.device)
    work = layout.indptr + rows
    first = 0
    while first < layout.num_cols:
        most = torch.searchsorted(work, work[first] + 2 * size, right=True)
        enough = torch.searchsorted(
            layout.indptr, layout.indptr[first] + size, right=True
        )
        last = max(first + 1, int(torch.minimum(most, enough)) - 1)
        start, stop = layout.indptr[[first, last]].tolist()
        sources, places = layout.indices[start:stop].unique(
            return_inverse=True
        )
        if layout.edge_id is None:
            edges = torch.arange(start, stop, device=work.device)
        else:
            edges = layout.edge_id[start:stop].long()
        pointers = layout.indptr[first : last + 1] - start
        places = places.to(pointers.dtype)
        found.append(
            Tile(
                *(len(found), (pointers, places), sources.long()),
                *(first, last, edges),
            )
        )
        first = last
    return found


@dataclass(frozen=True, eq=False)
class TileFunction:
    """A function of tiles.

    Results of sources and parameters are added up over tiles, in order.

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
    graph: Layouts,
    inputs: Sequence[Tensor],
) -> list[Tensor | None]:
    """Computes a function tile by tile, under autograd.

    Args:
        function (TileFunction): The function.
        tiles (Sequence[Tile]): All tiles of the graph.
        graph (Layouts): The graph.
        inputs (Sequence[torch.Tensor]): Its arguments.
    """
    return list(_OverTiles.apply(function, tiles, graph, *inputs))


class _OverTiles(torch.autograd.Function):
    """Runs a function over tiles, and its gradients over the same tiles."""

    @staticmethod
    def forward(
        ctx: Any,
        function: TileFunction,
        tiles: Sequence[Tile],
        graph: Layouts,
        *inputs: Tensor,
    ) -> tuple[Tensor | None, ...]:
        ctx.save_for_backward(*inputs)
        ctx.known = function, tiles, graph
        sums = [_Sum(kind, graph) for kind in function.outputs]
        with without_autocast(inputs[0].device):
            for tile in tiles:
                kinds = zip(function.inputs, inputs, strict=True)
                rows = [tile.rows(kind, x) for kind, x in kinds]
                found = function.run(tile, rows)
                del rows
                for total, part in zip(sums, found, strict=True):
                    if part is not None:
                        total.put(tile, part.detach())
        return tuple(total.value() for total in sums)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        function, tiles, graph = ctx.known
        wanted = [i for i, x in enumerate(ctx.needs_input_grad[3:]) if x]
        inputs = ctx.saved_tensors
        known = [i for i, grad in enumerate(grads) if grad is not None]
        given = [*inputs, *(grads[i] for i in known)]
        adjoint = function.adjoint(wanted, known)
        out = over_tiles(adjoint, tiles, graph, given)
        found: list[Tensor | None] = [None] * len(inputs)
        for i, grad in zip(wanted, out, strict=True):
            if grad is not None:
                found[i] = cast(grad, inputs[i].dtype)
        return None, None, None, *found


class _Sum:
    """A result of all tiles.

    Args:
        kind (str): Its graph type.
        graph (Layouts): The graph.
    """

    def __init__(self, kind: str, graph: Layouts):
        self._kind = kind
        self._total: Tensor | None = None
        self._rows = {
            SOURCE: graph.num_sources,
            DESTINATION: graph.num_destinations,
            EDGE: graph.num_edges,
        }

    def put(self, tile: Tile, part: Tensor) -> None:
        """Takes the result of a tile."""
        if self._total is None:
            self._total = self._blank(part)
        if self._kind == DESTINATION:
            self._total[tile.first : tile.last] = part
        elif self._kind == EDGE:
            self._total.index_copy_(0, tile.edges, part)
        elif self._kind == SOURCE:
            # Each source is once in a tile: sums have the order of tiles.
            part = cast(part, self._total.dtype)
            self._total.index_add_(0, tile.sources, part)
        else:
            self._total += part

    def _blank(self, part: Tensor) -> Tensor:
        shape = list(part.shape)
        if self._kind != PARAMETER:
            shape[0] = self._rows[self._kind]
        adds = self._kind in (SOURCE, PARAMETER)
        dtype = kernel_dtype(part.dtype) if adds else part.dtype
        return part.new_zeros(shape, dtype=dtype)

    def value(self) -> Tensor | None:
        """Returns the result; none if no tile has one."""
        return self._total
