"""Products of rows with the matrix of their type, as operators."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torch_gsample.vertex.kernels.bilinear import call, register_bilinear
from torch_gsample.vertex.kernels.graph_cache import bounds_of


def product_by_type(x: Tensor, weight: Tensor, type: Tensor) -> Tensor:
    """Multiplies each row by the matrix of its type, under autograd.

    Args:
        x (torch.Tensor): ``[num_rows, ..., in_channels]``.
        weight (torch.Tensor): ``[num_types, in_channels, out_channels]``.
        type (torch.Tensor): int64 ``[num_rows]``, ascending.

    Raises:
        ValueError: If types are out of range, or do not ascend.
    """
    return call('product_by_type', x, weight, type)


#: Products of all vertices with all matrices, for each product that edges
#: read, up to which sorting the edges by type takes longer.
_MOST_UNREAD = 2


def product_of_ends(
    x: Tensor, weight: Tensor, type: Tensor, index: Tensor
) -> Tensor:
    """Multiplies the row of an end of each edge by the matrix of its type.

    Args:
        x (torch.Tensor): ``[num_rows, in_channels]``.
        weight (torch.Tensor): ``[num_types, in_channels, out_channels]``.
        type (torch.Tensor): Integers ``[num_edges]``.
        index (torch.Tensor): The row of each edge, ``[num_edges]``.

    Returns:
        torch.Tensor: ``x[index[e]] @ weight[type[e]]`` of each edge ``e``,
        ``[num_edges, out_channels]``.

    Raises:
        IndexError: If a type is out of range, as of ``weight[type]``.
    """
    types, width, columns = weight.shape
    if type.numel():
        least, most = bounds_of(type)
        if not 0 <= least <= most < types:
            raise IndexError(
                f"vertex_program: 'type' must be in [0, {types}) (got "
                f'{least if least < 0 else most})'
            )
    if x.shape[0] * types <= _MOST_UNREAD * type.numel():
        matrix = weight.transpose(0, 1).reshape(width, types * columns)
        every = (x @ matrix).view(-1, columns)
        return every.index_select(0, index.long() * types + type)
    order = type.argsort(stable=True)
    rows = x.index_select(0, index[order])
    out = product_by_type(rows, weight, type[order].long())
    return out.index_select(0, order.argsort())


def run_product(x: Tensor, weight: Tensor, type: Tensor) -> Tensor:
    """Implements ``gsample::product_by_type`` on any device."""
    sections = _sections(type, weight.shape[0])
    out = x.new_empty((*x.shape[:-1], weight.shape[-1]))
    parts = zip(x.split(sections), weight, out.split(sections), strict=True)
    for part, matrix, place in parts:
        torch.mm(part.flatten(0, -2), matrix, out=place.flatten(0, -2))
    return out


def run_outer(x: Tensor, y: Tensor, type: Tensor, num_types: int) -> Tensor:
    """Implements ``gsample::sum_outer_by_type``, the gradient of matrices.

    Args:
        x (torch.Tensor): ``[num_rows, ..., in_channels]``.
        y (torch.Tensor): ``[num_rows, ..., out_channels]``.
        type (torch.Tensor): int64 ``[num_rows]``, ascending.
        num_types (int): Number of types.

    Returns:
        torch.Tensor: ``[num_types, in_channels, out_channels]``, for each type
        the sum of the outer products of its rows.
    """
    sections = _sections(type, num_types)
    out = x.new_empty((num_types, x.shape[-1], y.shape[-1]))
    for a, b, place in zip(
        x.split(sections), y.split(sections), out, strict=True
    ):
        torch.mm(a.flatten(0, -2).t(), b.flatten(0, -2), out=place)
    return out


def _sections(type: Tensor, num_types: int) -> list[int]:
    """Returns the number of rows of each type."""
    if bool((type.diff() < 0).any()):
        raise ValueError("vertex_program: 'type' must ascend")
    for end in (type[-1:], type[:1]):
        if end.numel() and not 0 <= int(end) < num_types:
            raise ValueError(
                f"vertex_program: 'type' must be in [0, {num_types}) (got "
                f'{int(end)})'
            )
    bounds = torch.arange(num_types + 1, device=type.device)
    return torch.searchsorted(type, bounds).diff().tolist()


torch.library.impl('gsample::product_by_type', ('cpu', 'cuda'))(run_product)
torch.library.impl('gsample::sum_outer_by_type', ('cpu', 'cuda'))(run_outer)


@torch.library.register_fake('gsample::product_by_type')
def _fake_product(x: Tensor, weight: Tensor, type: Tensor) -> Tensor:
    return x.new_empty((*x.shape[:-1], weight.shape[-1]))


@torch.library.register_fake('gsample::sum_outer_by_type')
def _fake_outer(x: Tensor, y: Tensor, type: Tensor, num_types: int) -> Tensor:
    return x.new_empty((num_types, x.shape[-1], y.shape[-1]))


def _save(ctx: Any, inputs: Sequence[Any], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:3])


def _product_backward(ctx: Any, grad: Tensor) -> Any:
    x, weight, type = ctx.saved_tensors
    if hasattr(ctx, 'maybe_clear_saved_tensors'):
        ctx.maybe_clear_saved_tensors()
    dx = dw = None
    if ctx.needs_input_grad[1]:
        dw = _weight_gradient(x, grad, type, weight)
    del x  # its memory may be shared with the other gradient
    if ctx.needs_input_grad[0]:
        dx = product_by_type(grad, weight.transpose(-1, -2), type)
    return dx, dw, None


def _weight_gradient(
    x: Tensor, grad: Tensor, type: Tensor, weight: Tensor
) -> Tensor:
    """Returns the gradient of matrices, in their layout."""
    outer, types = 'sum_outer_by_type', (type, weight.shape[0])
    if weight.stride(-2) == 1 and weight.stride(-1) == weight.shape[-2]:
        return call(outer, grad, x, *types).transpose(-1, -2)
    return call(outer, x, grad, *types)


def _outer_backward(ctx: Any, grad: Tensor) -> Any:
    x, y, type = ctx.saved_tensors
    dx = dy = None
    if ctx.needs_input_grad[0]:
        dx = product_by_type(y, grad.transpose(-1, -2), type)
    if ctx.needs_input_grad[1]:
        dy = product_by_type(x, grad, type)
    return dx, dy, None, None


register_bilinear('product_by_type', _product_backward, _save, 0)
register_bilinear('sum_outer_by_type', _outer_backward, _save, 0)
