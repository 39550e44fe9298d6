"""Frontiers that are unions of columns and of the rows of several hops."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch.fx import Node

from torch_gsample.compiler.hop_chains import ascends, is_unique, widens
from torch_gsample.compiler.ir import aten, example, gathered, part_of, parts

#: An upper bound of nodes without information.
_MANY = 2**62


class Rows(NamedTuple):
    """The rows of the edges of a hop."""

    hop: Node
    indices: Node
    num_rows: Any  # of the matrix, if known


@dataclass(frozen=True)
class Union:
    """A frontier: the union of columns and of sampled rows."""

    base: Node | None
    rows: tuple[Rows, ...]
    sorted: bool


def find_union(node: Any, columns: set[Any]) -> Union | None:
    """Recognises ``unique(cat([base, rows, ...]))`` and its variants."""
    value = example(node) if isinstance(node, Node) else None
    if not isinstance(value, torch.Tensor) or value.dtype != torch.int64:
        return None
    unique = part_of(node, 'unique_nodes', 0)
    if unique is None and not is_unique(node):
        return None
    in_order = unique is not None and not ascends(unique)
    leaves = list(_leaves((unique or node).args, columns, in_order))
    rows = [leaf for leaf in leaves if isinstance(leaf, Rows)]
    base = [leaf for leaf in leaves if isinstance(leaf, Node)]
    if len(base) > 1 or (in_order and base and leaves[0] is not base[0]):
        return None
    if not rows and not columns.issuperset(base):
        return None  # distinct seeds
    return Union(base[0] if base else None, tuple(rows), not in_order)


def _leaves(
    args: Any, columns: set[Any], in_order: bool
) -> Iterator[Node | Rows]:
    """Yields the operands of a union in order; `args` are a `unique`'s."""
    node, num_rows = args[0], args[1] if len(args) > 1 else None
    inner = part_of(node, 'unique_nodes', 0)
    gather = gathered(node)
    hop = part_of(gather[1], 'sample_columns', 1) if gather else None
    if node in columns:
        yield node
    elif inner is not None and not (in_order and ascends(inner)):
        yield from _leaves(inner.args, columns, in_order)
    elif is_unique(node) and not in_order:
        yield from _leaves(node.args, columns, in_order)
    elif widens(node):
        yield from _leaves((node.args[0], *args[1:]), columns, in_order)
    elif node.target is aten.cat.default and len(node.args) == 1:
        for item in node.args[0]:
            yield from _leaves((item,), columns, in_order)
    elif gather is not None and hop is not None:
        unknown = num_rows is None or num_rows == _MANY
        yield Rows(hop, gather[0], None if unknown else num_rows)
    else:
        yield node


def unique_rows(hop: Node) -> Iterator[Rows]:
    """Yields the rows of a hop that are made unique."""
    edge = parts(hop).get(1)
    for row in () if edge is None else edge.users:
        gather = gathered(row)
        for user in row.users if gather and gather[1] is edge else ():
            unique = user.target is torch.ops.gsample.unique_nodes.default
            if unique and user.args[1] != _MANY:
                yield Rows(hop, gather[0], user.args[1])  # type: ignore


def is_empty(node: Any) -> bool:
    """Whether a vector is empty for all inputs."""
    size = example(node).shape[0]
    return isinstance(size, int) and size == 0
