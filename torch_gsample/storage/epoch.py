"""Samples a whole epoch, hop by hop and chunk by chunk.

Seeds come in, arrays of :class:`EpochResults` go out. A hop reads each chunk
that its frontier touches once, in order, one ahead.
"""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.samplers.neighbor.time_interval import TimeInterval
from torch_gsample.storage.chunks import chunk_arrays
from torch_gsample.storage.columns import (
    RelationReader,
    check_neighbors,
    check_weights,
    concat_ranges,
    draw_columns,
    pointers_of,
)
from torch_gsample.storage.format import (
    EDGES,
    FIRST,
    LENGTH,
    NODES,
    OFFSET,
    START,
    malformed,
)
from torch_gsample.storage.frontiers import Sampled, Times, next_keys
from torch_gsample.storage.graph import ChunkedGraph
from torch_gsample.storage.hops import Frontier
from torch_gsample.storage.reading import ReadableFile, ReadAhead
from torch_gsample.storage.sources import index_width
from torch_gsample.storage.spill import Folder

#: Pointers of columns, neighbours, ids and, if stored, times of edges.
Draws: TypeAlias = tuple[Tensor, Tensor, Tensor, Tensor | None]

#: Edges that are selected, or scanned for a selection, at a time.
_SLICE = 1 << 20


class Stopped(Exception):
    """The preparation was stopped on request."""


@dataclass
class Epoch:
    """The description of an epoch to sample.

    Args:
        graph (ChunkedGraph): The graph.
        fanouts (List[List[int]]): For each relation.
        options (Dict[str, Any]): Of the operators.
        weighted (bool): Whether weights are used.
        times (torch.Tensor, optional): The distinct last times that nodes of
            the frontier see, ascending.
        interval (TimeInterval): Which edges a time sees.
        readers (List[RelationReader]): Read the edges of split nodes.
        stop (threading.Event): Set to end early.
        mask_bytes (int): Memory for a mask of nodes.
    """

    graph: ChunkedGraph
    fanouts: list[list[int]]
    options: dict[str, Any]
    weighted: bool
    times: Tensor | None
    interval: TimeInterval
    readers: list[RelationReader]
    stop: threading.Event
    mask_bytes: int

    @property
    def num_times(self) -> int:
        """The number of keys of a node."""
        return 1 if self.times is None else len(self.times)

    def stores_times(self, relation: int, hop: int) -> bool:
        """Whether the times of sampled edges bound the next hop."""
        by_edge = self.times is not None and self.interval.bound == 'edge'
        timed = self.graph.meta.relations[relation].widths['time'] > 0
        return by_edge and timed and hop + 1 < len(self.fanouts[relation])


def sample_epoch(
    epoch: Epoch, seeds: dict[Any, Tensor], folder: Folder
) -> None:
    """Samples all hops of an epoch.

    Args:
        epoch (Epoch): The epoch.
        seeds (Dict[NodeType, torch.Tensor]): The distinct keys of seeds by
            type, ascending.
        folder (Folder): Receives the results.
    """
    graph = epoch.graph.sampler_graph()
    none = torch.empty(0, dtype=torch.int64)
    times = none if epoch.times is None else epoch.times
    folder.write('0-times', [times])
    keys = {
        t: folder.write(f'0-keys-{i}', [seeds.get(t, none)])
        for i, t in enumerate(graph.node_types)
    }
    hops = len(epoch.fanouts[0]) if epoch.fanouts else 0
    for hop in range(hops):
        for r, edge_type in enumerate(graph.edge_types):
            _, dst = graph.end_types(edge_type)
            _sample_relation(epoch, hop, r, keys[dst], folder)
        if hop + 1 < hops:
            reached: dict[Any, list[Sampled]] = {t: [] for t in keys}
            for r, ends in enumerate(map(graph.end_types, graph.edge_types)):
                part = keys[ends[1]], folder, f'{hop}-{r}'
                reached[ends[0]].append(part)
            follow = _next_times(epoch, hop, reached, folder)
            keys = {
                t: folder.write(
                    f'{hop + 1}-keys-{i}',
                    next_keys(
                        reached[t], follow, graph.counts[t], epoch.mask_bytes
                    ),
                )
                for i, t in enumerate(graph.node_types)
            }
            epoch.times = follow.later


def _next_times(
    epoch: Epoch, hop: int, reached: dict[Any, list[Sampled]], folder: Folder
) -> Times:
    """Returns the times of a frontier and of the next; writes new ones."""
    follow = Times(epoch.times, epoch.times, epoch.interval)
    if epoch.times is not None and epoch.interval.bound == 'edge':
        sampled = [part for parts in reached.values() for part in parts]
        later = follow.distinct(sampled, epoch.mask_bytes // 8)
        follow.later = folder.write(f'{hop + 1}-times', [later])
    return follow


def _sample_relation(
    epoch: Epoch, hop: int, r: int, keys: Tensor, folder: Folder
) -> None:
    meta = epoch.graph.meta.relations[r]
    widths = {4: torch.int32, 8: torch.int64}
    row_type = widths[meta.widths['neighbor']]
    edge_type = widths[meta.widths['edge_id'] or index_width(meta.num_edges)]
    name, total = f'{hop}-{r}-', 0
    with (
        folder.writer(name + 'indptr') as indptr_out,
        folder.writer(name + 'row') as row_out,
        folder.writer(name + 'edge') as edge_out,
        contextlib.ExitStack() as stack,
    ):
        time_out = None
        if epoch.stores_times(r, hop):
            time_out = stack.enter_context(folder.writer(name + 'time'))
            time_out.append(torch.empty(0, dtype=torch.int64))
        indptr_out.append(torch.zeros(1, dtype=torch.int64))
        row_out.append(torch.empty(0, dtype=row_type))
        edge_out.append(torch.empty(0, dtype=edge_type))
        for indptr, row, edge, time in _draws(epoch, hop, r, keys):
            folder.release()
            indptr_out.append(total + indptr[1:])
            row_out.append(row.to(row_type))
            edge_out.append(edge.to(edge_type))
            if time_out is not None and time is not None:
                time_out.append(time)
            total += len(row)


def _draws(epoch: Epoch, hop: int, r: int, keys: Tensor) -> Iterator[Draws]:
    """Yields the draws of columns, in order."""
    meta = epoch.graph.meta.relations[r]
    fanout = epoch.fanouts[r][hop]
    if fanout == 0 or len(keys) == 0:
        empty = torch.empty(0, dtype=torch.int64)
        yield torch.zeros(len(keys) + 1, dtype=torch.int64), empty, empty, None
        return
    pieces = _cut_frontier(meta.chunks, keys, epoch.num_times)
    whole = [chunk for chunk, split, _, _ in pieces if not split]
    ranges = meta.chunks[whole][:, [OFFSET, LENGTH]].tolist()
    file = epoch.graph.open(meta)
    with ReadAhead(file, ranges) as data:
        for chunk, split, begin, end in pieces:
            if epoch.stop.is_set():
                raise Stopped
            if split:
                yield from _sample_split(epoch, hop, r, keys[begin:end])
                continue
            arrays = _open_chunk(epoch, file, r, chunk, next(data))
            yield from _sample_chunk(
                epoch, file, hop, r, chunk, arrays, keys[begin:end]
            )


def _sample_split(
    epoch: Epoch, hop: int, r: int, keys: Tensor
) -> Iterator[Draws]:
    """Draws at a node whose edges span several chunks, by single reads."""
    reader, fanout = epoch.readers[r], epoch.fanouts[r][hop]
    _, degree = reader.bounds(keys[:1] // epoch.num_times)
    for part in _slices(degree.expand(len(keys))):
        yield reader.draw_timed(
            r,
            hop,
            _frontier(epoch, keys[part]),
            fanout,
            epoch.options,
            epoch.weighted,
            epoch.stores_times(r, hop),
        )


def _cut_frontier(
    chunks: np.ndarray, keys: Tensor, num_times: int
) -> list[tuple[int, bool, int, int]]:
    """Splits a frontier by chunk, and separates split nodes.

    Returns:
        List[Tuple[int, bool, int, int]]: The chunk, whether the piece is a
        split node that starts there, and the bounds of the piece.
    """
    start, end = chunks[:, START], chunks[:, START] + chunks[:, NODES]
    goes_on = np.append(start[1:] < end[:-1], False)
    went_on = np.concatenate([[False], goes_on[:-1]])
    # Whole nodes of chunk i are [first, last); a split one is `last`.
    first, last = start + went_on, end - goes_on
    edges = np.stack([first, last, end], 1) * num_times
    at = np.searchsorted(keys.numpy(), edges)
    out = []
    # A chunk inside a split node is not among these: no node starts in it.
    for i in np.flatnonzero(at[:, 2] > at[:, 0]).tolist():
        if at[i, 1] > at[i, 0]:
            out.append((i, False, int(at[i, 0]), int(at[i, 1])))
        if at[i, 2] > at[i, 1]:
            out.append((i, True, int(at[i, 1]), int(at[i, 2])))
    return out


def _frontier(epoch: Epoch, keys: Tensor) -> Frontier:
    if epoch.times is None:
        return Frontier(keys.clone(), None, None)
    node, rank = keys // len(epoch.times), keys % len(epoch.times)
    return Frontier(node, None, epoch.times[rank])


def _open_chunk(
    epoch: Epoch, file: ReadableFile, r: int, chunk: int, data: np.ndarray
) -> dict[str, np.ndarray]:
    meta = epoch.graph.meta.relations[r]
    epoch.graph.checked[r].check(file, chunk, data)
    return chunk_arrays(file.path, meta, chunk, data)


def _sample_chunk(
    epoch: Epoch,
    file: ReadableFile,
    hop: int,
    r: int,
    chunk: int,
    arrays: dict[str, np.ndarray],
    keys: Tensor,
) -> Iterator[Draws]:
    meta, fanout = epoch.graph.meta.relations[r], epoch.fanouts[r][hop]
    row = meta.chunks[chunk]
    tensors = {k: torch.from_numpy(v) for k, v in arrays.items()}
    weighted = epoch.weighted and 'weight' in tensors
    timed = epoch.times is not None and 'time' in tensors
    frontier = _frontier(epoch, keys)
    local = frontier.node - int(row[START])
    start, end = tensors['offset'][local], tensors['offset'][local + 1]
    valid = (start >= 0) & (start <= end) & (end <= int(row[EDGES]))
    if not bool(valid.all()):
        malformed(
            file.path,
            int(row[OFFSET]),
            f'offsets of chunk {chunk} must ascend from 0 to {row[EDGES]}',
        )
    length = end - start
    looked = length
    if fanout >= 0 and not (weighted or timed):
        looked = torch.full_like(length, fanout)
    for part in _slices(looked):
        time = None if frontier.time is None else frontier.time[part]
        first, size = start[part], length[part]
        indptr = pointers_of(size)
        weight = edge_time = None
        if weighted or timed:
            every = concat_ranges(first, size)
            if weighted:
                weight = check_weights(
                    file.path,
                    meta,
                    tensors['weight'][every],
                    partial(torch.add, every, int(row[FIRST])),
                )
                weight = ops.cumulate_weights(indptr, weight)
            edge_time = tensors['time'][every] if timed else None
        indptr, at = draw_columns(
            first,
            indptr,
            Frontier(frontier.node[part], None, time),
            fanout,
            hop,
            r,
            epoch.options,
            weight,
            edge_time,
        )
        neighbor = tensors['neighbor'][at]
        position = at + int(row[FIRST])
        check_neighbors(file.path, meta, neighbor, position)
        ids = tensors.get('edge_id')
        edge = position if ids is None else ids[at]
        stored = epoch.stores_times(r, hop)
        yield indptr, neighbor, edge, tensors['time'][at] if stored else None


def _slices(cost: Tensor) -> Iterator[slice]:
    """Cuts columns into pieces that cost about ``_SLICE`` each."""
    ends = cost.cumsum(0)
    first = 0
    while first < len(cost):
        done = int(ends[first - 1]) if first > 0 else 0
        last = int(torch.searchsorted(ends, done + _SLICE, right=True))
        last = max(last, first + 1)
        last = min(last, first + _SLICE)
        yield slice(first, last)
        first = last
