"""Sequences of related rows for relational transformers."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.sampler import HeteroSamplerOutput, NodeSamplerInput

from torch_gsample.relational.tables import RelationalData
from torch_gsample.relational.tasks import EntityTask
from torch_gsample.rng import batch_scope
from torch_gsample.samplers import NeighborSampler


class Contexts(NamedTuple):
    """Sequences of rows, padded with -1 to equal length."""

    table: Tensor  # int64 [n, length], index in `tables`
    row: Tensor  # int64 [n, length]
    hop: Tensor  # int64 [n, length], 0 for the seed
    via: Tensor  # int64 [n, length], position of the row that led there
    mask: Tensor  # bool [n, length]
    tables: list[str]


class ContextSampler:
    """Collects related rows breadth first, within a budget of cells.

    A sequence starts with its seed, followed by the rows at one hop, two hops
    and so on. At each hop, referenced rows (parents) precede referring rows.
    Rows are distinct, and no row is later than the seed. The sequence ends
    before the row whose cells would exceed the budget.

    Args:
        tables (RelationalData): The database.
        num_cells (int): The budget. The number of cells of a row is the number
            of non-key columns of its table, at least one.
        width (int, optional): Maximum number of referring rows per row.
        num_hops (int, optional): Maximum number of hops.
        seed (int, optional): Random seed.
        **options (optional): Options of :class:`NeighborSampler`, such as
            ``temporal_strategy='last'`` for the latest rows.

    Raises:
        TypeError: If a number is not an integer.
        ValueError: If a number is less than 1.

    Example:
        >>> sampler = ContextSampler(tables, 64)  # doctest: +SKIP
        >>> sampler(task).row.shape  # doctest: +SKIP
        torch.Size([1024, 17])
    """

    def __init__(
        self,
        tables: RelationalData,
        num_cells: int,
        *,
        width: int = 16,
        num_hops: int = 3,
        seed: int | None = None,
        **options: Any,
    ):
        if not isinstance(tables, RelationalData):
            raise TypeError(
                "ContextSampler: 'tables' must be a RelationalData (got "
                f'{type(tables).__name__}); a TableFolder is not in memory'
            )
        for name, value in (
            ('num_cells', num_cells),
            ('width', width),
            ('num_hops', num_hops),
        ):
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(
                    f"ContextSampler: '{name}' must be an integer (got "
                    f'{value!r})'
                )
            if value < 1:
                raise ValueError(
                    f"ContextSampler: '{name}' must be positive (got {value})"
                )
        self._tables, self._num_cells = tables, num_cells
        self._names = list(tables.data.node_types)
        self._cells = torch.tensor([self._width_of(t) for t in self._names])
        fanouts = {
            t: [1 if _to_parent(t) else width] * num_hops
            for t in tables.data.edge_types
        }
        temporal = any('time' in tables.data[t] for t in self._names)
        self._sampler = NeighborSampler(
            tables.data,
            fanouts,
            disjoint=True,
            time_attr='time' if temporal else None,
            seed=seed,
            **options,
        )

    def _width_of(self, table: str) -> int:
        values = self._tables.values.get(table)
        if values is None:
            return 1
        parts = values.num_names, values.cat_names, values.stamp_names
        return max(sum(map(len, parts)), 1)

    def __call__(
        self, task: EntityTask, batch: int = 0, epoch: int = 0
    ) -> Contexts:
        """Returns the context of each item of a task.

        Args:
            task (EntityTask): The rows and times.
            batch (int, optional): Index of the batch.
            epoch (int, optional): The epoch.

        Raises:
            IndexError: If a row is out of range.
            ValueError: If a row of the task is later than its time.
        """
        task.check(self._tables)
        time = task.time if self._sampler.is_temporal else None
        inputs = NodeSamplerInput(None, task.row, time, task.table)
        with batch_scope(epoch, batch):
            out: Any = self._sampler.sample_from_nodes(inputs)
        return self._sequences(out, len(task.row))

    def _sequences(self, out: HeteroSamplerOutput, count: int) -> Contexts:
        first, offset = {}, 0
        for t in self._names:
            first[t] = offset
            offset += len(out.node[t])
        table, row, tree, hop = self._nodes(out)
        order, via = self._reached(out, first, hop)
        # Stable: seeds, then hops; parents first, in the order of edges.
        place = torch.argsort(order, stable=True)
        place = place[torch.argsort(hop[place], stable=True)]
        place = place[torch.argsort(tree[place], stable=True)]
        size = torch.bincount(tree, minlength=count)
        begin = size.cumsum(0) - size
        cells = self._cells[table[place]]
        used = cells.cumsum(0)
        used -= (used - cells)[begin][tree[place]]
        keep = used <= self._num_cells
        keep[begin] = True  # seeds are kept even if they exceed the budget
        # `used` ascends in a sequence, so a prefix of it is kept.
        kept = place[keep]
        position = torch.arange(len(place)) - begin[tree[place]]
        at = tree[kept], position[keep]
        length = int(at[1].max()) + 1 if len(kept) else 0
        local = torch.empty_like(place)
        local[place] = position
        value = torch.where(via >= 0, local[via.clamp(min=0)], -1)
        parts = []
        for source in (table, row, hop, value):
            padded = torch.full((count, length), -1)
            padded[at] = source[kept]
            parts.append(padded)
        tables, rows, hops, vias = parts
        mask = tables >= 0
        return Contexts(tables, rows, hops, vias, mask, self._names)

    def _nodes(self, out: HeteroSamplerOutput) -> tuple[Tensor, ...]:
        """Returns the table, row, tree and hop of each node, type by type."""
        assert out.num_sampled_nodes is not None
        assert out.batch is not None
        hops, tables = [], []
        for i, t in enumerate(self._names):
            sizes = torch.tensor(out.num_sampled_nodes[t])
            hops.append(torch.arange(len(sizes)).repeat_interleave(sizes))
            tables.append(torch.full((len(out.node[t]),), i))
        row, tree = (
            torch.cat([of[t] for t in self._names])
            for of in (out.node, out.batch)
        )
        return torch.cat(tables), row, tree, torch.cat(hops)

    def _reached(
        self,
        out: HeteroSamplerOutput,
        first: dict[str, int],
        hop: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Returns the first edge that led to each node, and its other end."""
        rows, cols = [], []
        for t in sorted(out.row, key=lambda t: not _to_parent(t)):
            rows.append(out.row[t] + first[t[0]])
            cols.append(out.col[t] + first[t[2]])
        row, col = torch.cat(rows), torch.cat(cols)
        edge = torch.arange(len(row))
        new = hop[row] == hop[col] + 1  # other edges lead to earlier nodes
        order = torch.full_like(hop, len(row))
        order.scatter_reduce_(0, row[new], edge[new], 'amin')
        via = torch.full_like(hop, -1)
        reached = order < len(row)
        via[reached] = col[order[reached]]
        return order, via


def _to_parent(edge_type: Any) -> bool:
    """Whether a relation leads from a row to the row that it references."""
    return edge_type[1].startswith('rev_')
