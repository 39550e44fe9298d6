"""Modules inside layers that have a faster arithmetic: cells and products."""

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import HeteroLinear

from torch_gsample.torch_private import has_hooks
from torch_gsample.vertex.frontend.precision import is_autocast
from torch_gsample.vertex.kernels.gru import gru_cell

#: Minimum number of rows whose gates exceed the cache.
_LEAST = 8192


def cells_of(layer: nn.Module) -> list[nn.GRUCell]:
    """Returns the cells of a layer that :class:`TiledCell` computes."""
    found = [m for m in layer.modules() if type(m) is nn.GRUCell]
    return [m for m in found if m.bias]


def typed_products_of(model: nn.Module) -> list[HeteroLinear]:
    """Returns the products of a model that :class:`TypedProduct` computes."""
    return [m for m in model.modules() if type(m) is HeteroLinear]


class TypedProduct:
    """A ``HeteroLinear`` without slices that are written one after another.

    The gradient of each such slice is a copy of the gradient of all rows:
    with a type for each head and relation, as in ``HGTConv``, these copies
    take longer than everything else.
    """

    def forward_naive(self, x: Tensor, type_ptr: Tensor) -> Tensor:
        """Returns the products of the rows of each type, by its weight."""
        module: Any = self
        if torch.compiler.is_compiling() or torch.jit.is_tracing():
            own: Any = super()
            out: Tensor = own.forward_naive(x, type_ptr)
            return out
        parts = x.split(type_ptr.diff().tolist())
        products = [a @ b for a, b in zip(parts, module.weight, strict=True)]
        return torch.cat(products).to(x.dtype)


class TiledCell:
    """A ``GRUCell`` that never stores the gates of all vertices."""

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Returns the next state."""
        cell: Any = self
        if hx is None or not _is_tiled(cell, input, hx):
            own: Any = super()
            out: Tensor = own.forward(input, hx)
            return out
        weights = cell.weight_ih, cell.weight_hh
        return gru_cell(input, hx, weights, (cell.bias_ih, cell.bias_hh))


def _is_tiled(cell: Any, x: Any, h: Any) -> bool:
    """Whether a call has many rows, and nothing observes its operators."""
    if type(x) is not Tensor or type(h) is not Tensor or x.dim() != 2:
        return False
    return (
        len(x) >= _LEAST
        and h.shape == (len(x), cell.hidden_size)
        and x.shape[1] == cell.input_size
        and x.is_cpu
        and x.dtype in (torch.float32, torch.float64)
        and all(p.dtype == x.dtype and p.is_cpu for p in (h, cell.weight_ih))
        and not has_hooks(cell)
        and not is_autocast(x.device)
        and not torch.compiler.is_compiling()
        and not torch.jit.is_tracing()
    )
