"""Replacement of in-place changes by new values."""

from typing import Any

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from torch_gsample.compiler.ir import (
    aten,
    example,
    is_pure,
    is_view,
    written,
)
from torch_gsample.torch_private import OpOverload, schema_of
from torch_gsample.torch_private.dynamo import examples_of

_KEPT = {torch.Tag.nondeterministic_seeded, torch.Tag.inplace_view}


def make_new_value(node: Node, mode: Any, keeps_gradient: bool) -> None:
    """Turns an in-place change into a new value if nobody can tell.

    Args:
        node (torch.fx.Node): The call of an operator.
        mode (FakeTensorMode, optional): The mode of the examples.
        keeps_gradient (bool): Whether gradients are recorded at the node.
    """
    overload = _without_change(node.target)
    if overload is None or written(node) != [node.args[0]]:
        return
    before: Any = node.args[0]
    value = example(before)
    # Under no_grad, the new value would lose its gradient.
    if not _is_own(before, node) or (
        value.requires_grad and not keeps_gradient
    ):
        return
    args, kwargs = map_arg((node.args, node.kwargs), example)
    try:
        with examples_of(mode, keeps_gradient):
            new = overload(*args, **kwargs)
    except Exception:  # the call itself would fail at run time
        return
    if new.dtype != value.dtype:
        return  # `x.add_(y)` has the dtype of x
    before.replace_all_uses_with(node, delete_user_cb=lambda user: node < user)
    node.target = overload
    node.meta['example_value'] = new


def _without_change(target: Any) -> OpOverload | None:
    """Returns the out-of-place variant of an in-place operator."""
    if not isinstance(target, OpOverload) or target.namespace != 'aten':
        return None
    schema = schema_of(target)
    name = schema.name.removeprefix('aten::')
    packet = getattr(aten, name.removesuffix('_'), None)
    # Draws, and operators that change a tensor's metadata, stay in place.
    if packet is None or not name.endswith('_') or _KEPT & {*target.tags}:
        return None
    overloads = (getattr(packet, item) for item in packet.overloads())
    same = (o for o in overloads if _taken(schema_of(o)) == _taken(schema))
    return next((o for o in same if not schema_of(o).is_mutable), None)


def _taken(schema: Any) -> list[tuple[str, str]]:
    return [(item.name, str(item.type)) for item in schema.arguments]


def _is_own(operand: Any, node: Node) -> bool:
    """Whether a tensor is new, and not read before and after a node."""
    return (
        isinstance(operand, Node)
        and isinstance(operand.target, OpOverload)
        and is_pure(operand)
        and not is_view(operand)
        and not any(
            user < node and (is_view(user) or not is_pure(user))
            for user in operand.users
        )
    )
