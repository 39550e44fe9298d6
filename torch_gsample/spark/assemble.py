"""Orders the sampled edges of one batch like the local sampler.

Local ids follow the first occurrence: seeds, then hop by hop, by relation, by
the position of a node in the frontier, by slot.
"""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from torch_gsample import ops

#: Kinds of rows.
EDGE, SEED = 0, 1
FEATURE = {'node': 2, 'edge': 3}

#: The numeric columns of an edge or seed row.
_FIELDS = ('hop', 'relation', 'tree', 'dst', 'slot', 'src', 'id')


#: Lists of numbers by the name of their column.
Lists = dict[str, Tensor]


def assemble(
    table: pa.Table,
    types: dict[str, Any],
    sample: Callable[[Lists, dict[str, Any]], Lists] | None = None,
) -> pa.Table:
    """Returns a batch as one row with a list of numbers for each name.

    Args:
        table (pyarrow.Table): All rows of the batch.
        types (Dict[str, Any]): Of :meth:`BatchTypes.facts`.
        sample (Callable, optional): Samples the batch from its seeds;
            otherwise the rows contain its edges.

    Raises:
        ValueError: If an item of the batch has no or several rows of features.
    """
    seeds = seeds_of(table)
    lists = {'input_id': seeds['id']}
    if types['timed']:
        lists['seed_time'] = seeds['src']
    if sample is None:
        lists |= _Batch(_part(table, EDGE), seeds, types).lists()
    else:
        lists |= sample(seeds, types)
    arrays = {}
    for name, width in types['widths'].items():
        kind, t, _ = name.split('_', 2)
        rows = _feature_rows(table, FEATURE[kind], int(t))
        arrays[name] = _features(rows, name, width, lists[f'{kind}_{t}'])
    for name, values in lists.items():
        arrays[name] = pa.array([values.numpy()], pa.list_(pa.int64()))
    return pa.table(arrays)


def seeds_of(table: pa.Table) -> Lists:
    """Returns the columns of a batch's seeds, in order.

    Raises:
        ValueError: If two have one position.
    """
    seeds = _part(table, SEED)
    slot, order = seeds['slot'].sort()
    twice = slot[1:] == slot[:-1]
    if bool(twice.any()):
        raise ValueError(
            "neighbor_sample: the column 'position' of 'seeds' must hold "
            f'distinct numbers (got {int(slot[1:][twice][0])} twice, from the '
            f'first one of the batch {table["batch"][0]})'
        )
    return {name: value[order] for name, value in seeds.items()}


class _Nodes:
    """The nodes of one type in a batch, by local id.

    A node of a tree has a key, ``tree * len(ids) + position in ids``.
    """

    def __init__(self, ids: Tensor):
        self.ids = ids.unique()
        self.keys = torch.empty(0, dtype=torch.int64)  # by local id
        self.counts: list[int] = []  # new nodes per hop
        self._distinct = self.keys  # keys by first occurrence
        self._place = self.keys  # local ids of these first occurrences
        self.begin = 0  # of the frontier

    def key(self, tree: Tensor, node: Tensor) -> Tensor:
        return tree * self.ids.numel() + torch.searchsorted(self.ids, node)

    def start(self, keys: Tensor) -> None:
        """Gives each seed a position; edges refer to its first one."""
        self._distinct, local = _unique(keys)
        place = torch.full((self._distinct.numel(),), keys.numel())
        self._place = place.scatter_reduce(
            0, local, torch.arange(keys.numel()), 'amin'
        )
        self.keys = keys
        self.counts.append(keys.numel())

    def add(self, keys: Tensor) -> Tensor:
        """Returns the local ids of keys; new ones are appended."""
        known, first = self._distinct.numel(), self._place.numel()
        self._distinct, local = _unique(torch.cat([self._distinct, keys]))
        self.keys = torch.cat([self.keys, self._distinct[known:]])
        extra = self.keys.numel() - self._distinct.numel()
        places = torch.arange(self._distinct.numel()) + extra
        places[:first] = self._place
        return places[local[known:]]

    def finish_hop(self) -> None:
        self.begin = sum(self.counts)
        self.counts.append(self.keys.numel() - self.begin)

    def tree_and_node(self) -> tuple[Tensor, Tensor]:
        size = max(self.ids.numel(), 1)
        return self.keys // size, self.ids[self.keys % size]


class _Batch:
    """The sample of a batch."""

    def __init__(self, edges: Lists, seeds: Lists, types: Any):
        self._seeds, self._edges, self._types = seeds, edges, types
        self._ends = types['ends']
        self._nodes = [
            _Nodes(self._ids(t)) for t in range(len(types['nodes']))
        ]
        tree = self._seeds['tree']
        if not types['disjoint']:
            tree = torch.zeros_like(tree)
        for t, nodes in enumerate(self._nodes):
            own = slice(None if t == types['input_type'] else 0)
            nodes.start(nodes.key(tree[own], self._seeds['dst'][own]))
        self._parts: list[list[tuple[Tensor, Tensor, Tensor]]] = [
            [] for _ in self._ends
        ]
        for hop in range(types['hops']):
            self._sample_hop(hop)

    def _ids(self, t: int) -> Tensor:
        relation = self._edges['relation']
        parts = [self._seeds['dst']] if t == self._types['input_type'] else []
        for r, ends in enumerate(self._ends):
            for end, name in zip(ends, ('src', 'dst'), strict=True):
                if end == t:
                    parts.append(self._edges[name][relation == r])
        return torch.cat(parts) if parts else torch.empty(0).long()

    def _sample_hop(self, hop: int) -> None:
        frontiers = [(nodes.begin, nodes.keys) for nodes in self._nodes]
        for r, (source, target) in enumerate(self._ends):
            mask = (self._edges['hop'] == hop) & (self._edges['relation'] == r)
            rows = {name: self._edges[name][mask] for name in _FIELDS}
            begin, keys = frontiers[target]
            indptr, row = self._columns(rows, target, keys[begin:])
            src = self._nodes[source].key(rows['tree'], rows['src'])[row]
            local = self._nodes[source].add(src)
            col = torch.repeat_interleave(indptr.diff()) + begin
            self._parts[r].append((local, col, rows['id'][row]))
        for nodes in self._nodes:
            nodes.finish_hop()

    def _columns(
        self, rows: dict[str, Tensor], target: int, frontier: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns the rows of each node of a frontier, in slot order."""
        key = self._nodes[target].key(rows['tree'], rows['dst'])
        order = rows['slot'].argsort()
        order = order[key[order].argsort(stable=True)]
        distinct, counts = key.unique(return_counts=True)
        # A node without edges gets the empty column at the end.
        indptr = torch.nn.functional.pad(counts.cumsum(0), (1, 1))
        indptr[-1] = order.numel()
        place = torch.searchsorted(distinct, frontier)
        found = torch.cat([distinct, torch.tensor([-1])])[place] == frontier
        place = torch.where(found, place, distinct.numel())
        out, row, _ = ops.slice_cols(indptr, order, place)
        return out, row

    def lists(self) -> Lists:
        """Returns the lists of nodes and edges."""
        out = {}
        for t, nodes in enumerate(self._nodes):
            tree, out[f'node_{t}'] = nodes.tree_and_node()
            out[f'num_nodes_{t}'] = torch.tensor(nodes.counts)
            if self._types['disjoint']:
                out[f'tree_{t}'] = tree
        for r, parts in enumerate(self._parts):
            none = [torch.empty(0, dtype=torch.int64)] * 3
            for i, name in enumerate(('row', 'col', 'edge')):
                values = [part[i] for part in parts] or none[:1]
                out[f'{name}_{r}'] = torch.cat(values)
            counts = [part[0].numel() for part in parts]
            out[f'num_edges_{r}'] = torch.tensor(counts, dtype=torch.int64)
        return out


def _unique(keys: Tensor) -> tuple[Tensor, Tensor]:
    size = int(keys.max()) + 1 if keys.numel() else 0
    node, local = ops.unique_nodes(keys, size)
    return node, local


def _part(table: pa.Table, kind: int) -> dict[str, Tensor]:
    """The numbers of the rows of a kind."""
    rows = table.filter(pc.equal(table['kind'], kind))
    return {
        name: torch.tensor(rows[name].to_numpy(), dtype=torch.int64)
        for name in _FIELDS
    }


def _feature_rows(table: pa.Table, kind: int, t: int) -> pa.Table:
    """The rows of the features of a type."""
    return table.filter(
        pc.and_(pc.equal(table['kind'], kind), pc.equal(table['relation'], t))
    )


def _features(rows: pa.Table, name: str, width: int, ids: Tensor) -> pa.Array:
    """The features of `ids`, concatenated."""
    given, order = torch.tensor(rows['id'].to_numpy()).sort()
    place = torch.searchsorted(given, ids)
    found = torch.cat([given, torch.tensor([-1])])[place] == ids
    if not bool(found.all()):
        raise ValueError(
            f'write: every sampled node and edge must have a row of features '
            f'(got none for {int(ids[~found][0])} in {name})'
        )
    if bool((given[1:] == given[:-1]).any()):
        raise ValueError(
            f"write: 'features' must have one row for each id (got more in "
            f'{name})'
        )
    values = rows[name].combine_chunks().take(pa.array(order[place].numpy()))
    if width >= 0:
        lengths = pc.unique(values.value_lengths()).to_pylist()
        if set(lengths) - {width}:
            raise ValueError(
                f"write: arrays of 'features' must be of one length (got "
                f'{width} and {lengths} in {name})'
            )
        values = values.flatten()
    if values.null_count:
        raise ValueError(f"write: 'features' must not be null (in {name})")
    offsets = pa.array([0, len(values)], pa.int32())
    return pa.ListArray.from_arrays(offsets, values)
