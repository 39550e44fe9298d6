"""Super-batch rules of repetitions, sorts and ranks."""

import torch
from torch.fx import Node

from torch_gsample.compiler.ir import arguments, aten, example
from torch_gsample.compiler.super_batch import segments
from torch_gsample.compiler.super_batch.torch_rules import in_batches, rule
from torch_gsample.compiler.super_batch.values import (
    NoRule,
    Rewrite,
    Value,
    args_of,
)

_INTEGERS = (torch.int32, torch.int64)


@rule(aten.repeat.default)
def _repeat(rewrite: Rewrite, node: Node) -> Value:
    """Repeats the rows of each batch."""
    source, repeats = args_of(node)
    value = rewrite.vector(source)
    first, *others = repeats
    if not isinstance(first, int) or first < 1:
        raise NoRule('the number of repeats is unknown')
    if len(repeats) != example(source).dim() or others != [1] * len(others):
        raise NoRule('it reshapes rows')
    return in_batches(rewrite, node, [value] * first)


@rule(aten.cumsum.default)
def _cumsum(rewrite: Rewrite, node: Node) -> Value:
    """Sums up to each row of its batch; for a mask, ends of held rows."""
    given = arguments(node)
    tensor, value = example(given['self']), rewrite.vector(given['self'])
    if tensor.dim() != 1 or given['dtype'] not in (None, torch.int64):
        raise NoRule(
            'it sums several dimensions, or in a dtype other than int64'
        )
    if tensor.dtype == torch.bool:
        held = rewrite.held(value)
        return Value(rewrite.copy(node), value.axis, held, 'ends')
    if tensor.dtype not in _INTEGERS:
        raise NoRule('the rounding of a running sum depends on earlier rows')
    total = rewrite.call(
        segments.cumsum,
        rewrite.local(value),
        value.axis.ptr,
        rewrite.batch(value.axis),
        like=example(node),
    )
    return Value(total, value.axis)


@rule(
    aten.empty_like.default,
    aten.full_like.default,
    aten.ones_like.default,
    aten.zeros_like.default,
)
def _filled_like(rewrite: Rewrite, node: Node) -> Value:
    value, *more = args_of(node)
    for other in (*more, *node.kwargs.values()):
        rewrite.constant(other)
    value = rewrite.vector(value)
    return Value(rewrite.copy(node), value.axis)
