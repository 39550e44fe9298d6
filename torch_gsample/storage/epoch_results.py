"""The samples of an epoch, and how a batch finds its own in them."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from torch_gsample import ops
from torch_gsample.storage.hops import Frontier
from torch_gsample.storage.sorted_keys import SortedKeys
from torch_gsample.storage.spill import pieces_of, read_manifest, stamp
from torch_gsample.storage.spill_array import SpillArray

#: Columns that are copied before pages are given back.
_COLUMNS = 1 << 15


class EpochResults:
    """What all frontiers of an epoch drew.

    The frontier of a hop holds the key ``node * num_times + time rank`` of
    every column that a batch may ask for, ascending.

    Args:
        folder (Path): The folder on disk.
        facts (Dict[str, Any]): Its manifest.
    """

    def __init__(self, folder: Path, facts: dict[str, Any]):
        self.folder, self.facts = folder, facts
        self._stamp = stamp(folder)
        self._arrays = {
            name: SpillArray(array) for name, array in facts['arrays'].items()
        }
        self._keys: dict[str, SortedKeys] = {}
        self._on_disk = [a for a in self._arrays.values() if a.is_on_disk]

    @classmethod
    def find(cls, folder: Path) -> 'EpochResults | None':
        """Opens the results of a folder, if they are complete."""
        facts = read_manifest(folder)
        return None if facts is None else cls(folder, facts)

    def is_stale(self) -> bool:
        """Whether the epoch was prepared anew, with other seeds."""
        return stamp(self.folder) not in (None, self._stamp)

    def draw(
        self, relation: int, dst: int, hop: int, frontier: Frontier
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns what columns drew; see :data:`hops.Draw`.

        Raises:
            ValueError: If one was not prepared.
        """
        key, times = frontier.node, self._whole('times')
        if frontier.time is not None:
            rank = torch.searchsorted(times, frontier.time)
            known = times[rank.clamp(max=len(times) - 1)] == frontier.time
            self._check(known, frontier)
            key = key * len(times) + rank
        # A frontier is in no order. Where it is searched in order, caches
        # serve most of it.
        key, order = key.sort()
        place, found = map(
            torch.from_numpy, self._keys_of(hop, dst).find(key.numpy())
        )
        if not bool(found.all()):
            known = torch.empty_like(found).scatter_(0, order, found)
            self._check(known, frontier)
        place = torch.empty_like(place).scatter_(0, order, place)
        names = [f'{hop}-{relation}-{n}' for n in ('indptr', 'row', 'edge')]
        arrays = tuple(self._arrays[name] for name in names)
        indptr, row, edge = (array.tensor for array in arrays)
        if not any(array.is_on_disk for array in arrays):
            out, neighbor, _ = ops.slice_cols(indptr, row, place)
            return out, neighbor, ops.slice_cols(indptr, edge, place)[1]
        slices = []
        for part in pieces_of(len(place), _COLUMNS):
            _check_columns(arrays, place[part])
            start, neighbor, _ = ops.slice_cols(indptr, row, place[part])
            _, ids, _ = ops.slice_cols(indptr, edge, place[part])
            slices.append((start.diff(), neighbor, ids))
            for array in self._on_disk:
                array.release()
        length, neighbor, ids = map(torch.cat, zip(*slices, strict=True))
        out = torch.nn.functional.pad(length.cumsum(0), (1, 0))
        return out, neighbor, ids

    def _whole(self, name: str) -> Tensor:
        self._arrays[name].check_all()
        return self._arrays[name].tensor

    def _keys_of(self, hop: int, node_type: int) -> SortedKeys:
        name = f'{hop}-keys-{node_type}'
        if name not in self._keys:
            self._keys[name] = SortedKeys(self._whole(name).numpy())
        return self._keys[name]

    @staticmethod
    def _check(known: Tensor, frontier: Frontier) -> None:
        if bool(known.all()):
            return
        at = int((~known).nonzero()[0])
        time = frontier.time
        when = '' if time is None else f' at time {int(time[at])}'
        raise ValueError(
            f'StreamingSampler: node {int(frontier.node[at])}{when} was not '
            "among the seeds of 'prepare_epoch', nor sampled from them"
        )


def _check_columns(arrays: tuple[SpillArray, ...], place: Tensor) -> None:
    """Checks what columns read of files on disk."""
    indptr, *items = arrays
    indptr.check(place, place + 2)
    if any(array.is_on_disk for array in items):
        begin, end = indptr.tensor[place], indptr.tensor[place + 1]
        for array in items:
            array.check(begin, end)
