"""Expressions in operators of torch: what runs where there is no compiler."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from torch_gsample.codegen.expression import Expression
from torch_gsample.codegen.operations import OPERATIONS
from torch_gsample.codegen.vertex_unit import (
    AGGREGATES,
    DESTINATION,
    EDGE,
    PARAMETER,
    SOURCE,
    Types,
    ordered,
)
from torch_gsample.vertex.graph import Graph


def evaluate(
    roots: Sequence[Expression],
    types: Types,
    sizes: Sequence[int],
    tensors: Mapping[int, Tensor],
    graph: Graph | None = None,
) -> list[Tensor]:
    """Computes expressions one operator at a time.

    Args:
        roots (Sequence[Expression]): The expressions.
        types (Types): What operands are.
        sizes (Sequence[int]): The size of each axis.
        tensors (Mapping[int, torch.Tensor]): Operands by number.
        graph (Graph, optional): What edges there are, if any are read.

    Returns:
        List[torch.Tensor]: ``[rows, ...]`` each, with a dimension for each
        axis, of size 1 where the value does not differ along it.
    """
    values: dict[Expression, Any] = {}
    places = _Places(graph)
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
            edges = leaf.kind == EDGE and graph is not None
            values[node] = places.edges(value) if edges else value
        else:
            kind = types.kind(node)
            if node.op in AGGREGATES:
                kind = EDGE
            args = [
                places.moved(values[arg], types.kind(arg), kind)
                for arg in node.args
            ]
            values[node] = _apply(node, args, places)
    return [values[root] for root in roots]


def _apply(node: Expression, args: list[Any], places: '_Places') -> Any:
    if node.op in AGGREGATES:
        return places.aggregated(node.op, args[0])
    if node.op == 'sum_axis':
        return args[0].sum(int(node.value or 0) + 1, keepdim=True)
    if node.op == 'cast':
        return args[0].to(node.dtype)
    if node.op == 'pow' and node.args[1].op == 'constant':
        args[1] = node.args[1].value
    return OPERATIONS[node.op].function(*args)


class _Places:
    """Where the ends of edges are."""

    def __init__(self, graph: Graph | None):
        if graph is not None:
            layout = graph.incoming
            self._graph = graph
            self._vertex = layout.vertex()
            self._edge = layout.edge_id
            self._source = layout.indices

    def moved(self, value: Tensor, kind: str, to: str) -> Tensor:
        """Returns values of one graph type as those of another."""
        if to != EDGE or kind == PARAMETER:
            return value
        if kind == SOURCE:
            return value.index_select(0, self._source)
        if kind == DESTINATION:
            return value.index_select(0, self._vertex)
        return value

    def edges(self, value: Tensor) -> Tensor:
        """Returns features of edges in the order of the layout."""
        if self._edge is None:
            return value
        return value.index_select(0, self._edge)

    def aggregated(self, op: str, value: Tensor) -> Tensor:
        """Returns an aggregate of edges."""
        edges = self._vertex.numel()
        if value.shape[0] != edges:
            value = value.expand(edges, *value.shape[1:])
        index, rows = self._vertex, self._graph.num_destinations
        if op == 'sum_out':
            index, rows = self._source, self._graph.num_sources
        out = value.new_zeros((rows, *value.shape[1:]))
        if op in ('sum_in', 'sum_out'):
            return out.index_add(0, index, value)
        place = index.long().view(-1, *[1] * (value.dim() - 1))
        return out.scatter_reduce(
            0,
            place.expand_as(value),
            value,
            {'max_in': 'amax', 'min_in': 'amin'}[op],
            include_self=False,
        )
