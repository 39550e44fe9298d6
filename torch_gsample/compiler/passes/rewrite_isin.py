"""Searches edges and nodes without sorting them.

Before (which candidates ``x`` of walkers are neighbours of the nodes
``before``, as in node2vec)::

    %0 = aten.repeat_interleave.self_Tensor(%arange, %counts): int64[?]
    %1 = aten.mul.Tensor(x, n): int64[?]
    %2 = aten.add.Tensor(%1, %0): int64[?]
    %3 = gsample.slice_cols(indptr, indices, before): 3 parts
    %4 = getitem(%3, 1): int64[?]
    %5 = aten.repeat_interleave.self_Tensor(%arange, %other_counts): int64[?]
    %6 = aten.mul.Tensor(%4, n): int64[?]
    %7 = aten.add.Tensor(%6, %5): int64[?]
    %8 = aten.isin.Tensor_Tensor(%2, %7): bool[?]

After::

    %0 = gsample.has_edges(indptr, indices, ptr, x, before): bool[?]

``torch.isin`` sorts all codes. Instead, columns are searched in place, and the
extract of the columns ``before`` is not built unless something else needs it.
Other searches of ``x`` in ``nodes`` become those of a matrix whose only column
has ``nodes``::

    %0 = aten.arange(2): int64[2]
    %1 = aten.mul.Tensor(%0, <size of nodes>): int64[2]
    %2 = aten.mul.Tensor(%0, <size of x>): int64[2]
    %3 = gsample.has_edges(%1, nodes, %2, x): bool[?]

Edges are encoded as ``row * num_cols + col`` or ``col * num_rows + row``. In
the second case, the operator checks that rows are below ``num_rows``, as codes
would otherwise collide.

Not when: an operand is not an integer vector in CPU memory; their dtypes
differ; or a tensor is changed in place. Codes that are computed in another
way, or with different numbers of columns, are searched as other numbers.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.fx import Graph, Node

from torch_gsample.compiler.edge_work import pointers_of
from torch_gsample.compiler.ir import (
    add_node,
    aten,
    call,
    erase_unused,
    example,
    is_size,
    may_change,
    part_of,
    same_size,
)

HAS_EDGES = torch.ops.gsample.has_edges.default


class Edges(NamedTuple):
    """Edges of columns, encoded as integers."""

    ptr: Node
    rows: Node
    num_cols: Any
    num_rows: Any  # None for ``row * num_cols + col``


def rewrite_isin(graph: Graph) -> list[str]:
    """Rewrites each search among edge codes or other integers."""
    changed, notes = may_change(graph), []
    for node in list(graph.nodes):
        if node.target is not aten.isin.Tensor_Tensor:
            continue
        if not changed.isdisjoint(node.args):
            continue
        with graph.inserting_before(node):
            out = _search_columns(graph, node, changed)
            what = 'edges in their columns'
            if out is None:
                out, what = _search_vector(graph, node), 'without sorting'
        if out is None:
            continue
        out.meta['example_value'] = example(node)
        node.replace_all_uses_with(out)
        erase_unused(graph, node)
        notes.append(f'{out}: searches {what}')
    return notes


def _search_columns(
    graph: Graph, node: Node, changed: set[Node]
) -> Node | None:
    """Adds the search of edges in columns, if both sides are edge codes."""
    searched, given = map(_edges, reversed(node.args))
    if (
        node.kwargs
        or searched is None
        or given is None
        or not _are_alike(searched, given)
    ):
        return None
    indptr, indices, cols = _matrix(searched)
    if not changed.isdisjoint({indptr, indices, given.ptr, given.rows, cols}):
        return None
    args = (indptr, indices, given.ptr, given.rows)
    limit = {} if given.num_rows is None else {'num_rows': given.num_rows}
    return call(
        graph, HAS_EDGES, args if cols is None else (*args, cols), **limit
    )


def _search_vector(graph: Graph, node: Node) -> Node | None:
    """Adds the search of integers in a vector, as a matrix of one column."""
    operands: Any = node.args[:2]
    numbers, searched = operands
    if not (_is_integer_vector(numbers) and _is_integer_vector(searched)):
        return None
    if example(numbers).dtype != example(searched).dtype:
        return None
    steps = example(numbers).new_empty(2, dtype=torch.int64)
    steps, ptrs = add_node(graph, steps, numbers, aten.arange.default, 2), []
    for vector in (searched, numbers):
        size: Any = example(vector).shape[0]
        if not isinstance(size, int):
            size = call(graph, aten.sym_size.int, (vector, 0))
        ptrs.append(call(graph, aten.mul.Tensor, (steps, size)))
    args = ptrs[0], searched, ptrs[1], numbers
    out = add_node(graph, example(node), node, HAS_EDGES, *args)
    if node.kwargs.get('invert'):
        return call(graph, aten.logical_not.default, (out,))
    return out


def _is_integer_vector(value: Any) -> bool:
    if not isinstance(value, Node) or not isinstance(example(value), Tensor):
        return False
    tensor = example(value)
    return (
        tensor.dim() == 1
        and tensor.dtype in (torch.int32, torch.int64)
        and tensor.device.type == 'cpu'
        and _is_plain(value)
    )


def _edges(numbers: Any) -> Edges | None:
    """Reads ``row * num_cols + col`` and ``col * num_rows + row``."""
    if not isinstance(numbers, Node) or example(numbers).dim() != 1:
        return None
    is_sum = numbers.target is aten.add.Tensor and not numbers.kwargs
    for product, more in _both_orders(numbers.args) if is_sum else ():
        if getattr(product, 'target', None) is not aten.mul.Tensor:
            continue
        first, factor = product.args
        if not _is_number(factor) or not isinstance(more, Node):
            continue
        for row, col in ((first, more), (more, first)):
            found = pointers_of(col)
            if found is None or not _is_row(row, col):
                continue
            ptr, num_cols = found
            by_row = row is first
            if by_row and not _same(factor, num_cols):
                continue
            return Edges(
                ptr, _narrow(row), num_cols, _row_limit(by_row, factor)
            )
    return None


def _both_orders(pair: Any) -> Any:
    first, second = pair
    return (first, second), (second, first)


def _row_limit(by_row: bool, factor: Any) -> Any:
    return None if by_row else factor


def _is_number(value: Any) -> bool:
    return isinstance(value, int) or (
        isinstance(value, Node) and is_size(value)
    )


def _is_row(row: Any, col: Node) -> bool:
    """Whether a value is an int64 vector over the edges of columns."""
    value = example(row) if isinstance(row, Node) else None
    return (
        isinstance(value, torch.Tensor)
        and value.dim() == 1
        and value.dtype == example(col).dtype == torch.int64
        and value.device.type == 'cpu'
        and same_size(value.shape[0], example(col).shape[0])
    )


def _narrow(row: Node) -> Node:
    """Returns rows in the dtype of the matrix."""
    wide = row.target is aten.to.dtype and len(row.args) == 2
    source: Any = row.args[0] if wide else row
    kept = example(source).dtype in (torch.int32, torch.int64)
    return source if kept else row


def _same(first: Any, second: Any) -> bool:
    """Whether two numbers or sizes are equal for all inputs."""
    sizes = [example(n) if isinstance(n, Node) else n for n in (first, second)]
    return first is second or same_size(*sizes)


def _are_alike(searched: Edges, given: Edges) -> bool:
    """Whether both sides have the same codes and kind of matrix."""
    if (searched.num_rows is None) != (given.num_rows is None):
        return False
    rows = searched.num_rows is None or _same(
        searched.num_rows, given.num_rows
    )
    pointers, indices = (
        [example(n).dtype for n in pair]
        for pair in zip(searched[:2], given[:2], strict=True)
    )
    kinds = len(set(pointers)) == len(set(indices)) == 1
    narrow = pointers[0] == torch.int64 or indices[0] == torch.int32
    return (
        rows
        and kinds
        and narrow
        and _same(searched.num_cols, given.num_cols)
        and all(_is_plain(n) for n in (*searched[:2], *given[:2]))
    )


def _is_plain(node: Node) -> bool:
    value = example(node)
    return value.dim() == 1 and same_size(value.stride(0), 1)


def _matrix(edges: Edges) -> tuple[Node, Node, Node | None]:
    """Returns the searched columns in their stored form."""
    extract = part_of(edges.rows, 'slice_cols', 1)
    if extract is None or part_of(edges.ptr, 'slice_cols', 0) is not extract:
        return edges.ptr, edges.rows, None
    indptr, indices, cols = extract.args[:3]
    return indptr, indices, cols  # type: ignore[return-value]
