"""Products of values of edges with matrices, computed at the ends of edges.

    [x_i, x_j - x_i] @ [[A], [B]]   ->   (x_i @ A - x_i @ B) + x_j @ B

Each product then has a row for each vertex, not for each edge. Values that are
not sums of values of the ends are multiplied at edges: in the kernel if the
matrix has few columns, otherwise by torch, a tile of edges at a time.
"""

from typing import Any

import torch

from torch_gsample.vertex.capture.nodes import (
    DESTINATION,
    EDGE,
    MIXED,
    PARAMETER,
    PURE,
    SOURCE,
    Node,
    is_number,
)
from torch_gsample.vertex.frontend.precision import HALF, kernel_dtype

aten = torch.ops.aten
#: Operators that choose a row of a parameter for each edge.
_CHOICES = 'index_select', 'index', 'embedding'
#: Maximum columns that a kernel multiplies edge by edge; torch multiplies
#: wider ones by tiles of edges.
COLUMNS = 8

#: A term of a sum: its factor, and its first column in the concatenation.
Term = tuple[float, Node, int]


def distributed(call: Any, x: Node, weight: Node, bias: Node | None) -> Node:
    """Returns a product as a sum of products.

    Args:
        call (Call): The product.
        x (Node): Values of edges.
        weight (Node): The matrix, or vector.
        bias (Node, optional): The addend.
    """
    dtype = weight.dtype
    if dtype in HALF:
        # Terms cancel, as in x_j - x_i, so their products must not be rounded.
        weight = _cast(call, weight, torch.float32)
        bias = bias and _cast(call, bias, torch.float32)
        out = distributed(call, x, weight, bias)
        return _cast(call, out, dtype)
    found: dict[tuple[Node, int], float] = {}
    for factor, node, start in _terms(x, 1.0, 0):
        key = node, start
        found[key] = found.get(key, 0.0) + factor
    sums: dict[str, Node] = {}
    for (node, start), factor in found.items():
        if factor == 0.0:
            continue
        piece = _product(call, node, weight, start)
        if factor != 1.0:
            piece = call.call(aten.mul.Tensor, piece, factor)
        known = sums.get(node.kind)
        if known is not None:
            piece = call.call(aten.add.Tensor, known, piece)
        sums[node.kind] = piece
    if not sums:
        raise call.fail('its terms cancel')
    first, *rest = (sums[kind] for kind in sorted(sums))
    if bias is not None:
        first = call.call(aten.add.Tensor, first, bias)
    for piece in rest:
        first = call.call(aten.add.Tensor, first, piece)
    return first


def by_type(call: Any, x: Node, matrices: Node) -> Node | None:
    """Returns a product of ends of edges with the matrix of an edge's type.

        x_j.unsqueeze(1) @ weight[type]   ->   typed(x, weight, type)

    Torch multiplies the rows of each type at once: no edge has a matrix of its
    own in memory. Nothing is returned where matrices are not chosen by types,
    or rows are not those of one end.

    Args:
        call (Call): The product.
        x (Node): Rows, ``[num_edges, 1, in_channels]``.
        matrices (Node): ``[num_edges, in_channels, out_channels]``.
    """
    if matrices.op not in _CHOICES or x.shape[1] != 1:
        return None
    if x.kind not in (SOURCE, DESTINATION) or matrices.kind != EDGE:
        return None
    weight, *_, index = matrices.args
    if isinstance(index, (list, tuple)):
        [index] = index
    if matrices.op == 'embedding':
        index = matrices.args[1]
    if weight.kind != PARAMETER or weight.rank != 3:
        return None
    edges, _, width = x.shape
    rows = call.call(aten.view.default, x, [edges, width])
    shape = edges, 1, matrices.shape[2]
    args = rows, weight, index
    return Node('typed', EDGE, shape, x.dtype, 0, args, where=call.where)


def _product(call: Any, node: Node, weight: Node, start: int) -> Node:
    node = _cast(call, node, weight.dtype)
    width = node.shape[-1]
    if width != weight.shape[0]:
        weight = call.call(aten.slice.Tensor, weight, 0, start, start + width)
    func = aten.mv.default if weight.rank == 1 else aten.mm.default
    if node.kind in PURE:
        return call.call(func, node, weight)
    shape = node.shape[0], *weight.shape[1:]
    name = func.overloadpacket.__name__
    return Node(
        *(name, MIXED, shape, node.dtype, 0, (node, weight)),
        func=func,
        where=call.where,
    )


def _cast(call: Any, node: Node, dtype: torch.dtype) -> Node:
    if node.dtype == dtype:
        return node
    return call.call(aten._to_copy.default, node, dtype=dtype)


def _terms(node: Node, factor: float, start: int) -> list[Term]:
    """Splits a value into the terms of a sum."""
    if node.kind in PURE or node.kind == PARAMETER:
        return [(factor, node, start)]
    args = node.args
    if node.op in ('add', 'sub') and _are_alike(node):
        alpha = node.kwargs.get('alpha', 1) * (-1 if node.op == 'sub' else 1)
        return [
            *_terms(args[0], factor, start),
            *_terms(args[1], factor * alpha, start),
        ]
    if node.op == '_to_copy' and kernel_dtype(args[0].dtype) == kernel_dtype(
        node.dtype
    ):
        return _terms(args[0], factor, start)
    if node.op == 'neg':
        return _terms(args[0], -factor, start)
    if node.op in ('mul', 'div') and len(args) == 2 and is_number(args[1]):
        scale = args[1] if node.op == 'mul' else 1.0 / args[1]
        return _terms(args[0], factor * scale, start)
    if node.op == 'cat' and args[1] == node.rank - 1:
        found = []
        for part in args[0]:
            found += _terms(part, factor, start)
            start += part.shape[-1]
        return found
    return [(factor, node, start)]


def _are_alike(node: Node) -> bool:
    return all(
        isinstance(x, Node) and x.shape == node.shape and x.rank == 2
        for x in node.args
    )
