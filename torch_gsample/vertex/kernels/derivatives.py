"""Higher derivatives of units, which are units, too.

If autograd or a transform differentiates a gradient, its units keep detached
values detached. The values that a unit saved are then results with their own
gradients, computed by units for the outputs that have one.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from torch_gsample.codegen.unit import unit_of
from torch_gsample.torch_private import (
    is_mapped,
    is_vectorized,
    set_forward_mode,
    without_ended,
    without_transforms,
)
from torch_gsample.vertex.frontend.precision import cast
from torch_gsample.vertex.kernels.fused_unit import Fused, Parts, fused
from torch_gsample.vertex.kernels.layout import Loops
from torch_gsample.vertex.kernels.operator import parts_of, rows_of, run_unit
from torch_gsample.vertex.kernels.relations import Level
from torch_gsample.vertex.plan.differentiate import (
    Backward,
    differentiate,
    tangents,
)


def _units_again(
    unit: Fused, outputs: tuple[int, ...]
) -> tuple[Backward, Parts]:
    """Returns the cached gradient units of some outputs."""
    made = unit.backward
    assert made is not None
    if outputs not in made.again:
        known = [unit.unit.outputs[i].root for i in _kept(unit)]
        some = tuple(unit.unit.outputs[i] for i in outputs)
        part = replace(unit.unit, outputs=some)
        plan = differentiate(part, made.wanted, known)
        parts = parts_of(unit.unit, plan)
        for other, _ in parts:
            if other is not None:
                other.names |= unit.names
        made.again[outputs] = plan, parts
    return made.again[outputs]


def _kept(unit: Fused) -> list[int]:
    """Returns the outputs of a unit saved for gradients."""
    assert unit.backward is not None
    return sorted({i for i in unit.backward.saved if i is not None})


def gradients_again(
    ctx: Any, saved: Sequence[Tensor | None], grads: Sequence[Tensor | None]
) -> tuple[Backward, list[list[Tensor]]]:
    """Computes gradients that can be differentiated.

    Args:
        ctx (Any): The context of the differentiated unit.
        saved (Sequence[torch.Tensor, optional]): Its saved tensors.
        grads (Sequence[torch.Tensor, optional]): The gradients of its outputs.

    Returns:
        Tuple[Backward, List[List[torch.Tensor]]]: The gradient units and their
        outputs.

    Raises:
        NotImplementedError: If a required operand was not saved.
    """
    unit, (graphs, count) = ctx.fused, ctx.count
    types, *graph = map(_plain, saved[: 1 + graphs])
    kept = saved[1 + graphs :]
    outputs = tuple(i for i, grad in enumerate(grads) if grad is not None)
    plan, parts = _units_again(unit, outputs)
    known = dict(zip(unit.given, kept[:count], strict=True))
    of_outputs = dict(zip(unit.backward.saved, kept[count:], strict=True))
    rest = [of_outputs[i] for i in _kept(unit)]
    rest += [grads[i] for i in outputs]
    known.update(enumerate(rest, len(unit.unit.leaves)))
    found: list[list[Tensor]] = []
    for part, numbers in parts:
        out: list[Tensor] = []
        if part is not None:
            operands = [known[numbers[j]] for j in part.given]
            if any(x is None for x in operands):
                names = ' or '.join(sorted(unit.names)) or 'vertex_unit'
                raise NotImplementedError(
                    f'{names}: this gradient of a gradient is not '
                    'supported, because an operand was not saved'
                )
            operands = [without_ended(x) for x in operands]
            out = _run(ctx, part, graph, types, operands)
        place = len(unit.unit.leaves) + len(rest)
        known.update(enumerate(out[plan.given :], place))
        found.append(out)
    return plan, found


def refuse_vectorized(unit: Fused, given: Sequence[Tensor | None]) -> None:
    """Rejects gradients or tangents mapped outside of ``torch.func``.

    Args:
        unit (Fused): The unit.
        given (Sequence[torch.Tensor, optional]): The gradients or tangents.

    Raises:
        NotImplementedError: If one is mapped.
    """
    if any(x is not None and is_vectorized(x) for x in given):
        names = ' or '.join(sorted(unit.names)) or 'vertex_unit'
        raise NotImplementedError(
            f"{names}: 'is_grads_batched' and 'vectorize' of torch.autograd "
            f'are not supported; use jacrev, jacfwd, hessian or vmap of '
            f'torch.func'
        )


def _run(
    ctx: Any, part: Fused, graph: Any, types: Any, operands: list[Tensor]
) -> list[Tensor]:
    """Runs a unit over the edges of another one.

    Values read only by derivatives have the precision of kernels, not of
    features.
    """
    sizes, loops, level = ctx.edges
    leaves = [part.unit.leaves[i] for i in part.given]
    operands = [
        cast(x, leaf.memory) for x, leaf in zip(operands, leaves, strict=True)
    ]
    return run_unit(
        *(part.number, graph, types, sizes, Loops(loops)),
        *(Level(level), operands),
    )


def _plain(x: Tensor | None) -> Any:
    """Returns the plain tensor of a graph tensor under a transform."""
    return None if x is None else without_transforms(x)


def tangents_of(ctx: Any, given: Sequence[Tensor | None]) -> tuple:
    """Returns the tangents of the outputs of a unit.

    Args:
        ctx (Any): The unit's context, with its operands.
        given (Sequence[torch.Tensor, optional]): The tangents of the operands.
    """
    unit: Fused = ctx.fused
    refuse_vectorized(unit, given)
    wanted = tuple(i for i, x in enumerate(given) if x is not None)
    if wanted not in unit.tangents:
        numbers = [unit.given[i] for i in wanted]
        leaves, outputs = tangents(unit.unit, numbers)
        some = [x for x in outputs if x is not None]
        made, kept = unit_of(unit.unit.center, leaves, unit.unit.sizes, some)
        part = fused(made) if some else None
        if part is not None:
            part.names |= unit.names
        unit.tangents[wanted] = part, kept, [x is not None for x in outputs]
    part, kept, has_tangent = unit.tangents[wanted]
    types, *graph = map(_plain, ctx.graph)
    found: list[Tensor] = []
    # Inner levels of forward mode are differentiated by outer ones.
    with set_forward_mode(True):
        known = {
            number: forward_ad.unpack_dual(x).primal
            for number, x in zip(unit.given, ctx.saved_tensors, strict=True)
        }
        known.update(
            enumerate((given[i] for i in wanted), len(unit.unit.leaves))
        )
        if part is not None:
            operands = [known[kept[i]] for i in part.given]
            found = _run(ctx, part, graph, types, operands)
    rest = iter(found)
    sizes, _, level = ctx.edges
    like = next(x for x in given if x is not None)
    zeros = unit.fake(rows_of(sizes, level), like)
    return tuple(
        cast(next(rest), zero.dtype) if is_there else zero.zero_()
        for is_there, zero in zip(has_tangent, zeros, strict=True)
    )


def mapped(
    name: str,
    call: Callable[..., Sequence[Tensor]],
    info: Any,
    in_dims: Sequence[Any],
    args: Sequence[Any],
) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    """The rule of ``torch.vmap``: sequential calls.

    Args:
        name (str): The name for errors.
        call (Callable): Takes the arguments without the mapped dimension.
        info (Any): The info of ``torch.vmap``, with the batch size.
        in_dims (Sequence): The mapped dimension of each argument.
        args (Sequence): The arguments.

    Raises:
        ValueError: If the batch is empty.
    """
    if info.batch_size == 0:
        raise ValueError(f'{name}: torch.vmap over nothing has no results')
    found = [
        call(
            *(
                x.select(dim, i)
                if isinstance(x, Tensor) and dim is not None
                else x
                for x, dim in zip(args, in_dims, strict=True)
            )
        )
        for i in range(info.batch_size)
    ]
    out = tuple(torch.stack(parts) for parts in zip(*found, strict=True))
    return out, (0,) * len(out)


def graph_is_mapped(name: str) -> NotImplementedError:
    """Returns the error of ``torch.vmap`` over graphs."""
    return NotImplementedError(
        f'{name}: torch.vmap over graphs is not supported; loop over them, or '
        f'join them to one (torch_geometric.data.Batch)'
    )


def refuse_mapped(name: str, *tensors: Tensor | None) -> None:
    """Raises an error if ``torch.vmap`` maps the tensors of a graph.

    Args:
        name (str): The name for errors.
        *tensors (torch.Tensor, optional): The tensors.

    Raises:
        NotImplementedError: If one is mapped.
    """
    if any(isinstance(x, Tensor) and is_mapped(x) for x in tensors):
        raise graph_is_mapped(name)
