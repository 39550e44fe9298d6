"""Loops of hops in a program, and the rules of their frontiers."""

import operator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Graph, Node

from torch_gsample.compiler.ir import (
    aten,
    example,
    gathered,
    has_only,
    is_operator,
    live_nodes,
    part_of,
    same_size,
)
from torch_gsample.ops.sample_layers import FRONTIERS

#: Options of hops that `sample_layers` supports.
_OPTIONS = 'cols', 'cum_weight', 'replace'


@dataclass(frozen=True)
class Frontier:
    """The columns of a next hop."""

    node: Node
    sample: Node  # the hop
    indices: Node  # the tensor from which rows are gathered
    base: Node | None  # the nodes before its rows
    whole: Node  # all nodes, if the first ones are dropped
    drops: bool
    sorted: bool
    num_rows: Any  # of the matrix, if known
    keeps_order: bool = False  # one node per edge, with duplicates


@dataclass
class HopChain:
    """Consecutive hops, and the frontiers between them."""

    hops: list[Node]
    frontiers: list[Frontier] = field(default_factory=list)
    rule: str = ''

    def takes(self, next: Frontier) -> bool:
        """Adds a frontier if it has the rule of all others."""
        rules = self._rules(next)
        if self.frontiers:
            rules &= {self.rule, *(['unseen'] if self._may_be_unseen else [])}
            rules &= {r for r in rules if next.sorted == self.sorted}
        if not rules or next.indices is not self.indices(next):
            return False
        self.rule = min(rules)  # equivalent at the first hop
        self.frontiers.append(next)
        return True

    def _rules(self, next: Frontier) -> set[str]:
        columns = self.hops[-1].kwargs['cols']
        if next.keeps_order:
            return self._rules_in_order(next, columns)
        if next.base is None:
            return set() if next.drops else {'row'}
        if not next.drops:
            return {'nodes'} if next.base is columns else set()
        rules = {'new'} if next.base is columns else set()
        seen = self.frontiers[-1].whole if self.frontiers else columns
        return rules | ({'unseen'} if next.base is seen else set())

    def _rules_in_order(self, next: Frontier, columns: Any) -> set[str]:
        """Returns rules that do not relabel nodes, available on CPUs only."""
        if example(self.hops[0].args[0]).device.type != 'cpu':  # type: ignore
            return set()
        if next.base is None:
            return {'edges'}
        walks = all(hop.args[1] == 1 for hop in self.hops)
        return {'walk'} if walks and next.base is columns else set()

    def indices(self, next: Frontier) -> Node:
        """Returns the tensor from which rows are gathered."""
        return (self.frontiers or [next])[0].indices

    @property
    def _may_be_unseen(self) -> bool:
        return self.rule == 'new' and len(self.frontiers) == 1

    @property
    def sorted(self) -> bool:
        """Whether frontiers ascend."""
        return self.frontiers[0].sorted

    @property
    def drops(self) -> bool:
        """Whether frontiers exclude the previous columns."""
        return self.frontiers[0].drops

    @property
    def name(self) -> str:
        """The chain's text in notes."""
        return f"{len(self.hops)} hops, frontier '{self.rule}'"

    @property
    def slots(self) -> list[list[tuple[Node | None, Node]]]:
        """For each output, its hop, and the source of its rows."""
        return [[(hop, self.frontiers[0].indices)] for hop in self.hops]

    @property
    def next_columns(self) -> list[list[Node | None]]:
        """The columns that each output replaces."""
        return [[frontier.node] for frontier in self.frontiers]

    def arguments(self, graph: Graph) -> tuple[Any, dict[str, Any]]:
        """Returns the arguments of `sample_layers` for the hops."""
        first = self.hops[0]
        kwargs = dict(first.kwargs)
        seeds, weight = kwargs.pop('cols'), kwargs.pop('cum_weight', None)
        indptr, indices = first.args[0], self.frontiers[0].indices
        if self.rule != 'nodes':
            kwargs['frontier'] = FRONTIERS.index(self.rule)
        if self.sorted:
            kwargs['sorted'] = True
        if len(self.frontiers) == len(self.hops):
            kwargs['return_frontier'] = True
        return (
            [indptr, indices, *([] if weight is None else [weight])],
            [0, 0],
            [num_nodes(graph, indptr)],
            [seeds],
            [hop.args[1] for hop in self.hops],
            [hop.args[2] for hop in self.hops],
            [hop.args[3] if len(hop.args) > 3 else 0 for hop in self.hops],
        ), kwargs


def find_chains(graph: Graph) -> list[HopChain]:
    """Returns the chains of at least two hops, in order."""
    chains: list[HopChain] = []
    last: dict[Node, HopChain] = {}  # by their last hops
    for node in graph.nodes:
        if not is_hop(node):
            continue
        frontier = _frontier(node.kwargs['cols'])
        chain = last.pop(frontier.sample, None) if frontier else None
        if (
            frontier is not None
            and chain is not None
            and _alike(chain.hops[-1], node)
            and chain.takes(frontier)
        ):
            chain.hops.append(node)
        else:
            chains.append(chain := HopChain([node]))
        last[node] = chain
    chains = [chain for chain in chains if len(chain.hops) > 1]
    for chain in chains:
        _find_last_frontier(graph, chain)
    return chains


def is_hop(node: Node) -> bool:
    """Whether a node samples columns as a hop does."""
    return (
        is_operator(node, 'sample_columns')
        and 'cols' in node.kwargs
        and has_only(node, *_OPTIONS)
    )


def num_nodes(graph: Graph, indptr: Any) -> Any:
    """Returns the number of columns of pointers, computed if unknown."""
    size = example(indptr).shape[0]
    if isinstance(size, int):
        return size - 1
    length = graph.call_function(aten.sym_size.int, (indptr, 0))
    length.meta['example_value'] = size
    count = graph.call_function(operator.sub, (length, 1))
    count.meta['example_value'] = size - 1
    return count


def _alike(first: Node, second: Node) -> bool:
    """Whether two hops sample the same graph with the same options."""
    given = [
        {k: v for k, v in node.kwargs.items() if k != 'cols'}
        for node in (first, second)
    ]
    return first.args[0] is second.args[0] and given[0] == given[1]


def _find_last_frontier(graph: Graph, chain: HopChain) -> None:
    """Finds the columns of a further hop, if the program computes them."""
    size = example(chain.hops[-1].args[0]).shape[0] - 1  # type: ignore
    live = live_nodes(graph)  # loops compute an unused one
    for node in graph.nodes:
        frontier = _frontier(node) if node in live else None
        if frontier is None or frontier.sample is not chain.hops[-1]:
            continue
        # The operator checks that the nodes can be columns.
        known = frontier.keeps_order or frontier.num_rows == size
        if known and chain.takes(frontier):
            return


def _frontier(node: Any) -> Frontier | None:
    """Reads ``unique(cat([base, rows]))[n:]`` and its shorter forms."""
    start, value = node, example(node) if isinstance(node, Node) else None
    if not isinstance(value, torch.Tensor) or value.dtype != torch.int64:
        return None
    is_sorted = is_unique(node)
    node = node.args[0] if is_sorted else node
    drops, base = None, None
    if node.target is aten.slice.Tensor:
        if len(node.args) != 1 or set(node.kwargs) != {'start'}:
            return None
        node, drops = node.args[0], node.kwargs['start']
    whole, unique = node, part_of(node, 'unique_nodes', 0)
    if unique is not None:
        node = unique.args[0]
        if ascends(unique):
            if drops is not None:
                return None
            is_sorted = True
    elif drops is not None or not is_sorted:
        return None if drops is not None else _in_order(node)
    if node.target is aten.cat.default and len(node.args[0]) == 2:
        base, node = node.args[0]
    found = _sampled(node, is_sorted)
    if found is None or (drops is not None and not _is_length(drops, base)):
        return None
    sample, indices, num_rows = found
    if base is None and unique is not None and num_rows is None:
        num_rows = unique.args[1]
    return Frontier(
        start,
        sample,
        indices,
        base,
        whole,
        drops is not None,
        is_sorted,
        num_rows,
    )


def _in_order(node: Node) -> Frontier | None:
    """Reads the rows of edges, or ``columns.index_put([column], rows)``."""
    base: Any = None
    rows: Any = node
    hop = None
    if node.target is aten.index_put.default and len(node.args) == 3:
        base, column, rows = node.args
        base = base.args[0] if base.target is aten.clone.default else base
        hop = _column_of_edge(column)
        if hop is None:
            return None
    found = _gathered_rows(rows.args[0] if widens(rows) else rows)
    if found is None or hop not in (None, found[0]):
        return None
    return Frontier(
        node, *found, base, node, False, False, None, keeps_order=True
    )


def _column_of_edge(index: Any) -> Node | None:
    """Returns the hop whose column of each edge an index is."""
    [node, *other] = index
    if (
        other
        or node is None
        or node.target is not aten.repeat_interleave.self_Tensor
    ):
        return None
    numbers, counts = node.args[:2]
    if numbers.target is not aten.arange.default or len(numbers.args) != 1:
        return None
    if counts.target is not aten.diff.default or len(counts.args) != 1:
        return None
    return part_of(counts.args[0], 'sample_columns', 0)


def _sampled(node: Node, any_order: bool) -> tuple[Node, Node, Any] | None:
    """Returns the hop whose rows a value is, with or without duplicates.

    Also the source of the rows, and the number of rows of the matrix.
    """
    num_rows = None
    while True:
        unique = part_of(node, 'unique_nodes', 0)
        if unique is not None and (any_order or not ascends(unique)):
            node, num_rows = unique.args[:2]  # type: ignore[assignment]
        elif (any_order and is_unique(node)) or widens(node):
            node = node.args[0]  # type: ignore[assignment]
        else:
            break
    found = _gathered_rows(node)
    return None if found is None else (*found, num_rows)


def _gathered_rows(node: Node) -> tuple[Node, Node] | None:
    """Returns the hop whose rows a value is, and the source of the rows."""
    gather = gathered(node)
    sample = part_of(gather[1], 'sample_columns', 1) if gather else None
    if gather is None or sample is None:
        return None
    if not can_be_indices(gather[0], sample.args[0]):
        return None
    return sample, gather[0]


def widens(node: Node) -> bool:
    """Whether a node converts a value to int64."""
    return node.target is aten.to.dtype and node.args[1] == torch.int64


def can_be_indices(node: Node, indptr: Any) -> bool:
    """Whether an operator accepts a tensor as the rows of pointers."""
    value, pointers = example(node), example(indptr)
    return (
        value.dim() == 1
        and value.is_contiguous()
        and value.dtype in (torch.int32, pointers.dtype)
        and not value.requires_grad
    )


def is_unique(node: Node) -> bool:
    """Whether a node is ``x.unique()``, whose result ascends."""
    return (
        node.op == 'call_method'
        and node.target == 'unique'
        and len(node.args) == 1
        and not node.kwargs
    )


def ascends(unique: Node) -> bool:
    """Whether an operator returns nodes in ascending order."""
    return len(unique.args) > 2 and bool(unique.args[2])


def _is_length(number: Any, of: Node | None) -> bool:
    """Whether a number is the length of a vector, for all inputs."""
    if of is None:
        return False
    return same_size(
        example(number) if isinstance(number, Node) else number,
        example(of).shape[0],
    )
