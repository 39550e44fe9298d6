"""The frontiers of an epoch: the distinct keys of seeds and of sampled nodes.

The key of a node is its id, or ``node * num_times + rank`` with the rank of
its time among the times of all seeds.

Memory grows with the frontier, or is that of a mask that covers the nodes in
several rounds.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from torch_gsample.ops._check import node_ids
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
    if num_nodes * len(distinct) >= 1 << 62:
        raise ValueError(
            f'StreamingSampler: {len(distinct)} times of {num_nodes} nodes '
            'are too many to distinguish; use coarser times'
        )
    return (node * len(distinct) + rank).unique(), distinct


def next_keys(
    sampled: list[Sampled], num_times: int, num_nodes: int, mask_bytes: int
) -> Iterator[Tensor]:
    """Yields the distinct keys of sampled nodes, ascending.

    Args:
        sampled (List): The draws of relations whose sources have one type.
        num_times (int): The number of keys of a node.
        num_nodes (int): The number of nodes of the type.
        mask_bytes (int): Memory of the mask.
    """
    size, step = num_nodes * num_times, max(mask_bytes, 1)
    if size > _MOST_TURNS * step:
        yield _sorted_keys(sampled, num_times, step // 8)
        return
    for first in range(0, size, step):
        last = min(first + step, size)
        mask = torch.zeros(last - first, dtype=torch.bool)
        for key in _keys(sampled, num_times):
            if step < size:
                key = key[(key >= first) & (key < last)]
            mask[key - first] = True
        for part in pieces_of(len(mask), 1 << 22):
            yield mask[part].nonzero().view(-1) + (first + part.start)


def _sorted_keys(sampled: list[Sampled], num_times: int, most: int) -> Tensor:
    out = torch.empty(0, dtype=torch.int64)
    pending, size = [out], 0
    for key in _keys(sampled, num_times):
        pending.append(key.unique())
        size += len(pending[-1])
        if size > max(most, len(out)):
            out = torch.cat([out, *pending]).unique()
            pending, size = [], 0
    return torch.cat([out, *pending]).unique()


def _keys(sampled: list[Sampled], num_times: int) -> Iterator[Tensor]:
    """Yields the keys of sampled nodes, with the time of their column."""
    for keys, folder, name in sampled:
        indptr = folder.open(f'{name}-indptr')
        row = folder.open(f'{name}-row')
        for part in pieces_of(len(keys), _COLUMNS):
            ends = indptr[part.start : part.stop + 1]
            node = row[int(ends[0]) : int(ends[-1])].long()
            if num_times > 1:
                rank = keys[part] % num_times
                rank = torch.repeat_interleave(rank, ends.diff())
                node = node * num_times + rank
            yield node
            folder.release()
