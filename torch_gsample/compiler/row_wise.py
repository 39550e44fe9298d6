"""Operators that compute each row of a result from that row of operands.

For these, ``f(x)[i]`` equals ``f(x[i])`` for any selected rows ``i``.
Elementwise operators are known by torch's tag; a broadcast operand has no
rows.
"""

from typing import Any

import torch
from torch import Tensor
from torch.fx import Node
from torch.fx.node import map_arg

from torch_gsample.compiler.ir import (
    aten,
    example,
    gathered,
    is_pure,
    same_size,
)
from torch_gsample.torch_private import OpOverload, schema_of

#: Elementwise functions with one correctly rounded result.
_EXACT = frozenset(
    {
        aten.abs.default,
        aten.add.Tensor,
        aten.clamp.default,
        aten.clamp_max.default,
        aten.clamp_min.default,
        aten.div.Tensor,
        aten.masked_fill.Scalar,
        aten.maximum.default,
        aten.minimum.default,
        aten.mul.Tensor,
        aten.neg.default,
        aten.reciprocal.default,
        aten.relu.default,
        aten.sqrt.default,
        aten.square.default,
        aten.sub.Tensor,
        aten.to.dtype,
        aten.where.ScalarOther,
        aten.where.ScalarSelf,
        aten.where.self,
    }
)

#: Elementwise operators that torch does not tag.
_ELEMENTWISE = frozenset(
    {
        aten.detach.default,
        aten.expand_as.default,
        aten.masked_fill.Tensor,
        aten.to.dtype,
        aten.where.ScalarOther,
        aten.where.ScalarSelf,
    }
)

#: Operators along dimensions, with the index of that argument. Only moves:
_MOVES: dict[Any, int] = {
    aten.cat.default: 1,
    aten.flip.default: 1,
    aten.index_select.default: 1,
    aten.select.int: 1,
    aten.slice.Tensor: 1,
    aten.squeeze.dim: 1,
    aten.stack.default: 1,
    aten.unsqueeze.default: 1,
}
_ALONG: dict[Any, int] = {
    **_MOVES,
    aten.all.dim: 1,
    aten.amax.default: 1,
    aten.amin.default: 1,
    aten.any.dim: 1,
    aten.cumsum.default: 1,
    aten.linalg_vector_norm.default: 2,
    aten.log_softmax.int: 1,
    aten.logsumexp.default: 1,
    aten.mean.dim: 1,
    aten.prod.dim_int: 1,
    aten.softmax.int: 1,
    aten.sum.dim_IntList: 1,
}
#: Operators whose dimensions are those of the result.
_ADDS = frozenset({aten.stack.default, aten.unsqueeze.default})
_PRODUCTS = frozenset(
    {
        aten.linear.default,
        aten.matmul.default,
        aten.mm.default,
        aten.mv.default,
    }
)
_SHAPES = frozenset({aten.reshape.default, aten.view.default})


def is_exact_map(node: Node) -> bool:
    """Whether a node is arithmetic with position-independent rounding."""
    if node.target is aten.pow.Tensor_Scalar:
        return node.args[1] in (2, 3)
    return node.target in _EXACT and 'alpha' not in node.kwargs


def is_exact(node: Node) -> bool:
    """Whether a rowwise operator gives the same bits for a subset of rows."""
    values = [example(node), *map(example, node.all_input_nodes)]
    integers = not any(
        isinstance(v, Tensor) and (v.is_floating_point() or v.is_complex())
        for v in values
    )
    compares = values[0].dtype == torch.bool and is_elementwise(node)
    return (
        integers
        or compares
        or is_exact_map(node)
        or gathered(node) is not None
        or node.target in _MOVES
        or node.target in _SHAPES
        or node.target in (aten.detach.default, aten.expand_as.default)
    )


def is_elementwise(node: Node) -> bool:
    """Whether a node is elementwise, after broadcasting."""
    target = node.target
    return target in _ELEMENTWISE or (
        isinstance(target, OpOverload) and torch.Tag.pointwise in target.tags
    )


def is_view(node: Node) -> bool:
    """Whether a node's result may share memory with an operand."""
    if not isinstance(node.target, OpOverload):
        return False
    if node.target is aten.to.dtype:
        source: Any = node.args[0]
        return example(source).dtype == example(node).dtype
    returns = schema_of(node.target).returns
    return any(item.alias_info is not None for item in returns)


def row_operands(node: Node) -> list[Node]:
    """Returns operands of which a result's row reads only that row.

    The computation does not depend on the row's position. Empty if this is not
    known without a guard on a size.
    """
    value = example(node)
    if (
        not isinstance(node.target, OpOverload)
        or not is_pure(node)
        or not isinstance(value, Tensor)
        or value.dim() == 0
    ):
        return []
    gather = gathered(node)
    if gather is not None:
        operands = [gather[1]]
    elif is_elementwise(node):
        operands = _broadcast_operands(node, value)
    elif node.target in _ALONG:
        operands = _operands_along(node, value)
    elif node.target in _PRODUCTS:
        operands = _left_factor(node)
    elif node.target in _SHAPES:
        operands = _reshaped(node, value)
    else:
        return []
    once = _tensors([node.args, node.kwargs])
    alone = is_elementwise(node) or all(once.count(n) == 1 for n in operands)
    same = all(same_size(_rows(n), value.shape[0]) for n in operands)
    return operands if alone and same else []


def _tensors(args: Any) -> list[Node]:
    """Returns the tensors among arguments, with repetitions."""
    found: list[Node] = []
    map_arg(args, found.append)
    return [node for node in found if isinstance(example(node), Tensor)]


def _rows(node: Node) -> Any:
    return example(node).shape[0]


def _broadcast_operands(node: Node, value: Tensor) -> list[Node]:
    """Returns operands with the result's dimensions and number of rows.

    Shapes are aligned at their ends, so fewer dimensions mean no rows.
    """
    operands = []
    for operand in _tensors([node.args, node.kwargs]):
        if example(operand).dim() < value.dim():
            continue
        if same_size(_rows(operand), value.shape[0]):
            operands.append(operand)
        elif not same_size(_rows(operand), 1):
            return []
    return operands


def _operands_along(node: Node, value: Tensor) -> list[Node]:
    """Returns the operands, if the named dimensions exclude the first."""
    first, position = node.args[0], _ALONG[node.target]
    operands = list(first) if isinstance(first, (tuple, list)) else [first]
    dims: Any = node.kwargs.get('dim', 0)
    if len(node.args) > position:
        dims = node.args[position]
    dims = dims if isinstance(dims, (tuple, list)) else [dims]
    if not dims or not all(type(dim) is int for dim in dims):
        return []
    count = value.dim() if node.target in _ADDS else example(operands[0]).dim()  # type: ignore[arg-type]
    if any(dim % count == 0 for dim in dims):
        return []
    return operands  # type: ignore[return-value]


def _left_factor(node: Node) -> list[Node]:
    """Returns the left factor of a product with a matrix or a vector."""
    left, right = node.args[:2]
    if example(left).dim() < 2 or example(right).dim() > 2:  # type: ignore[arg-type]
        return []
    return [left]  # type: ignore[list-item]


def _reshaped(node: Node, value: Tensor) -> list[Node]:
    """Returns the operand of ``view(-1, ...)`` if it keeps rows."""
    source, sizes = node.args
    features = value.shape[1:]
    known = all(type(size) is int for size in features)
    return [source] if known and sizes[0] == -1 else []  # type: ignore


def with_operands(node: Node, operands: dict[Node, Node]) -> tuple[Any, Any]:
    """Returns the arguments of a node with other operands."""
    return map_arg((node.args, node.kwargs), lambda n: operands.get(n, n))


def is_length(node: Node) -> bool:
    """Whether a node is the number of rows of a tensor."""
    return bool(node.target is aten.sym_size.int and node.args[1] == 0)


def users_but_lengths(node: Node) -> list[Node]:
    """Returns users that read more of a tensor than its number of rows."""
    return [user for user in node.users if not is_length(user)]
