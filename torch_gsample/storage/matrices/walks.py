"""Walks on a graph on disk that read their edges step by step.

A step's draw is a function of the walker, the step and the degree. The
in-memory operators draw, on small graphs with the degrees of the walkers'
current nodes, so walks equal those in memory.
"""

import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.storage.columns import concat_ranges
from torch_gsample.storage.matrices.edges import StoredEdges
from torch_gsample.storage.matrices.visited import Visited

#: Number of items from which zeros take no memory until written.
_LARGE = 1 << 16
#: Linux's value; Python has a name for it since 3.13.
_NO_RESERVE = 0x4000


def random_walk(
    edges: StoredEdges,
    seeds: Tensor,
    length: int,
    key: Tensor,
    call_id: int,
    restart: float = 0.0,
    weighted: bool = False,
    ptr: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Walks as :func:`torch_gsample.ops.random_walk`, edge by edge.

    Args:
        edges (StoredEdges): The rows of a graph; walks follow its edges.
        seeds (torch.Tensor): int64 ``[num_seeds]``.
        length (int): Number of steps.
        key (torch.Tensor): int64 ``[1, 3]``, or a row for each batch.
        call_id (int): Number of the draw.
        restart (float, optional): Probability of a restart at each step.
        weighted (bool, optional): Whether to walk by the weights of edges.
        ptr (torch.Tensor, optional): int64 ``[B + 1]``, the start of the seeds
            of each batch; a step reads the edges of all batches together.
    """
    draws = _Draws.of(seeds, key, call_id, ptr)
    restarts = draws.restarts(length, restart)
    node, nodes, taken = seeds, [seeds], []
    for step in range(length):
        position = _draw_step(edges, node, step, draws, weighted)
        if restarts is not None:
            position = torch.where(restarts[:, step], -1, position)
            node = torch.where(restarts[:, step], seeds, node)
        node = _move(edges, node, position)
        nodes.append(node)
        taken.append(position)
    return torch.stack(nodes, 1), _columns(taken, seeds)


def metapath_walk(
    relations: Sequence[StoredEdges],
    path: Sequence[int],
    seeds: Tensor,
    key: Tensor,
    call_id: int,
) -> tuple[Tensor, Tensor]:
    """Walks as :func:`torch_gsample.ops.metapath_walk`, without restarts.

    Args:
        relations (List[StoredEdges]): Their rows.
        path (List[int]): The relation of each step.
        seeds (torch.Tensor): int64 ``[num_seeds]``.
        key (torch.Tensor): int64 ``[1, 3]``.
        call_id (int): Number of the draw.
    """
    draws = _Draws.of(seeds, key, call_id, None)
    node, nodes, taken = seeds, [seeds], []
    for step, number in enumerate(path):
        edges, goes_on = relations[number], node >= 0
        at = node.clamp(min=0)
        position = _draw_step(edges, at, step, draws, False, goes_on)
        node = _move(edges, torch.full_like(node, -1), position)
        nodes.append(node)
        taken.append(position)
    return torch.stack(nodes, 1), _columns(taken, seeds)


def _columns(taken: list[Tensor], seeds: Tensor) -> Tensor:
    return torch.stack(taken, 1) if taken else seeds.new_empty(len(seeds), 0)


def _move(edges: StoredEdges, node: Tensor, position: Tensor) -> Tensor:
    """Returns the destinations of edges; ``node`` without an edge."""
    moves = position >= 0
    out = node.clone()
    out[moves] = edges.read('neighbor', position[moves]).long()
    return out


@dataclass(frozen=True)
class _Draws:
    """The draws of the walkers of some batches.

    Args:
        sizes (List[int]): Number of walkers of each batch.
        key (torch.Tensor): int64 ``[B, 3]``.
        call_id (int): Number of the draw.
    """

    sizes: list[int]
    key: Tensor
    call_id: int

    @classmethod
    def of(
        cls, seeds: Tensor, key: Tensor, call_id: int, ptr: Tensor | None
    ) -> '_Draws':
        """Returns the draws of one batch, or of those that start at `ptr`."""
        sizes = [len(seeds)] if ptr is None else ptr.diff().tolist()
        return cls(sizes, key, call_id)

    def of_each(
        self, function: Callable[..., Tensor], *values: Tensor | None
    ) -> Tensor:
        """Joins the results of a function of each batch's key and values."""
        parts = [
            [None] * len(self.sizes) if v is None else v.split(self.sizes)
            for v in values
        ]
        keys = self.key.split(1)
        return torch.cat(
            [function(*batch) for batch in zip(keys, *parts, strict=True)]
        )

    def restarts(self, length: int, restart: float) -> Tensor | None:
        """Whether each walker restarts at a step, bool ``[n, length]``."""
        if restart == 0:
            return None

        def of_batch(key: Tensor, walkers: Tensor) -> Tensor:
            loops = torch.arange(len(walkers) + 1)  # without an edge: stay
            _, taken = ops.random_walk(
                loops,
                loops[:-1],
                loops[:-1],
                length,
                key=key,
                call_id=self.call_id,
                restart=restart,
            )
            return taken < 0

        return self.of_each(of_batch, torch.empty(sum(self.sizes)))


def _draw_step(
    edges: StoredEdges,
    node: Tensor,
    step: int,
    draws: _Draws,
    weighted: bool,
    goes_on: Tensor | None = None,
) -> Tensor:
    """Draws the next edge of each walker, -1 for none."""
    start = edges.pointers[node]
    degree = edges.pointers[node + 1] - start
    if goes_on is not None:
        degree = torch.where(goes_on, degree, 0)
    ends = weight = None
    if weighted:
        weight = edges.read('weight', concat_ranges(start, degree))
        ends = degree.cumsum(0)

    def of_batch(key: Tensor, degree: Tensor, ends: Tensor | None) -> Tensor:
        of_walkers = None
        if weight is not None and ends is not None and len(ends) > 0:
            of_walkers = weight[int(ends[0] - degree[0]) : int(ends[-1])]
        return _draw_at(degree, step, key, draws.call_id, of_walkers)

    slot = draws.of_each(of_batch, degree, ends)
    return torch.where(slot < 0, -1, slot + start)


def _draw_at(
    degree: Tensor, step: int, key: Tensor, call_id: int, weight: Tensor | None
) -> Tensor:
    """Draws an edge of each walker of a batch, by its index in its column.

    It runs a walk of ``step + 1`` steps on a graph in which a path of ``step``
    edges leads each walker to a node with the degree of its current node.
    """
    n = len(degree)
    before = n * step
    indptr = torch.empty(before + n + 1, dtype=torch.int64)
    indptr[: before + 1] = torch.arange(before + 1)
    torch.cumsum(degree, 0, out=indptr[before + 1 :])
    indptr[before + 1 :] += before
    indices = virtual_zeros(int(indptr[-1]))
    indices[:before] = torch.arange(n, before + n)
    cum_weight = None
    if weight is not None:
        weight = torch.cat([weight.new_ones(before), weight])
        cum_weight = ops.cumulate_weights(indptr, weight, 'probs')
    _, taken = ops.random_walk(
        indptr,
        indices,
        torch.arange(n),
        step + 1,
        key=key,
        call_id=call_id,
        cum_weight=cum_weight,
    )
    taken = taken[:, step]
    return torch.where(taken < 0, -1, taken - indptr[before:-1])


def virtual_zeros(size: int) -> Tensor:
    """Returns int64 zeros; large arrays take no memory until written.

    They do not count towards the process's data limit.
    """
    if size < _LARGE:
        return torch.zeros(size, dtype=torch.int64)
    flags = mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | _NO_RESERVE
    data = mmap.mmap(-1, 8 * size, flags)
    return torch.from_numpy(np.frombuffer(data, '<i8'))


def node2vec_walk(
    edges: StoredEdges,
    seeds: Tensor,
    length: int,
    p: float,
    q: float,
    key: Tensor,
    call_id: int,
    weighted: bool = False,
    ptr: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Walks as :func:`torch_gsample.ops.node2vec_walk`.

    A step depends on all edges of the current and the previous node. The
    columns of visited nodes are read, and the walks are repeated on them, one
    step further.

    Args:
        edges (StoredEdges): The rows of a graph.
        seeds (torch.Tensor): int64 ``[num_seeds]``.
        length (int): Number of steps.
        p (float): Return parameter.
        q (float): In-out parameter.
        key (torch.Tensor): int64 ``[1, 3]``, or a row for each batch.
        call_id (int): Number of the draw.
        weighted (bool, optional): Whether to walk by the weights of edges.
        ptr (torch.Tensor, optional): See :func:`random_walk`.
    """
    visited = Visited(edges, weighted)
    draws = _Draws.of(seeds, key, call_id, ptr)

    def walk(length: int) -> tuple[Tensor, Tensor]:
        def on(
            graph: Sequence[Tensor], starts: Tensor, cum_weight: Tensor | None
        ) -> Sequence[Tensor]:
            def of_batch(key: Tensor, starts: Tensor) -> Tensor:
                walks = ops.node2vec_walk(
                    graph[0],
                    graph[1],
                    starts,
                    length,
                    p,
                    q,
                    key=key,
                    call_id=call_id,
                    cum_weight=cum_weight,
                )
                return torch.cat(walks, 1)

            both = draws.of_each(of_batch, starts)
            return both.split([length + 1, length], 1)

        return visited.walk(on, seeds)

    nodes, taken = seeds[:, None], seeds.new_empty(seeds.numel(), 0)
    for step in range(length):
        visited.add(nodes[:, -1])
        nodes, taken = walk(step + 1)
    if length == 0:
        walk(0)  # checks the arguments
    return nodes, taken


def frontier_walk(
    edges: StoredEdges, seeds: Tensor, length: int, key: Tensor, call_id: int
) -> tuple[Tensor, Tensor]:
    """Walks as :func:`torch_gsample.ops.frontier_walk`.

    Each step depends on the previous one and is a separate read: the walk is
    repeated with one more edge until it needs no other.

    Args:
        edges (StoredEdges): The rows of a graph.
        seeds (torch.Tensor): int64 ``[num_seeds]``.
        length (int): Number of steps.
        key (torch.Tensor): int64 ``[1, 3]``.
        call_id (int): Number of the draw.
    """
    entries = virtual_zeros(edges.meta.num_edges)
    known: set[int] = set()
    while True:
        nodes, taken = ops.frontier_walk(
            edges.pointers, entries, seeds, length, key=key, call_id=call_id
        )
        missing = [p for p in taken.tolist() if p >= 0 and p not in known]
        if not missing:
            return nodes, taken
        position = torch.tensor(missing[:1])
        entries[position] = edges.read('neighbor', position).long()
        known.add(missing[0])
