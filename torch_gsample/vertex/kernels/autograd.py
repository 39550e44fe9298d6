"""The autograd functions of fused units.

Memory is freed as early as possible: saved tensors before the last kernel
runs; gradients of the same operand are added into the first one.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torch_gsample.ops._gradient import register_gradient
from torch_gsample.torch_private import (
    has_dispatch_modes,
    is_transformed,
    is_view,
)
from torch_gsample.vertex.frontend.precision import cast
from torch_gsample.vertex.kernels.derivatives import (
    gradients_again,
    mapped,
    refuse_vectorized,
    tangents_of,
)
from torch_gsample.vertex.kernels.fused_unit import fused_units
from torch_gsample.vertex.kernels.operator import (
    differentiable,
    edges_at,
    is_direct,
    rows_of,
    run_fused,
)
from torch_gsample.vertex.plan.differentiate import Backward


def _save(ctx: Any, inputs: Any, output: Any) -> None:
    unit, graph, types, *ctx.edges, operands = inputs
    ctx.layouts = None
    ctx.fused = fused_units[unit]
    ctx.count = len(graph), len(operands)
    ctx.shapes = [x.shape for x in operands]
    ctx.dtypes = [x.dtype for x in operands]
    # The first position of a repeated operand, such as that of both ends.
    ctx.first = [
        next(j for j, y in enumerate(operands) if y is x) for x in operands
    ]
    ctx.set_materialize_grads(False)  # gradients need no saved value
    backward = ctx.fused.backward
    kept: list[Tensor | None] = []
    if backward is not None:
        read = backward.read
        given = zip(ctx.fused.given, operands, strict=True)
        kept = [x if number in read else None for number, x in given]
        kept += [None if i is None else output[i] for i in backward.saved]
    ctx.save_for_backward(types, *graph, *kept)


def _backward(ctx: Any, grads: Sequence[Tensor | None]) -> Any:
    backward = ctx.fused.backward
    if backward is None:
        names = ' or '.join(sorted(ctx.fused.names)) or 'vertex_unit'
        raise NotImplementedError(
            f'{names}: gradients of gradients are not supported; '
            f'differentiate once, without create_graph=True'
        )
    refuse_vectorized(ctx.fused, grads)
    graphs, count = ctx.count
    nothing = None, [None] * graphs, None, None, None, None
    # Saved values have gradients if gradients are differentiated.
    again = any(grad is not None for grad in grads[backward.num_results :])
    again = again or torch.is_grad_enabled() or is_transformed()
    if again and any(grad is not None for grad in grads):
        plan, outputs = gradients_again(ctx, ctx.saved_tensors, grads)
        return *nothing, _gradients(ctx, plan, outputs, again)
    if all(grad is None for grad in grads[: backward.num_results]):
        return *nothing, [None] * count
    types, *saved = ctx.saved_tensors
    if hasattr(ctx, 'maybe_clear_saved_tensors'):
        ctx.maybe_clear_saved_tensors()  # freed by the last user
    graph, kept = saved[:graphs], saved[graphs:]
    del saved
    known = _known(ctx, kept, grads)
    del kept, grads
    outputs = []
    direct = is_direct(list(known.values()))
    for i, (part, numbers) in enumerate(backward.parts):
        found: list[Tensor] = []
        if part is not None:
            operands = [known[numbers[j]] for j in part.given]
            if direct and ctx.layouts is not None:
                found = part.run(ctx.layouts, operands)
            else:
                run: Any = run_fused
                if not direct:
                    run = torch.ops.gsample.vertex_unit
                found = run(part.number, graph, types, *ctx.edges, operands)
            del operands
        if i == 0:
            place = len(ctx.fused.unit.leaves) + len(backward.plan.saved)
            place += backward.num_results
            later = set(backward.parts[1][1])
            known = {n: x for n, x in known.items() if n in later}
            known.update(enumerate(found[backward.plan.given :], place))
            del found[backward.plan.given :]
        outputs.append(found)
    del known
    return *nothing, _gradients(ctx, backward.plan, outputs, again)


def _known(
    ctx: Any, kept: Sequence[Tensor | None], grads: Sequence[Tensor | None]
) -> dict[int, Tensor]:
    """Returns the inputs of the first gradient unit, by index."""
    unit, backward = ctx.fused.unit, ctx.fused.backward
    count = len(ctx.shapes)
    found = dict(zip(ctx.fused.given, kept[:count], strict=True))
    place = len(unit.leaves)
    found.update(enumerate(kept[count:], place))
    place += len(backward.plan.saved)
    for i, output in enumerate(unit.outputs[: backward.num_results]):
        grad = grads[i]
        if grad is None:
            sizes, _, level = ctx.edges
            rows = rows_of(sizes, level)
            shape = rows[output.kind], unit.width(output.axes)
            like = next(x for x in grads if x is not None)
            grad = like.new_zeros(shape, dtype=output.memory)
        found[place + i] = grad
    return {number: x for number, x in found.items() if x is not None}


def _gradients(
    ctx: Any, plan: Backward, outputs: list[list[Tensor]], again: bool
) -> list[Tensor | None]:
    """Assembles the gradients of operands."""
    place = {number: i for i, number in enumerate(ctx.fused.given)}
    found: list[Tensor | None] = [None] * len(ctx.shapes)
    for part in plan.gradients:
        value = outputs[part.unit][part.output]
        i = ctx.first[place[part.operand]]
        if part.is_total:
            value = value.sum(0)
        if value.shape != ctx.shapes[i]:  # views are never added to
            value = value.reshape(ctx.shapes[i])
        known = found[i]
        if known is not None:
            value = known + value if again else known.add_(value)
        found[i] = value
    # Sums in float32 are rounded once.
    return [
        None if x is None else cast(x, dtype)
        for x, dtype in zip(found, ctx.dtypes, strict=True)
    ]


class _Unit(torch.autograd.Function):
    """A unit, called without the dispatcher."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> tuple[Tensor, ...]:
        call, operands = args[:6], args[6:]
        layouts = edges_at(*call[1:])
        out = fused_units[call[0]].run(layouts, operands)
        _save(ctx, (*call, operands), out)
        ctx.layouts = layouts  # found once: few edges take less time
        return tuple(out)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        *_, found = _backward(ctx, grads)
        return *(None,) * 6, *found


class _TransformedUnit(torch.autograd.Function):
    """A unit under forward mode or ``torch.func``, with more overhead."""

    @staticmethod
    def forward(*args: Any) -> tuple[Tensor, ...]:
        run: Any = run_fused
        if has_dispatch_modes():
            run = torch.ops.gsample.vertex_unit
        out = run(*args[:6], args[6:])
        # A view has no tangent.
        return tuple(x.clone() if is_view(x) else x for x in out)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _save(ctx, (*inputs[:6], inputs[6:]), output)
        types, graph = inputs[2], inputs[1]
        ctx.graph = types, *graph
        ctx.save_for_forward(*inputs[6:])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> Any:
        return _Unit.backward(ctx, *grads)

    @staticmethod
    def jvp(ctx: Any, *given: Tensor | None) -> Any:
        return tangents_of(ctx, given[6:])

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        names = ' or '.join(sorted(fused_units[args[0]].names))
        return mapped(names, _TransformedUnit.apply, info, in_dims, args)


register_gradient('vertex_unit', _backward, _save)
differentiable += [_Unit, _TransformedUnit]
