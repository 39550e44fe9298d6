"""The samples of an epoch, and the lookup of a batch in them."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from torch_gsample.samplers.neighbor.edge_bound import Select
from torch_gsample.storage.columns import concat_ranges
from torch_gsample.storage.drawn import Drawn
from torch_gsample.storage.hops import Draw, Frontier
from torch_gsample.storage.sorted_keys import SortedKeys
from torch_gsample.storage.spill import read_manifest, stamp
from torch_gsample.storage.spill_array import SpillArray


class EpochResults:
    """The draws of all frontiers of an epoch.

    The frontier of a hop holds the key ``node * num_times + time rank`` of
    every column that a batch may need, ascending.

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

    @classmethod
    def find(cls, folder: Path) -> 'EpochResults | None':
        """Opens the results of a folder, if they are complete."""
        facts = read_manifest(folder)
        return None if facts is None else cls(folder, facts)

    def is_stale(self) -> bool:
        """Whether the epoch was prepared again with other seeds."""
        return stamp(self.folder) not in (None, self._stamp)

    def lookups(self, targets: list[int], threads: int) -> tuple[Draw, Select]:
        """Returns the functions that look up frontiers; the second with times.

        Args:
            targets (List[int]): The node type of each relation's columns.
            threads (int): The maximum number of threads.
        """

        def draw(relation: int, hop: int, frontier: Frontier) -> Drawn:
            return self.draw(
                relation, targets[relation], hop, frontier, threads
            )

        def select(
            relation: int,
            hop: int,
            node: Tensor,
            root: Tensor | None,
            latest: Tensor,
        ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
            frontier = Frontier(node, root, latest)
            return self.draw_timed(
                relation, targets[relation], hop, frontier, threads
            )

        return draw, select

    def draw(
        self,
        relation: int,
        dst: int,
        hop: int,
        frontier: Frontier,
        threads: int,
    ) -> Drawn:
        """Returns the draws of columns; see :data:`hops.Draw`.

        Raises:
            ValueError: If one was not prepared.
        """
        key, times = frontier.node, self._times_of(hop)
        if frontier.time is not None:
            rank = torch.searchsorted(times, frontier.time)
            known = times[rank.clamp(max=len(times) - 1)] == frontier.time
            if not bool(known.all()):
                self._refuse(frontier, int((~known).nonzero()[0]))
            key = key * len(times) + rank
        place, missing = self._keys_of(hop, dst).find(key.numpy(), threads)
        if missing >= 0:
            self._refuse(frontier, missing)
        indptr, row, edge = (
            self._arrays[f'{hop}-{relation}-{name}']
            for name in ('indptr', 'row', 'edge')
        )
        return Drawn.look_up(indptr, row, edge, place)

    def draw_timed(
        self,
        relation: int,
        dst: int,
        hop: int,
        frontier: Frontier,
        threads: int,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Returns the draws of columns, with times where they were stored.

        See :data:`~torch_gsample.samplers.neighbor.edge_bound.Select`.

        Raises:
            ValueError: If one was not prepared.
        """
        drawn = self.draw(relation, dst, hop, frontier, threads)
        length = drawn.offset.diff()
        position = concat_ranges(drawn.start, length)
        first, out = drawn.start.numpy(), []
        for name in ('row', 'edge', 'time'):
            array = self._arrays.get(f'{hop}-{relation}-{name}')
            if array is None:
                continue
            array.check(first, first + length.numpy())
            out.append(array.tensor[position].long())
            if array.is_on_disk:
                array.release()
        row, edge, *time = out
        return drawn.offset, row, edge, time[0] if time else None

    def _times_of(self, hop: int) -> Tensor:
        """Returns the times of a frontier; those of seeds if not its own."""
        name = f'{hop}-times'
        return self._whole(name if name in self._arrays else '0-times')

    def _whole(self, name: str) -> Tensor:
        self._arrays[name].check_all()
        return self._arrays[name].tensor

    def _keys_of(self, hop: int, node_type: int) -> SortedKeys:
        name = f'{hop}-keys-{node_type}'
        if name not in self._keys:
            self._keys[name] = SortedKeys(self._whole(name).numpy())
        return self._keys[name]

    @staticmethod
    def _refuse(frontier: Frontier, at: int) -> None:
        time = frontier.time
        when = '' if time is None else f' at time {int(time[at])}'
        raise ValueError(
            f'StreamingSampler: node {int(frontier.node[at])}{when} was not '
            "among the seeds of 'prepare_epoch', nor sampled from them"
        )
