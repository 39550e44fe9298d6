"""The frontiers of an epoch: the distinct keys of seeds and of sampled nodes.

The key of a node is its id, or ``node * num_times + rank`` with the rank of
the last time that it sees among those of its frontier: the times of all seeds,
or of the edges that led to its nodes.

Memory grows with the frontier, or is that of a mask that covers the nodes in
several rounds.
"""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from torch_gsample.ops._check import node_ids
from torch_gsample.samplers.neighbor.time_interval import TimeInterval
from torch_gsample.storage.spill import Folder, pieces_of

#: Maximum rounds of the mask; beyond, keys are sorted.
_MOST_TURNS = 16
_COLUMNS = 1 << 17  # scanned together

#: Keys of the columns of a relation, and the names of their draws.
Sampled = tuple[Tensor, Folder, str]


def seed_keys(
    node: Tensor, time: Tensor | None, num_nodes: int
) -> tuple[Tensor, Tensor | None]:
    """Returns the distinct keys of seeds, and their distinct times, ascending.

    Args:
        node (torch.Tensor): int64 ``[num_seeds]``.
        time (torch.Tensor, optional): int64 ``[num_seeds]``.
        num_nodes (int): The number of nodes of the type.

    Raises:
        IndexError: If a seed is not in the graph.
        ValueError: If keys would not fit in 62 bits.
    """
    node = node_ids('StreamingSampler', 'seeds', node, num_nodes)
    if time is None:
        return node.unique(), None
    distinct, rank = time.unique(return_inverse=True)
    _check_size(num_nodes, len(distinct))
    return (node * len(distinct) + rank).unique(), distinct


def _check_size(num_nodes: int, num_times: int) -> None:
    if num_nodes * num_times >= 1 << 62:
        raise ValueError(
            f'StreamingSampler: {num_times} times of {num_nodes} nodes '
            'are too many to distinguish; use coarser times'
        )


class Times:
    """The times of a frontier, and of the next one.

    Args:
        now (torch.Tensor, optional): The distinct last times that its nodes
            see, ascending; None without times.
        later (torch.Tensor, optional): Those of the next frontier; the same
            tensor where the time of the seed is the bound.
        interval (TimeInterval): What is seen from the time of an edge.
    """

    def __init__(
        self,
        now: Tensor | None,
        later: Tensor | None,
        interval: TimeInterval,
    ):
        self.now, self.later, self.interval = now, later, interval

    @property
    def num_later(self) -> int:
        """The number of keys of a node in the next frontier."""
        return 1 if self.later is None else len(self.later)

    def distinct(self, sampled: list[Sampled], most: int) -> Tensor:
        """Returns the distinct last times that sampled nodes see, ascending.

        Args:
            sampled (List): The draws of all relations.
            most (int): Times that are sorted at once.
        """
        pieces = (self._latest(*edges) for edges in _edges(sampled))
        return _sorted_union(pieces, most)

    def keys(self, sampled: list[Sampled]) -> Iterator[Tensor]:
        """Yields the keys of sampled nodes in the next frontier."""
        for node, column, degree, time in _edges(sampled):
            if self.later is None or self.now is None:
                yield node
                continue
            if self.later is self.now:
                rank = (column % len(self.now)).repeat_interleave(degree)
            else:
                latest = self._latest(node, column, degree, time)
                rank = torch.searchsorted(self.later, latest)
            yield node * len(self.later) + rank

    def _latest(
        self, node: Tensor, column: Tensor, degree: Tensor, time: Tensor | None
    ) -> Tensor:
        """Returns the last time that each sampled node sees."""
        if time is not None:
            return self.interval.latest(time)
        assert self.now is not None
        return self.now[column % len(self.now)].repeat_interleave(degree)


def next_keys(
    sampled: list[Sampled], times: Times, num_nodes: int, mask_bytes: int
) -> Iterator[Tensor]:
    """Yields the distinct keys of sampled nodes, ascending.

    Args:
        sampled (List): The draws of relations whose sources have one type.
        times (Times): The times of their columns, and of these nodes.
        num_nodes (int): The number of nodes of the type.
        mask_bytes (int): Memory of the mask.

    Raises:
        ValueError: If keys would not fit in 62 bits.
    """
    _check_size(num_nodes, times.num_later)
    size, step = num_nodes * times.num_later, max(mask_bytes, 1)
    if size > _MOST_TURNS * step:
        yield _sorted_union(times.keys(sampled), step // 8)
        return
    for first in range(0, size, step):
        last = min(first + step, size)
        mask = torch.zeros(last - first, dtype=torch.bool)
        for key in times.keys(sampled):
            if step < size:
                key = key[(key >= first) & (key < last)]
            mask[key - first] = True
        for part in pieces_of(len(mask), 1 << 22):
            yield mask[part].nonzero().view(-1) + (first + part.start)


def _sorted_union(pieces: Iterable[Tensor], most: int) -> Tensor:
    """Returns the distinct values of all pieces, ascending."""
    out = torch.empty(0, dtype=torch.int64)
    pending, size = [out], 0
    for piece in pieces:
        pending.append(piece.unique())
        size += len(pending[-1])
        if size > max(most, len(out)):
            out = torch.cat([out, *pending]).unique()
            pending, size = [], 0
    return torch.cat([out, *pending]).unique()


def _edges(
    sampled: list[Sampled],
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor | None]]:
    """Yields sampled nodes, the keys and degrees of their columns, and times.

    Times are those of edges, where they were stored.
    """
    for keys, folder, name in sampled:
        indptr = folder.open(f'{name}-indptr')
        row = folder.open(f'{name}-row')
        stored = f'{name}-time' in folder.arrays
        time = folder.open(f'{name}-time') if stored else None
        for part in pieces_of(len(keys), _COLUMNS):
            ends = indptr[part.start : part.stop + 1]
            edges = slice(int(ends[0]), int(ends[-1]))
            of_edges = None if time is None else time[edges]
            yield row[edges].long(), keys[part], ends.diff(), of_edges
            folder.release()
