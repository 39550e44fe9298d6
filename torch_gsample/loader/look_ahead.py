"""Lets a sampler see several batches at a time.

Numbered batches of indices come in; groups of them go to whoever samples, and
what was sampled comes out one by one.
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

#: How many batches are there to measure with.
_MEASURED = 32


class _Failed:
    """What failed in this process."""

    def __init__(self, error: Exception):
        self.error = error

    def reraise(self) -> None:
        raise self.error


class Group(list):
    """Batches that are sampled in one run: their indices, or their samples.

    The last one may be what failed there.
    """

    def items(self) -> Iterator[Any]:
        """Yields them, and raises what failed."""
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
    """Makes groups of batches, and leaves single ones as they are.

    Groups end so that all workers have some of the last batches.

    Args:
        batches (Iterable[Any]): The batches of a pass.
        size (Callable): Returns how many batches the next group has.
        total (int, optional): How many batches there are.
        num_workers (int, optional): How many workers take turns.
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
    """Takes groups apart, and what is computed of their items (a ``map``)."""
    for item in batches:
        if isinstance(item, Group):
            yield from item.items()
        elif isinstance(item, map):
            yield from item
        else:
            yield item


def sample_group(loader: Any, sampler: GraphSampler, group: Group) -> Group:
    """Samples the batches of a group, each as it is alone.

    If a batch fails, those before it are returned, and what failed.

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
    except Exception as error:  # its own batch says so again
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
    """Goes on to measure what look-ahead is fastest, before a pass begins.

    Batches of seeds that lie evenly among those of the loader are sampled, as
    whoever makes the batches will do it. Processes that are not forked would
    have to compile what is measured.
    """
    forks = is_forking(loader)
    workers, size = loader.num_workers, loader.batch_size
    if size is None or (workers > 0 and not forks):
        return
    try:
        total = len(loader)
    except TypeError:  # of an index sampler without a length
        return

    def seeds() -> list[torch.Tensor]:
        num_items = len(loader.dataset)
        steps = torch.arange(size) * max(num_items // size, 1)
        places = [(steps + i) % num_items for i in range(_MEASURED)]
        return [_nodes(loader.input_data[place]) for place in places]

    with _as_made(loader):
        sampler.search_look_ahead(seeds, total // max(workers, 1))


def is_forking(loader: Any) -> bool:
    """Whether workers have what their parent has when a pass begins."""
    context = loader.multiprocessing_context or multiprocessing
    return loader.num_workers > 0 and context.get_start_method() == 'fork'


def _nodes(inputs: Any) -> torch.Tensor:
    if hasattr(inputs, 'node'):
        return inputs.node.unique()
    return torch.cat([inputs.row, inputs.col]).unique()


@contextmanager
def _as_made(loader: Any) -> Iterator[None]:
    """The modes and the threads of whoever makes batches."""
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
