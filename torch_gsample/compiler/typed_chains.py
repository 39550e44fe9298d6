"""Hops over several relations in a program, with a frontier for each type.

Dictionaries of matrices and frontiers disappear when a program is captured.
Types are recovered from the data flow: rows of one frontier have one type, and
so do the frontier and the columns that it extends.
"""

from collections.abc import Hashable
from typing import Any

from torch.fx import Graph, Node

from torch_gsample.compiler.hop_chains import can_be_indices, is_hop
from torch_gsample.compiler.ir import example, live_nodes, same_size
from torch_gsample.compiler.typed_chain import TypedChain, is_tensor
from torch_gsample.compiler.unions import (
    Rows,
    Union,
    find_union,
    is_empty,
    unique_rows,
)

#: A relation in a program: its pointers and its weights.
Relation = tuple[Node, Node | None]


def find_typed_chains(graph: Graph) -> list[TypedChain]:
    """Returns the chains with at least two relations and two hops."""
    hops = [node for node in graph.nodes if is_hop(node)]
    columns = {node.kwargs['cols'] for node in hops}
    unions = {c: u for c in columns if (u := find_union(c, columns))}
    chains = []
    for connected in _components(hops, unions):
        try:
            chains.append(_Builder(graph, connected, unions).chain())
        except _Unlike:
            continue
    return chains


def _components(
    hops: list[Node], unions: dict[Any, Union]
) -> list[list[Node]]:
    """Groups hops that share a relation, or are connected by a frontier."""
    groups = _Groups()
    for hop in hops:
        groups.join(hop, _relation(hop))
        union = unions.get(hop.kwargs['cols'])
        for rows in union.rows if union else ():
            groups.join(hop, rows.hop)
    found: dict[Hashable, list[Node]] = {}
    for hop in hops:
        found.setdefault(groups.of(hop), []).append(hop)
    return [c for c in found.values() if len({_relation(h) for h in c}) > 1]


def _relation(hop: Node) -> Relation:
    return hop.args[0], hop.kwargs.get('cum_weight')  # type: ignore


class _Unlike(Exception):
    """The hops cannot be one operator call."""


def _require(holds: bool) -> None:
    if not holds:
        raise _Unlike


class _Groups:
    """Disjoint sets."""

    def __init__(self) -> None:
        self._parent: dict[Hashable, Hashable] = {}

    def of(self, item: Hashable) -> Hashable:
        """Returns the representative of an item's set."""
        while (parent := self._parent.setdefault(item, item)) != item:
            item = parent
        return item

    def join(self, first: Hashable, second: Hashable) -> None:
        """Merges two sets."""
        self._parent[self.of(first)] = self.of(second)


class _Builder:
    """Builds a chain of connected hops, or raises an exception."""

    def __init__(
        self, graph: Graph, hops: list[Node], unions: dict[Any, Union]
    ):
        self.graph, self.hops, self.unions = graph, hops, unions
        self.relations = list(dict.fromkeys(map(_relation, hops)))
        self.level = self._levels()
        self.indices, self.num_rows = self._rows()
        self.types = self._types()

    def chain(self) -> TypedChain:
        """Returns the chain, if there is one."""
        count = 1 + max(self.level[hop] for hop in self.hops)
        relations = self.relations
        _require(count > 1 and self._are_alike())
        # The operator samples each relation at each hop, even with fan-out 0.
        _require(2 * len(self.hops) > count * len(relations))
        numbers = dict[Hashable, int]()
        ends = [
            numbers.setdefault(self.types.of(end), len(numbers))
            for r in relations
            for end in (('rows', r), ('columns', r))
        ]
        chain = TypedChain(
            self.hops,
            [(r[0], self.indices[r], r[1]) for r in relations],
            ends,
            [None] * len(numbers),
            [[None] * len(relations) for _ in range(count)],
            [[None] * len(numbers) for _ in range(count)],
        )
        for hop in self.hops:
            self._add(chain, hop)
        self._add_bases(chain)
        self._find_rule(chain)
        self._find_sizes(chain)
        after = _users_of(self.graph, [*self.hops, *self._frontiers()])
        _require(after.isdisjoint(chain.inputs()))
        self._find_last(chain)
        return chain

    def _levels(self) -> dict[Any, int]:
        """Returns the number of hops before each hop and its columns."""
        level = dict[Any, int]()
        for hop in self.hops:
            columns = hop.kwargs['cols']
            union = self.unions.get(columns)
            if union is None:
                level[columns] = 0
            elif columns not in level:
                _require(
                    union.base is None
                    or union.base not in self.unions
                    or union.base in level
                )
                before = {level[rows.hop] for rows in union.rows}
                if union.base is not None and not is_empty(union.base):
                    before.add(level.get(union.base, 0))
                _require(len(before) == 1)
                level[columns] = before.pop() + 1
            level[hop] = level[columns]
        return level

    def _rows(self) -> tuple[dict[Relation, Node], dict[Relation, Any]]:
        """Returns the source of each relation's rows, and their number."""
        found = [r for c in self._frontiers() for r in self.unions[c].rows]
        found += [rows for hop in self.hops for rows in unique_rows(hop)]
        indices, num_rows = dict[Relation, Node](), dict[Relation, Any]()
        for rows in found:
            relation = _relation(rows.hop)
            known = indices.setdefault(relation, rows.indices)
            _require(known is rows.indices)
            if rows.num_rows is not None:
                num_rows.setdefault(relation, rows.num_rows)
        _require(all(r in indices for r in self.relations))
        return indices, num_rows

    def _frontiers(self) -> list[Node]:
        """Returns distinct columns that depend on hops."""
        columns = dict.fromkeys(hop.kwargs['cols'] for hop in self.hops)
        return [c for c in columns if isinstance(c, Node) and c in self.unions]

    def _types(self) -> _Groups:
        """Groups nodes of equal type."""
        types = _Groups()
        for hop in self.hops:
            columns = hop.kwargs['cols']
            if not is_empty(columns):
                types.join(
                    ('columns', _relation(hop)), (self.level[hop], columns)
                )
        for node in self._frontiers():
            union, level = self.unions[node], self.level[node]
            for rows in union.rows:
                types.join(('rows', _relation(rows.hop)), (level, node))
            if union.base is not None and not is_empty(union.base):
                types.join((level - 1, union.base), (level, node))
        return types

    def _are_alike(self) -> bool:
        """Whether one operator supports the graph of all relations."""
        indices = [self.indices[r] for r in self.relations]
        pairs = zip(self.relations, indices, strict=True)
        replace = {hop.kwargs.get('replace', False) for hop in self.hops}
        return (
            len(replace) == 1
            and len({example(r[0]).dtype for r in self.relations}) == 1
            and len({example(i).dtype for i in indices}) == 1
            and all(can_be_indices(i, r[0]) for r, i in pairs)
        )

    def _add(self, chain: TypedChain, hop: Node) -> None:
        number = self.relations.index(_relation(hop))
        level, columns = self.level[hop], hop.kwargs['cols']
        type_ = chain.ends[2 * number + 1]
        _require(chain.samples[level][number] is None)
        chain.samples[level][number] = hop
        if not is_empty(columns):
            _require(chain.columns[level][type_] in (None, columns))
            chain.columns[level][type_] = columns  # type: ignore[assignment]

    def _add_bases(self, chain: TypedChain) -> None:
        """Adds seeds of types that no relation samples at first."""
        numbers = {
            self.types.of(('columns', r)): chain.ends[2 * i + 1]
            for i, r in enumerate(self.relations)
        }
        for node in self._frontiers():
            base, level = self.unions[node].base, self.level[node]
            if base is None or is_empty(base):
                continue
            before = chain.columns[level - 1]
            type_ = numbers[self.types.of((level, node))]
            if level == 1 and before[type_] is None:
                before[type_] = base
            _require(before[type_] is base)

    def _find_rule(self, chain: TypedChain) -> None:
        rules, is_sorted = set[str](), set[bool]()
        for level, columns in enumerate(chain.columns[1:], 1):
            for type_, node in enumerate(columns):
                if node is None:
                    continue
                union = self.unions[node]
                rules |= self._rules(chain, level, type_, union)
                is_sorted.add(union.sorted)
        _require(len(rules) <= 1 and len(is_sorted) == 1)
        chain.rule = rules.pop() if rules else 'row'
        chain.sorted = is_sorted.pop()
        on_cpu = example(self.relations[0][0]).device.type == 'cpu'
        _require(on_cpu or not chain.sorted)
        for type_ in range(len(chain.sizes)):
            _require(chain.rule == 'row' or self._goes_on(chain, type_))

    def _rules(
        self, chain: TypedChain, level: int, type_: int, union: Union
    ) -> set[str]:
        """Returns the rules that a complete frontier may have."""
        hops = chain.samples[level - 1]
        into = [
            hop
            for r, hop in enumerate(hops)
            if hop is not None and chain.ends[2 * r] == type_
        ]
        given = [rows.hop for rows in union.rows]
        _require(
            {hop for hop in into if not is_empty(hop.kwargs['cols'])}
            <= set(given)
            <= set(into)
        )
        order = [hops.index(hop) for hop in given]
        _require(union.sorted or order == sorted(order))
        if chain.columns[level - 1][type_] is None:
            return set()
        return {'row' if union.base is None else 'nodes'}

    def _goes_on(self, chain: TypedChain, type_: int) -> bool:
        """Whether no columns of a type are dropped before a later hop."""
        has = [columns[type_] is not None for columns in chain.columns]
        into = [
            any(
                hop is not None and chain.ends[2 * r] == type_
                for r, hop in enumerate(hops)
            )
            for hops in chain.samples
        ]
        last = max([0, *(i for i, present in enumerate(has) if present)])
        return all(
            has[i] or not (has[i - 1] or into[i - 1]) for i in range(1, last)
        )

    def _find_sizes(self, chain: TypedChain) -> None:
        """Finds the consistent number of nodes of each type."""
        for number, relation in enumerate(self.relations):
            type_ = chain.ends[2 * number + 1]
            known = chain.sizes[type_]
            if known is None:
                chain.sizes[type_] = relation[0]
            else:
                _require(same_size(_length(known), _length(relation[0])))
        for number, relation in enumerate(self.relations):
            type_, rows = chain.ends[2 * number], self.num_rows.get(relation)
            known = chain.sizes[type_]
            if known is None:
                _require(rows is not None)
                chain.sizes[type_] = rows
            elif rows is not None:
                _require(same_size(_count(known), rows))
            else:
                _require(self._become_columns(chain, number))

    def _become_columns(self, chain: TypedChain, relation: int) -> bool:
        """Whether the next hop reads the columns of all sampled rows."""
        type_ = chain.ends[2 * relation]
        return all(
            chain.samples[level][relation] is None
            or columns[type_] is not None
            for level, columns in enumerate(chain.columns[1:])
        )

    def _find_last(self, chain: TypedChain) -> None:
        """Finds the columns of a further hop, if the program computes them."""
        if len(self.num_rows) < len(self.relations):
            return
        level, live = len(chain.samples), live_nodes(self.graph)
        columns = {node for node in chain.columns[-1] if node is not None}
        found: list[Node | None] = [None] * len(chain.sizes)
        for node in self.graph.nodes:
            union = find_union(node, columns) if node in live else None
            if union is None or not union.rows:
                continue
            hops = [rows.hop for rows in union.rows]
            if any(self.level.get(hop) != level - 1 for hop in hops):
                continue
            [type_, *other] = {
                chain.ends[2 * self.relations.index(_relation(hop))]
                for hop in hops
            }
            base = chain.columns[-1][type_] if chain.rule == 'nodes' else None
            try:
                self._rules(chain, level, type_, union)
            except _Unlike:
                continue
            if (
                not other
                and union.sorted == chain.sorted
                and union.base is base
                and all(self._is_of(chain, rows) for rows in union.rows)
            ):
                found[type_] = node
        if any(found):
            chain.columns.append(found)

    def _is_of(self, chain: TypedChain, rows: Rows) -> bool:
        return rows.indices is self.indices[_relation(rows.hop)]


def _users_of(graph: Graph, nodes: list[Node]) -> set[Node]:
    """Returns nodes, and all nodes that depend on them."""
    found = set(nodes)
    for node in graph.nodes:
        if not found.isdisjoint(node.all_input_nodes):
            found.add(node)
    return found


def _length(pointers: Node) -> Any:
    return example(pointers).shape[0]


def _count(size: Any) -> Any:
    """Returns the number of nodes of a type, from its size in a chain."""
    return _length(size) - 1 if is_tensor(size) else size
