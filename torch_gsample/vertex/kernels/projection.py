"""Sums of neighbours, multiplied by the matrix of a relation, as operators.

    out[v] = sum_r (sum_e s_e x[u_e]) W_r      of the in-edges e of type r

One kernel sums and multiplies, a tile of vertices at a time, so no value of a
(vertex, type) pair is stored. The gradient of features is the same over
out-edges, with the matrices transposed.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.codegen.cpp_relations import (
    FLAGS,
    TILE,
    outer_source,
    project_source,
)
from torch_gsample.codegen.loaded import Loaded, load
from torch_gsample.ops.kernels import DTYPES, ROWS
from torch_gsample.vertex.frontend.precision import cast, kernel_dtype
from torch_gsample.vertex.kernels.bilinear import call, register_bilinear
from torch_gsample.vertex.kernels.layout import Loops
from torch_gsample.vertex.kernels.products import run_outer, run_product
from torch_gsample.vertex.kernels.relations import tiles_at
from torch_gsample.vertex.kernels.tiles import EdgeGroups, Tiles

#: Maximum elements of a matrix, and of a row, in kernels.
_MOST, _WIDEST = 1 << 16, 1024
_CENTER, _NEIGHBOR, _ANY = (
    ROWS.index(name) for name in ('center', 'neighbor', 'any')
)

#: Owner of rows, elements of a row, and dtype in memory.
_Rows = tuple[int, int, torch.dtype]


def is_projectable(weight: Sequence[int]) -> bool:
    """Whether kernels support matrices of a shape."""
    _, left, right = weight
    return max(left, right) <= _WIDEST and left * right <= _MOST


def run_project(
    graph: Sequence[Tensor],
    types: Tensor,
    sizes: Sequence[int],
    loops: int,
    mean: bool,
    reverse: bool,
    x: Tensor,
    weight: Tensor,
) -> Tensor:
    """Implements ``gsample::project_edges`` on the CPU.

    Args:
        graph (Sequence[torch.Tensor]): The tensors of the graph.
        types (torch.Tensor): The type of each edge.
        sizes (Sequence[int]): Sources and destinations.
        loops (int): How to treat loops.
        mean (bool): Whether edges of a type are averaged instead of summed.
        reverse (bool): Whether edges go from destinations to sources.
        x (torch.Tensor): ``[num_rows, in_channels]``.
        weight (torch.Tensor): ``[num_types, in_channels, out_channels]``.
    """
    tiles = tiles_at(graph, types, sizes, Loops(loops))
    _check_types(tiles, weight.shape[0])
    part = tiles.outgoing if reverse else tiles.incoming
    given, count = tiles.rows[::-1] if reverse else tiles.rows
    _check_rows('x', x, given)
    _, left, right = weight.shape
    kernel = _projecting(left, right, x.dtype, part.indptr.dtype, mean)
    weight = cast(weight, kernel_dtype(x.dtype))
    if kernel is None:
        return _projected(part, mean, x, weight, count)
    out = _run(kernel, part, mean, x, weight)
    return out.view(-1, right)[:count]


def run_outer_edges(
    graph: Sequence[Tensor],
    types: Tensor,
    sizes: Sequence[int],
    loops: int,
    mean: bool,
    x: Tensor,
    y: Tensor,
    num_types: int,
) -> Tensor:
    """Implements ``gsample::sum_outer_edges`` on the CPU.

    Args:
        graph (Sequence[torch.Tensor]): The tensors of the graph.
        types (torch.Tensor): The type of each edge.
        sizes (Sequence[int]): Sources and destinations.
        loops (int): How to treat loops.
        mean (bool): As in :func:`run_project`.
        x (torch.Tensor): ``[num_sources, in_channels]``.
        y (torch.Tensor): ``[num_destinations, out_channels]``.
        num_types (int): Number of types.

    Returns:
        torch.Tensor: ``[num_types, in_channels, out_channels]``, for each type
        the sum of the outer products of its edges' ends.
    """
    tiles = tiles_at(graph, types, sizes, Loops(loops))
    _check_types(tiles, num_types)
    for name, value, rows in zip('xy', (x, y), tiles.rows, strict=True):
        _check_rows(name, value, rows)
    part, of_sources = tiles.blocks
    left, right = x.shape[1], y.shape[1]
    many, one = (y, x) if of_sources else (x, y)
    kernel = _adding(
        *(left, right, x.dtype, part.indptr.dtype, mean, of_sources)
    )
    if kernel is None:
        return _outer(part, of_sources, mean, many, one, num_types)
    found = _run(kernel, part, mean, many, one)
    out = found.new_zeros((num_types, left * right))
    out = out.index_add_(0, part.type, found).view(-1, left, right)
    return cast(out, x.dtype)


def _run(
    kernel: Loaded, part: EdgeGroups, mean: bool, x: Tensor, y: Tensor
) -> Tensor:
    scale = [part.scale(kernel_dtype(x.dtype))] if mean else []
    [out] = ops.kernels.run_kernel(
        kernel.number,
        [x.contiguous(), y.contiguous(), *scale],
        (part.indptr, part.indices, part.code, part.order),
        *(x.shape[0], part.indices.numel()),
    )
    return out


def _check_types(tiles: Tiles, num_types: int) -> None:
    if tiles.num_types > num_types:
        raise ValueError(
            f"vertex_program: 'type' must be in [0, {num_types}) (got "
            f'{tiles.num_types - 1})'
        )


def _check_rows(name: str, value: Tensor, rows: int) -> None:
    if value.shape[0] != rows:
        raise ValueError(
            f'vertex_program: {name!r} must have {rows} rows (got '
            f'{value.shape[0]})'
        )


# Kernels of a shape, not of a program: the last ones stay loaded, because each
# mini-batch has its own tiles.
@lru_cache(maxsize=32)
def _projecting(
    left: int, right: int, dtype: torch.dtype, index: torch.dtype, mean: bool
) -> Loaded | None:
    source = project_source(left, right, dtype, index, mean)
    wide = kernel_dtype(dtype)
    rows = [(_NEIGHBOR, left, dtype), (_ANY, left * right, wide)]
    out = _CENTER, TILE * right, dtype
    return _loaded(source, rows, out, index, mean)


@lru_cache(maxsize=32)
def _adding(
    left: int,
    right: int,
    dtype: torch.dtype,
    index: torch.dtype,
    mean: bool,
    turned: bool,
) -> Loaded | None:
    source = outer_source(left, right, dtype, index, mean, turned)
    many, one = (right, left) if turned else (left, right)
    rows = [(_NEIGHBOR, many, dtype), (_ANY, one, dtype)]
    out = _CENTER, left * right, kernel_dtype(dtype)
    return _loaded(source, rows, out, index, mean)


def _loaded(
    source: str,
    rows: list[_Rows],
    out: _Rows,
    index: torch.dtype,
    mean: bool,
) -> Loaded | None:
    """Compiles and loads a kernel; None if that fails."""
    rows = [*rows, *[(_ANY, 1, kernel_dtype(rows[0][2]))] * mean]
    layout = [1 + int(index == torch.int64), -1, len(rows)]
    for kind, width, dtype in [*rows, out]:
        layout += [kind, DTYPES.index(dtype), width]
    return load(source, layout, FLAGS)


def _projected(
    part: EdgeGroups, mean: bool, x: Tensor, weight: Tensor, count: int
) -> Tensor:
    """Multiplies with torch operators."""
    tile = torch.arange(part.indptr.numel() - 1)
    tile = tile.repeat_interleave(part.indptr.diff())
    code, order = torch.sort(part.code.long(), stable=True)
    values = _scaled(part, mean, x)[order]
    values = run_product(values, weight, code // TILE)
    out = values.new_zeros((count, values.shape[1]))
    out.index_add_(0, tile[order] * TILE + code % TILE, values)
    return cast(out, x.dtype)


def _outer(
    part: EdgeGroups,
    of_sources: bool,
    mean: bool,
    many: Tensor,
    one: Tensor,
    num_types: int,
) -> Tensor:
    """Sums outer products with torch operators."""
    left, right = _scaled(part, mean, many), one[part.code]
    right = cast(right, left.dtype)
    if of_sources:
        left, right = right, left
    type_ = part.type.repeat_interleave(part.indptr.diff())
    return cast(run_outer(left, right, type_, num_types), many.dtype)


def _scaled(part: EdgeGroups, mean: bool, x: Tensor) -> Tensor:
    values = cast(x[part.indices], kernel_dtype(x.dtype))
    return values * part.scale(values.dtype)[:, None] if mean else values


torch.library.impl('gsample::project_edges', 'cpu')(run_project)
torch.library.impl('gsample::sum_outer_edges', 'cpu')(run_outer_edges)


@torch.library.register_fake('gsample::project_edges')
def _fake_project(
    graph: Sequence[Tensor],
    types: Tensor,
    sizes: Sequence[Any],
    loops: int,
    mean: bool,
    reverse: bool,
    x: Tensor,
    weight: Tensor,
) -> Tensor:
    return x.new_empty((sizes[0 if reverse else 1], weight.shape[-1]))


@torch.library.register_fake('gsample::sum_outer_edges')
def _fake_outer(
    graph: Sequence[Tensor],
    types: Tensor,
    sizes: Sequence[Any],
    loops: int,
    mean: bool,
    x: Tensor,
    y: Tensor,
    num_types: int,
) -> Tensor:
    return x.new_empty((num_types, x.shape[-1], y.shape[-1]))


def _save(ctx: Any, inputs: Sequence[Any], output: Tensor) -> None:
    graph, types, *ctx.rest, x, y = inputs
    ctx.save_for_backward(types, *graph, x, y)


def _project_backward(ctx: Any, grad: Tensor) -> Any:
    types, *graph, x, weight = ctx.saved_tensors
    sizes, loops, mean, reverse = ctx.rest
    edges = graph, types, sizes, loops, mean
    dx = dw = None
    if ctx.needs_input_grad[6]:
        turned = weight.transpose(-1, -2)
        dx = call('project_edges', *edges, not reverse, grad, turned)
    if ctx.needs_input_grad[7]:
        ends = (grad, x) if reverse else (x, grad)
        dw = call('sum_outer_edges', *edges, *ends, weight.shape[0])
        dw = dw.transpose(-1, -2) if reverse else dw
    return [None] * len(graph), *[None] * 5, dx, dw


def _save_outer(ctx: Any, inputs: Sequence[Any], output: Tensor) -> None:
    _save(ctx, inputs[:-1], output)


def _outer_backward(ctx: Any, grad: Tensor) -> Any:
    types, *graph, x, y = ctx.saved_tensors
    edges = graph, types, *ctx.rest
    dx = dy = None
    if ctx.needs_input_grad[5]:
        turned = grad.transpose(-1, -2)
        dx = call('project_edges', *edges, True, y, turned)
    if ctx.needs_input_grad[6]:
        dy = call('project_edges', *edges, False, x, grad)
    return [None] * len(graph), *[None] * 4, dx, dy, None


register_bilinear('project_edges', _project_backward, _save, 6)
register_bilinear('sum_outer_edges', _outer_backward, _save_outer, 5)
