"""A gated recurrent unit over many rows, a tile of rows at a time.

    r = sigmoid(W_ir x + W_hr h)        z = sigmoid(W_iz x + W_hz h)
    n = tanh(W_in x + r * (W_hn h))     out = n + z * (h - n)

Torch writes each of these arrays for all rows. Those of a tile stay in the
cache: gates, and what their gradients multiply.
"""

from typing import Any

import torch
from torch import Tensor

from torch_gsample.torch_private import is_transformed

#: Rows of a tile: its gates of 64 channels fit a cache of 1 MiB.
_TILE = 512


def gru_cell(
    x: Tensor,
    h: Tensor,
    weights: tuple[Tensor, Tensor],
    biases: tuple[Tensor, Tensor],
) -> Tensor:
    """Returns the next state of each row, as ``torch.gru_cell``.

    That one runs in forward mode and in transforms of ``torch.func``.

    Args:
        x (torch.Tensor): ``[num_rows, in_channels]``, float32 or float64.
        h (torch.Tensor): The state, ``[num_rows, channels]``.
        weights (Tuple[torch.Tensor, torch.Tensor]): Of the input and the
            state: ``[3 * channels, in_channels]``, ``[3 * channels,
            channels]``.
        biases (Tuple[torch.Tensor, torch.Tensor]): ``[3 * channels]`` each.
    """
    cell = torch.gru_cell if is_transformed() else _Cell.apply
    out: Tensor = cell(x, h, *weights, *biases)
    return out


class _Cell(torch.autograd.Function):
    """The unit, and its gradient."""

    @staticmethod
    def forward(ctx: Any, *args: Tensor) -> Tensor:
        x, h, *parameters = args
        rows, width = h.shape
        needs = any(ctx.needs_input_grad)
        out = torch.empty_like(h)
        # r, z, n and W_hn h + b_hn: what gradients read.
        kept = h.new_empty((4, rows if needs else min(rows, _TILE), width))
        for first in range(0, rows, _TILE):
            tile = slice(first, first + _TILE)
            count = min(_TILE, rows - first)
            values = kept[:, tile] if needs else kept[:, :count]
            _step(x[tile], h[tile], parameters, values, out[tile])
        if needs:
            ctx.save_for_backward(*args, kept)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        *args, kept = ctx.saved_tensors
        [grad], wanted = grads, ctx.needs_input_grad
        if torch.is_grad_enabled():  # gradients are differentiated, too
            # As one argument may depend on another, or be it, each is a
            # variable of its own.
            args = [a.view_as(a) for a in args]
            given = [a for a, w in zip(args, wanted, strict=True) if w]
            out = torch.gru_cell(*args)
            found = iter(
                torch.autograd.grad(out, given, grad, create_graph=True)
            )
            return tuple(next(found) if w else None for w in wanted)
        return _gradients(args, kept, grad.contiguous(), wanted)


def _step(
    x: Tensor, h: Tensor, parameters: Any, kept: Tensor, out: Tensor
) -> None:
    """Computes a tile of rows."""
    w_x, w_h, b_x, b_h = parameters
    of_x = torch.addmm(b_x, x, w_x.t())
    of_h = torch.addmm(b_h, h, w_h.t())
    width = h.shape[1]
    r, z, n, state = kept
    both = of_x[:, : 2 * width].add_(of_h[:, : 2 * width]).sigmoid_()
    r.copy_(both[:, :width])
    z.copy_(both[:, width:])
    state.copy_(of_h[:, 2 * width :])
    torch.addcmul(of_x[:, 2 * width :], r, state, out=n)
    n.tanh_()
    torch.lerp(n, h, z, out=out)


def _gradients(
    args: list[Tensor], kept: Tensor, grad: Tensor, wanted: Any
) -> tuple[Tensor | None, ...]:
    """Returns the gradients that are wanted, a tile of rows at a time."""
    x, h, w_x, w_h, *_ = args
    rows, width = h.shape
    made = [torch.empty_like(a) for a in (x, h)]
    made += [torch.zeros_like(a) for a in args[2:]]
    to_x, to_h, to_w_x, to_w_h, to_b_x, to_b_h = made
    blank = h.new_empty((2, min(rows, _TILE), 3 * width))
    for first in range(0, rows, _TILE):
        tile = slice(first, first + _TILE)
        state, out = h[tile], grad[tile]
        of_x, of_h = blank[:, : len(state)]
        _of_gates(state, kept[:, tile], out, of_x, of_h)
        if wanted[0]:
            torch.mm(of_x, w_x, out=to_x[tile])
        if wanted[1]:
            torch.mul(out, kept[1, tile], out=to_h[tile])
            to_h[tile].addmm_(of_h, w_h)
        if wanted[2]:
            to_w_x.addmm_(of_x.t(), x[tile])
        if wanted[3]:
            to_w_h.addmm_(of_h.t(), state)
        if wanted[4]:
            to_b_x += of_x.sum(0)
        if wanted[5]:
            to_b_h += of_h.sum(0)
    return tuple(
        value if want else None
        for value, want in zip(made, wanted, strict=True)
    )


def _of_gates(
    h: Tensor, kept: Tensor, grad: Tensor, of_x: Tensor, of_h: Tensor
) -> None:
    """Writes the gradients of both products, of a tile of rows."""
    r, z, n, state = kept
    width = h.shape[1]
    to_r, to_z, to_n = of_x.split(width, 1)
    # d tanh = (1 - n^2), d sigmoid = z (1 - z)
    torch.addcmul(grad, grad, z, value=-1, out=to_n)
    to_n.sub_(to_n * n * n)
    torch.sub(h, n, out=to_z)
    to_z.mul_(grad).mul_(z).mul_(1 - z)
    torch.mul(to_n, state, out=to_r)
    to_r.mul_(r).mul_(1 - r)
    of_h[:, : 2 * width].copy_(of_x[:, : 2 * width])
    torch.mul(to_n, r, out=of_h[:, 2 * width :])
