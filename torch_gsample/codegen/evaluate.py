"""Evaluates expressions with torch operators, without a compiler."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from torch_gsample.codegen.draws import KEPT, POSITION, is_kept, positions
from torch_gsample.codegen.expression import Expression
from torch_gsample.codegen.operations import OPERATIONS
from torch_gsample.codegen.unit import (
    AGGREGATES,
    EDGE,
    PARAMETER,
    ROWS,
    Leaf,
    Types,
    ordered,
)

#: Aggregations by the names in ``scatter_reduce``.
_SCATTERED = {'prod_in': 'prod', 'max_in': 'amax', 'min_in': 'amin'}


class Ends(Protocol):
    """The relation between values of edges and of vertices."""

    def read(self, leaf: Leaf, value: Tensor) -> Tensor:
        """Returns the rows of an operand in the order of edges."""

    def rows(self, kind: str) -> Tensor:
        """Returns the index of each edge or vertex, in order."""

    def moved(self, value: Tensor, kind: str, to: str) -> Tensor:
        """Converts values from one graph type to another."""

    def aggregated(self, node: Expression, value: Tensor) -> Tensor:
        """Returns an aggregate of edges."""


def evaluate(
    roots: Sequence[Expression],
    types: Types,
    sizes: Sequence[int],
    tensors: Mapping[int, Tensor],
    ends: Ends | None = None,
) -> list[Tensor]:
    """Computes expressions one operator at a time.

    Args:
        roots (Sequence[Expression]): The expressions.
        types (Types): The types of operands.
        sizes (Sequence[int]): The size of each axis.
        tensors (Mapping[int, torch.Tensor]): Operands by number.
        ends (Ends, optional): The ends of edges, if any are read.

    Returns:
        List[torch.Tensor]: ``[rows, ...]`` each, with a dimension for each
        axis, of size 1 if the value is constant along it.
    """
    values: dict[Expression, Any] = {}
    device = next((x.device for x in tensors.values()), None)
    for node in ordered(roots):
        if node.op == 'constant':
            assert node.value is not None
            value = torch.full((), node.value, dtype=node.dtype, device=device)
            values[node] = value.reshape([1] * (1 + len(sizes)))
        elif node.op == 'operand':
            leaf = types.leaf(node)
            shape = [
                size if axis in leaf.axes else 1
                for axis, size in enumerate(sizes)
            ]
            value = tensors[int(node.value or 0)].reshape(-1, *shape)
            value = value.to(leaf.dtype)  # of half precision
            values[node] = value if ends is None else ends.read(leaf, value)
        elif node.op in ROWS:
            rows = _rows(node, types, tensors, ends)
            values[node] = rows.view(-1, *[1] * len(sizes))
        elif node.op == POSITION:
            axes: Any = node.value
            values[node] = positions(axes, sizes, device)
        else:
            args = [values[arg] for arg in node.args]
            if ends is not None:
                total = node.op in AGGREGATES
                kind = EDGE if total else types.kind(node)
                args = [
                    ends.moved(x, types.kind(arg), kind)
                    for x, arg in zip(args, node.args, strict=True)
                ]
                if total:
                    values[node] = ends.aggregated(node, args[0])
                    continue
            values[node] = _apply(node, args)
    return [values[root] for root in roots]


def _rows(
    node: Expression,
    types: Types,
    tensors: Mapping[int, Tensor],
    ends: Ends | None,
) -> Tensor:
    """Returns row indices; without edges, those of vertices."""
    if ends is not None:
        return ends.rows(ROWS[node.op])
    of_vertices = [
        x for i, x in tensors.items() if types.leaves[i].kind != PARAMETER
    ]
    rows, device = of_vertices[0].shape[0], of_vertices[0].device
    return torch.arange(rows, device=device)


def _apply(node: Expression, args: list[Any]) -> Any:
    if node.op == 'sum_axis':
        return args[0].sum(int(node.value or 0) + 1, keepdim=True)
    if node.op == 'max_axis':
        return args[0].amax(int(node.value or 0) + 1, keepdim=True)
    if node.op == 'cast':
        return args[0].to(node.dtype)
    if node.op == KEPT:
        return is_kept(int(node.value or 0), *args)
    if node.op == 'pow' and node.args[1].op == 'constant':
        args[1] = node.args[1].value
    return OPERATIONS[node.op].function(*args)


def aggregate(
    node: Expression, value: Tensor, index: Tensor, rows: int
) -> Tensor:
    """Aggregates the values of edges with torch operators.

    Args:
        node (Expression): The aggregate.
        value (torch.Tensor): ``[num_edges, ...]``, or one row for all.
        index (torch.Tensor): The row of each edge in the result.
        rows (int): Rows of the result.
    """
    value = value.expand(index.numel(), *value.shape[1:])
    out = value.new_full((rows, *value.shape[1:]), node.value or 0)
    if node.op not in _SCATTERED:
        return out.index_add(0, index, value)
    place = index.long().view(-1, *[1] * (value.dim() - 1))
    return out.scatter_reduce(
        *(0, place.expand_as(value), value, _SCATTERED[node.op]),
        include_self=False,
    )
