"""Groups of batches that are sampled in one run.

Numbered batches of indices come in. Groups of them go to the sampler, and
their samples come out one by one.
"""

import multiprocessing
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import torch
from torch.utils.data import get_worker_info

from torch_gsample.rng import batch_scope
from torch_gsample.samplers.neighbor.graph_sampler import GraphSampler
from torch_gsample.torch_private import ExceptionWrapper

#: Number of batches to measure with.
_MEASURED = 32


class _Failed:
    """An exception of this process, in place of a batch."""

    def __init__(self, error: Exception):
        self.error = error

    def reraise(self) -> None:
        raise self.error


class Group(list):
    """Batches that are sampled in one run: their indices, or their samples.

    The last item may be an error.
    """

    def items(self) -> Iterator[Any]:
        """Yields the items; raises an error when it is reached."""
        for item in self:
            if isinstance(item, (_Failed, ExceptionWrapper)):
                item.reraise()
            yield item


def grouped(
    batches: Iterable[Any],
    size: Callable[[], int],
    total: int = sys.maxsize,
    num_workers: int = 0,
) -> Iterator[Any]:
    """Groups batches; a group of one stays a single batch.

    Groups are small enough that all workers get some of the last batches.

    Args:
        batches (Iterable[Any]): The batches of an epoch.
        size (Callable): Returns the size of the next group.
        total (int, optional): Number of batches.
        num_workers (int, optional): Number of workers, which take turns.
    """
    rest, done = iter(batches), 0
    while True:
        share = -(-(total - done) // max(num_workers, 1))
        group = list(islice(rest, max(1, min(size(), share))))
        if not group:
            return
        done += len(group)
        yield group[0] if len(group) == 1 else Group(group)


def one_by_one(batches: Iterable[Any]) -> Iterator[Any]:
    """Yields the items of groups, and of maps over them."""
    for item in batches:
        if isinstance(item, Group):
            yield from item.items()
        elif isinstance(item, map):
            yield from item
        else:
            yield item


def sample_group(loader: Any, sampler: GraphSampler, group: Group) -> Group:
    """Samples the batches of a group; each is as if sampled alone.

    If a batch fails, the batches before it are returned, then its error.

    Args:
        loader (NodeLoader or LinkLoader): One of our loaders.
        sampler (GraphSampler): Its sampler.
        group (Group): Indices.
    """
    try:
        outs = sampler.sample_batches(
            [loader.input_data[list(index)] for index in group],
            [index.number for index in group],
            getattr(loader, 'neg_sampling', None),
        )
    except Exception as error:  # the failing batch raises it again
        out = _sample_each(loader, group)
        if not isinstance(out[-1], (_Failed, ExceptionWrapper)):
            warnings.warn(
                f'{len(group)} batches were sampled one by one '
                f'because sampling them together failed: {error}',
                stacklevel=2,
            )
        return out
    if loader.filter_per_worker:
        for i, index in enumerate(group):
            with batch_scope(*index.number):
                outs[i] = loader.filter_fn(outs[i])
    return Group(outs)


def _sample_each(loader: Any, group: Group) -> Group:
    out, worker = Group(), get_worker_info()
    for index in group:
        try:
            out.append(loader.collate_fn(index))
        except Exception as error:
            out.append(
                _Failed(error)
                if worker is None
                else ExceptionWrapper(
                    where=f'in DataLoader worker process {worker.id}'
                )
            )
            break
    return out


def search_look_ahead(loader: Any, sampler: GraphSampler) -> None:
    """Continues to measure the fastest look-ahead, before an epoch begins.

    Evenly spaced seeds of the loader are sampled under the modes and threads
    of whichever process or thread makes the batches. Workers that are not
    forked would have to compile the measured programs, so nothing is measured
    for them.
    """
    forks = is_forking(loader)
    workers, size = loader.num_workers, loader.batch_size
    if size is None or (workers > 0 and not forks):
        return
    try:
        total = len(loader)
    except TypeError:  # an index sampler has no length
        return

    def seeds() -> list[torch.Tensor]:
        num_items = len(loader.dataset)
        step = max(num_items // size, 1)
        steps = torch.arange(size) * step
        # Not adjacent: they would share the blocks of a disk.
        gap = max(step // _MEASURED, 1)
        places = [(steps + i * gap) % num_items for i in range(_MEASURED)]
        return [_nodes(loader.input_data[place]) for place in places]

    with _as_made(loader):
        sampler.search_look_ahead(seeds, total // max(workers, 1))


def is_forking(loader: Any) -> bool:
    """Whether workers inherit their parent's state at an epoch's start."""
    context = loader.multiprocessing_context or multiprocessing
    return loader.num_workers > 0 and context.get_start_method() == 'fork'


def _nodes(inputs: Any) -> torch.Tensor:
    if hasattr(inputs, 'node'):
        return inputs.node.unique()
    return torch.cat([inputs.row, inputs.col]).unique()


@contextmanager
def _as_made(loader: Any) -> Iterator[None]:
    """Sets the modes and the threads of whichever makes batches."""
    threads = torch.get_num_threads()
    try:
        if loader.num_workers > 0:
            torch.set_num_threads(1)
            yield
        elif loader.prefetch > 0:
            with torch.inference_mode(False), torch.enable_grad():
                yield
        else:
            yield
    finally:
        torch.set_num_threads(threads)
