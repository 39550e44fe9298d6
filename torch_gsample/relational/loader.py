"""Loaders of rows with their history at the time of a task."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import HeteroData
from torch_geometric.sampler import NegativeSampling
from torch_geometric.typing import EdgeType

from torch_gsample.loader import LinkNeighborLoader, NeighborLoader
from torch_gsample.relational.inputs import (
    Tables,
    add_edge_times,
    read_inputs,
    times_of_edges,
)
from torch_gsample.relational.tasks import (
    EntityTask,
    LinkTask,
    find_column,
)
from torch_gsample.relational.values import NULLS


@dataclass
class _Finish:
    """Last step of each batch: labels, and a check of times."""

    tables: tuple[str, ...]
    label: Tensor | None
    time: Tensor
    check: bool
    then: Any = None
    hidden: tuple[tuple[str, int], ...] = ()
    edge_times: dict[EdgeType, int] = field(default_factory=dict)

    def __call__(self, batch: HeteroData) -> HeteroData:
        add_edge_times(batch, self.edge_times)
        store = batch[self.tables[0]]
        if len(self.tables) == 1:
            ids = store.input_id
            if self.label is not None:
                store.y = self.label[ids.cpu()].to(ids.device)
            for kind, i in self.hidden:
                value = store[kind].clone()
                value[: len(ids), i] = NULLS[kind]
                store[kind] = value
        else:
            ids = batch[self.tables].input_id
        if self.check:
            check_batch(batch, self.time[ids.cpu()].to(ids.device))
        return batch if self.then is None else self.then(batch)


def check_batch(batch: HeteroData, time: Tensor) -> None:
    """Checks that no row and no edge of a batch is later than its seed.

    Args:
        batch (HeteroData): The batch, with ``batch`` of each node type.
        time (torch.Tensor): int64, the time of each seed.

    Raises:
        RuntimeError: If one is later, so that a label may have leaked.
    """
    for node_type, store in batch.node_items():
        if 'time' in store:
            of = store.batch[: store.time.shape[0]]
            _refuse_late(f'rows of {node_type!r}', store.time, of, time)
    for edge_type, store in batch.edge_items():
        if 'time' in store:
            of = batch[edge_type[2]].batch[store.edge_index[1]]
            _refuse_late(f'edges {edge_type}', store.time, of, time)


def _refuse_late(what: str, own: Tensor, of: Tensor, time: Tensor) -> None:
    real = (of >= 0) & (of < len(time))  # others are padding
    late = real & (own > time[of.where(real, 0)])
    if bool(late.any()):
        i = int(late.nonzero()[0])
        raise RuntimeError(
            f'RelationalLoader: no row may be later than its seed ('
            f'{int(late.sum())} {what} are, the first at {int(own[i])} for a '
            f'seed at {int(time[of[i]])})'
        )


class RelationalLoader(NeighborLoader):
    """Loads batches of an :class:`EntityTask`: rows and their history.

    Args:
        tables (RelationalData or TableFolder): The database, in memory or
            on disk, including appended rows.
        task (EntityTask): The rows, times and labels.
        num_neighbors (List[int] or Dict): Number of rows to sample per key at
            each hop. A foreign key has one row; in the other direction, -1
            selects all referring rows.
        check_times (bool, optional): Whether to check each batch again, and
            raise an error if a row or edge is later than its seed.
        transform (Callable, optional): Applied to each batch after the check.
        **options (optional): Options of :class:`NeighborLoader`, such as
            ``temporal_strategy``, ``time_inclusive``, ``batch_size``,
            ``seed``, ``state_dict()`` for resuming, ``static_shapes``.

    Raises:
        IndexError: If a row is out of range.
        ValueError: If a row of the task is later than its time.

    Example:
        >>> import torch
        >>> from torch_geometric.data import HeteroData
        >>> from torch_gsample.relational import RelationalData, TableSchema
        >>> data = HeteroData()
        >>> data['user'].num_nodes, data['post'].num_nodes = 2, 3
        >>> data['post'].time = torch.tensor([1, 5, 9])
        >>> edges = torch.tensor([[0, 1, 2], [0, 0, 1]])
        >>> data['post', 'by', 'user'].edge_index = edges
        >>> schema = {'user': TableSchema(), 'post': TableSchema()}
        >>> tables = RelationalData(data, schema, {}, {}, 'integer')
        >>> row, time = torch.tensor([0, 1]), torch.tensor([4, 4])
        >>> task = EntityTask('user', row, time, torch.tensor([1, 0]))
        >>> loader = RelationalLoader(
        ...     tables, task, [-1], batch_size=2, check_times=True, seed=0
        ... )
        >>> batch = next(iter(loader))
        >>> batch['post'].time, batch['user'].y
        (tensor([1]), tensor([1, 0]))
    """

    def __init__(
        self,
        tables: Tables,
        task: EntityTask,
        num_neighbors: Any,
        *,
        check_times: bool = False,
        transform: Any = None,
        **options: Any,
    ):
        name = type(self).__name__
        inputs = read_inputs(name, tables, num_neighbors, options)
        task.check(tables)
        hidden = [
            find_column(tables.values[task.table], task.table, column)
            for column in task.hidden
        ]
        finish = _Finish(
            (task.table,),
            task.label,
            task.time,
            check_times,
            transform,
            tuple(hidden),
            times_of_edges(tables),
        )
        super().__init__(
            input_nodes=(task.table, task.row),
            input_time=task.time,
            transform=finish,
            **inputs,
        )


class RelationalLinkLoader(LinkNeighborLoader):
    """Loads batches of a :class:`LinkTask`, with negatives for each anchor.

    Batches are those of :class:`LinkNeighborLoader` with triplets: anchors,
    recommended rows, and ``num_negatives`` other rows of the recommended
    rows' table, which exist at the time as well.

    Args:
        tables (RelationalData or TableFolder): The database, in memory or
            on disk, including appended rows.
        task (LinkTask): The pairs, and their times.
        num_neighbors (List[int] or Dict): As in :class:`RelationalLoader`.
        check_times (bool, optional): As in :class:`RelationalLoader`.
        transform (Callable, optional): Applied to each batch after the check.
        **options (optional): Options of :class:`LinkNeighborLoader`.

    Raises:
        IndexError: If a row is out of range.
        ValueError: If a row of a pair is later than its time.
    """

    def __init__(
        self,
        tables: Tables,
        task: LinkTask,
        num_neighbors: Any,
        *,
        check_times: bool = False,
        transform: Any = None,
        **options: Any,
    ):
        name = type(self).__name__
        inputs = read_inputs(name, tables, num_neighbors, options)
        task.check(tables)
        src, dst = task.tables
        edge_type: EdgeType = (src, 'task', dst)
        finish = _Finish(
            edge_type,
            None,
            task.time,
            check_times,
            transform,
            edge_times=times_of_edges(tables),
        )
        super().__init__(
            edge_label_index=(edge_type, torch.stack([task.src, task.dst])),
            edge_label_time=task.time,
            neg_sampling=NegativeSampling('triplet', task.num_negatives),
            transform=finish,
            **inputs,
        )
