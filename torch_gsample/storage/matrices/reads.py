"""Reads items of a file by the cheapest plan.

Positions of edges come in, in any order; items go out. A call reads each
missing block once, in file order. It also reads gaps between blocks if the
disk model predicts that this costs less than another request: no gaps, short
ones, or all of them (one stream).
"""

import itertools
from collections import Counter
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from torch_gsample.storage.blocks import BLOCK, BlockReader, Items
from torch_gsample.storage.read_model import DiskModel, Reads

#: Blocks in memory at a time, in addition to the cache.
GROUP = 2048
#: The default disk model.
USUAL_DISK = DiskModel(1e-5, 2e9)


@dataclass(frozen=True)
class Plan:
    """A plan for reading the blocks of a call.

    Args:
        name (str): ``'random'``, ``'merged'`` or ``'stream'``.
        gap (int): Blocks of the longest gap that is read.
        reads (Reads): Requests and bytes.
        seconds (float): The predicted time.
    """

    name: str
    gap: int
    reads: Reads
    seconds: float


def choose_plan(block: np.ndarray, model: DiskModel) -> Plan:
    """Chooses a plan for reading distinct blocks.

    Args:
        block (numpy.ndarray): int64 ``[n]``, ascending, at least one.
        model (DiskModel): The disk.

    Example:
        >>> sparse, dense = np.arange(9) * 1000, np.arange(9) * 2
        >>> model = DiskModel(1e-5, 2e9)
        >>> choose_plan(sparse, model).name, choose_plan(dense, model).name
        ('random', 'stream')
    """
    hole = np.diff(block) - 1
    widest = int(hole.max(initial=0))
    plans = []
    for name, gap in (
        ('random', 0),
        ('merged', model.gap),
        ('stream', widest),
    ):
        bridged = hole[hole <= gap]
        reads = Reads(
            len(block) - len(bridged),
            (len(block) + int(bridged.sum())) * BLOCK,
        )
        plans.append(Plan(name, gap, reads, model.seconds(reads)))
    best = min(plans, key=lambda plan: plan.seconds)
    return plans[2] if best.reads == plans[2].reads else best


class ReadCounts:
    """Read counters of this process, by plan."""

    def __init__(self) -> None:
        self.plans: Counter[str] = Counter()
        self.requests = self.bytes = 0
        self.last = ''
        #: A line for each call, while logging.
        self.log: list[str] | None = None

    def add(self, plan: Plan | None, size: int) -> None:
        """Counts a call; without a plan, all blocks were cached."""
        self.last = 'cached' if plan is None else plan.name
        self.plans[self.last] += 1
        if plan is not None:
            self.requests += int(plan.reads.requests)
            self.bytes += int(plan.reads.size)
        if self.log is not None:
            line = f'{size} items: {self.last}'
            if plan is not None:
                line += (
                    f', {int(plan.reads.requests)} requests, '
                    f'{int(plan.reads.size) >> 10} KiB, '
                    f'{1e3 * plan.seconds:.2f} ms by the model'
                )
            self.log.append(line)


def read_items(
    blocks: BlockReader,
    items: Items,
    position: Tensor,
    model: DiskModel,
    counts: ReadCounts,
) -> Tensor:
    """Returns the items of edges.

    Args:
        blocks (BlockReader): Reads the file.
        items (Items): The array.
        position (torch.Tensor): int64 ``[n]``, positions of edges.
        model (DiskModel): The disk.
        counts (ReadCounts): Counts the plan.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is not as it was written.
    """
    out, runs = blocks.edges(items, position)
    if len(runs.offset) == 0:
        counts.add(None, len(out))
        return out
    block = runs.offset // BLOCK
    if bool((block[1:] < block[:-1]).any()):
        order = np.argsort(block, kind='stable')
        runs, block = runs.take(order), block[order]
    is_new = np.ones(len(block), bool)
    np.not_equal(block[1:], block[:-1], out=is_new[1:])
    wanted, number = block[is_new], np.cumsum(is_new) - 1
    plan = choose_plan(wanted, model)
    for begin, end in _groups(wanted, plan):
        some = _bridged(wanted[begin:end], plan.gap)
        part = slice(*np.searchsorted(number, [begin, end]))
        place = np.searchsorted(some, block[part])
        blocks.read_runs(some, runs.take(part), place, out)
    counts.add(plan, len(out))
    return out


def _groups(wanted: np.ndarray, plan: Plan) -> list[tuple[int, int]]:
    """Cuts blocks into groups of bounded size, including gaps."""
    if plan.reads.size <= GROUP * BLOCK:
        return [(0, len(wanted))]
    gap = plan.gap
    step = np.diff(wanted, prepend=wanted[0])
    cost = np.cumsum(np.where(step - 1 <= gap, step, 1))
    cuts = np.flatnonzero(np.diff(cost // GROUP)) + 1
    bounds = [0, *cuts.tolist(), len(wanted)]
    return list(itertools.pairwise(bounds))


def _bridged(block: np.ndarray, gap: int) -> np.ndarray:
    """Returns ascending blocks with those of the gaps between them."""
    hole = np.diff(block, append=block[-1] + 1) - 1
    return _ranges(block, np.where(hole <= gap, hole, 0) + 1)


def _ranges(start: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Returns ``start[i], ..., start[i] + length[i] - 1`` for each i."""
    before = np.cumsum(length) - length
    return np.repeat(start - before, length) + np.arange(length.sum())
