"""Bilinear operators under any transform.

torch.library registers only reverse-mode formulas. Under forward mode or
``torch.func``, an autograd function with all formulas calls the operator.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from torch_gsample.ops._gradient import register_gradient
from torch_gsample.torch_private import (
    is_transformed,
    is_view,
    set_forward_mode,
)
from torch_gsample.vertex.kernels.derivatives import mapped

#: For each operator: its backward, its context setup, and the first operand.
_rules: dict[str, tuple[Callable[..., Any], Callable[..., None], int]] = {}


def register_bilinear(
    operator: str,
    backward: Callable[..., Any],
    save: Callable[..., None],
    place: int,
) -> None:
    """Registers the derivatives of a bilinear operator.

    Args:
        operator (str): Its name in ``torch.ops.gsample``.
        backward (Callable): See :func:`torch.library.register_autograd`.
        save (Callable): Its ``setup_context``.
        place (int): The position of the first operand; the second one follows.
    """
    register_gradient(operator, backward, save)
    _rules[operator] = backward, save, place


def call(operator: str, *args: Any) -> Tensor:
    """Calls a bilinear operator under any transform.

    Args:
        operator (str): Its name.
        *args (Any): Its arguments.
    """
    if is_transformed():
        return _Bilinear.apply(operator, *args)
    return getattr(torch.ops.gsample, operator)(*args)


class _Bilinear(torch.autograd.Function):
    """A bilinear operator under a transform."""

    @staticmethod
    def forward(operator: str, *args: Any) -> Tensor:
        out = getattr(torch.ops.gsample, operator)(*args)
        return out.clone() if is_view(out) else out  # a view has no tangent

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.operator, *args = inputs
        _, save, place = _rules[ctx.operator]
        saved: list[Tensor] = []
        known = SimpleNamespace()
        known.save_for_backward = lambda *tensors: saved.extend(tensors)
        save(known, args, output)
        del known.save_for_backward
        ctx.known = vars(known)
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*args[place : place + 2])
        args[place : place + 2] = None, None
        ctx.args = args

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        backward, _, place = _rules[ctx.operator]
        known = SimpleNamespace(
            **ctx.known,
            saved_tensors=ctx.saved_tensors,
            needs_input_grad=ctx.needs_input_grad[1:],
        )
        found: list[Tensor | None] = [None] * (1 + len(ctx.args))
        rest = len(ctx.args) - place
        found[1 + place :] = backward(known, *grads)[-rest:]
        return tuple(found)

    @staticmethod
    def jvp(ctx: Any, *given: Any) -> Tensor:
        place = _rules[ctx.operator][2]
        tangents = given[1 + place : 3 + place]
        total: Any = None
        # Inner levels of forward mode are differentiated by outer ones.
        with set_forward_mode(True):
            known = [forward_ad.unpack_dual(x)[0] for x in ctx.saved_tensors]
            for i, tangent in enumerate(tangents):
                if tangent is None:
                    continue
                args = [*ctx.args]
                args[place : place + 2] = known
                args[place + i] = tangent
                term = call(ctx.operator, *args)
                total = term if total is None else total + term
        return total

    @staticmethod
    def vmap(info: Any, in_dims: Any, operator: str, *args: Any) -> Any:
        def one(*values: Any) -> list[Tensor]:
            return [_Bilinear.apply(operator, *values)]

        [out], [dim] = mapped(operator, one, info, in_dims[1:], args)
        return out, dim
