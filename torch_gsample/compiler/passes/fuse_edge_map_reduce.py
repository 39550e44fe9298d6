"""Reduces edges to columns or rows in the kernel that computes them.

Before::

    %0 = aten.pow.Tensor_Scalar(value, 2): float32[9]
    %1 = aten.new_full(%0, [4], 0.0): float32[4]
    %2 = aten.index_add(%1, 0, indices, %0): float32[4]

After::

    %0 = edge_map_reduce[sum(pow(x0, 2.0)) by x1](value, indices, num_rows=4)

Values of edges are not stored. Columns are reduced by their pointers if the
index is the column of each edge (``repeat_interleave``), rows by the index.
Edges are added in their order for any number of threads, so results equal
PyTorch's bit by bit.

Not when: the values of edges have another user (then they are stored, and only
a sum over columns still pays off); the initial value is not zero; or a
maximum, minimum or product is over rows or requires a gradient.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Graph, Node

from torch_gsample.codegen.edge_map import body_of, edge_map, reduction_of
from torch_gsample.codegen.kernel import EdgeKernel
from torch_gsample.codegen.unit import EDGE, POINTERS, Leaf, Unit
from torch_gsample.compiler.edge_work import (
    EdgeWork,
    Reader,
    differentiable,
    is_edge_value,
    pointers_of,
    replace,
)
from torch_gsample.compiler.ir import aten, erase_unused, example, same_size

_FLOATS = (torch.float32, torch.float64)


def fuse_edge_map_reduce(graph: Graph) -> list[str]:
    """Fuses each reduction with the computation of its edge values."""
    work, notes = EdgeWork.of(graph), []
    for node in list(graph.nodes):
        reduction = _reduction(node)
        if reduction is None or not _may_move(work, reduction):
            continue
        found = _values(work, reduction)
        if found is None:
            continue
        unit, tensors = _reduced(reduction, *found)
        if not differentiable(unit, tensors):
            notes.append(f'{node}: unchanged, it has no derivative')
            continue
        size = [] if unit.by is None else [reduction.size]
        replace(graph, node, unit, tensors, *size)
        erase_unused(graph, node)
        notes.append(f'{node}: stores no edge values')
    return notes


@dataclass
class _Reduction:
    """A reduction of edges: ``start[index[e]] += value[e]`` and the like."""

    node: Node
    start: Node
    index: Node
    value: Node
    reduce: str
    fill: float
    size: Any
    pointers: Node | None  # for reductions over columns


def _reduction(node: Node) -> _Reduction | None:
    args: Any = node.args
    if node.target is aten.index_add.default and not node.kwargs:
        if len(args) != 4 or args[1] != 0:
            return None
        reduce, [start, _, index, value] = 'sum', args
    elif node.target is aten.scatter_reduce.two:
        if node.kwargs != {'include_self': False} or args[1] != 0:
            return None
        start, _, index, value, reduce = args
    else:
        return None
    begun = _start(start)
    if begun is None or not is_edge_value(value, _FLOATS):
        return None
    size, fill = begun
    if example(start).dtype != example(value).dtype:
        return None
    found = pointers_of(index)
    by_column = found is not None and same_size(found[1], size)
    sums = reduce == 'sum' and fill == 0
    known = sums or (by_column and reduce in ('amax', 'amin', 'prod'))
    if not known or example(index).dim() > example(value).dim():
        return None
    pointers = found[0] if found is not None and by_column else None
    return _Reduction(node, start, index, value, reduce, fill, size, pointers)


def _start(node: Node) -> tuple[Any, float] | None:
    """Returns the rows of a new tensor, and its value."""
    args: Any = node.args
    if node.target is aten.new_full.default:
        size, fill = args[1], args[2]
    elif node.target is aten.new_zeros.default:
        size, fill = args[1], 0.0
    elif node.target is aten.zeros.default:
        size, fill = args[0], 0.0
    else:
        return None
    return (size[0], fill) if isinstance(fill, (int, float)) else None


def _may_move(work: EdgeWork, found: _Reduction) -> bool:
    taken = {found.node, found.start, found.index, found.value}
    if found.pointers is not None:
        taken.add(found.pointers)
    return work.changed.isdisjoint(taken)


def _values(
    work: EdgeWork, found: _Reduction
) -> tuple[Unit, list[Node]] | None:
    """Returns the edge map of the values of edges, and its operands."""
    value = found.value
    kernel, own = value.target, {found.start, found.node}
    if own >= set(value.users) and work.may_join(value, found.node):
        if isinstance(kernel, EdgeKernel) and not reduction_of(kernel.unit):
            return kernel.unit, list(value.args)  # type: ignore[arg-type]
        if work.is_fusible(value):
            reader = Reader(work, {value})
            return reader.unit(value), reader.tensors
    if found.pointers is None:
        return None
    reader = Reader(work, set())
    return reader.stored(value), reader.tensors


def _reduced(
    found: _Reduction, unit: Unit, tensors: list[Node]
) -> tuple[Unit, list[Node]]:
    """Adds the reduction to an edge map."""
    leaves, tensors = list(unit.leaves), list(tensors)

    def add(kind: str, tensor: Node) -> int:
        leaf = Leaf('', kind, example(tensor).dtype)
        for i, known in enumerate(zip(leaves, tensors, strict=True)):
            if known == (leaf, tensor):
                return i
        leaves.append(leaf)
        tensors.append(tensor)
        return len(leaves) - 1

    by = None
    others = unit.pointers
    if found.pointers is not None and (
        others is None or tensors[others] is found.pointers
    ):
        add(POINTERS, found.pointers)
    else:
        by = add(EDGE, found.index)
    [features, *_] = [*unit.sizes, 0]
    wide = bool(unit.outputs[0].axes)
    reduced = edge_map(
        body_of(unit),
        leaves,
        found.reduce,
        by,
        found.fill,
        features,
        wide,
    )
    return reduced, tensors
