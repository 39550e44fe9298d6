"""What our loaders add to PyG's: epochs, batch numbers and prefetching."""

from collections.abc import Iterator
from typing import Any

from torch_geometric.sampler import BaseSampler

from torch_gsample.loader.numbering import (
    BatchIndex,
    IndexRange,
    NumberedBatches,
)
from torch_gsample.loader.prefetch import (
    IndexFeed,
    in_prefetch_thread,
    prefetched,
)
from torch_gsample.rng import batch_scope
from torch_gsample.samplers.base import KeyedSampler

#: Batches that are made ahead in a thread when there are no workers.
DEFAULT_PREFETCH = 2


class KeyedLoader:
    """Mixin in front of a PyG loader.

    Each pass over the loader is an epoch: the first is 0, the next 1, and so
    on, unless :meth:`set_epoch` says otherwise. Together with the position of
    a batch in the pass it is the key of the batch's draws, whichever worker
    or thread makes it.
    """

    epoch: int
    prefetch: int
    _feed: IndexFeed | None = None
    _pass_epoch: int = 0
    _transform: Any = None

    def _init_keyed(
        self, prefetch: int | None, sampler: Any, kwargs: dict[str, Any]
    ) -> None:
        """Reads what concerns this class, before PyG's initialisation.

        A sampler that is not keyed may use torch's default generator, which
        its caller uses as well: it stays in the caller's thread.
        """
        if prefetch is None:
            keyed = isinstance(sampler, KeyedSampler)
            prefetch = DEFAULT_PREFETCH if keyed else 0
        if prefetch < 0:
            raise ValueError(
                f"{type(self).__name__}: 'prefetch' must not be negative "
                f'(got {prefetch})'
            )
        if kwargs.get('batch_size', 1) is None:
            raise ValueError(
                f"{type(self).__name__}: 'batch_size' must be a number of "
                f'seeds (got None)'
            )
        self.prefetch = prefetch
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next pass; later passes count on from it.

        Args:
            epoch (int): The number of the epoch.
        """
        if epoch < 0:
            raise ValueError(
                f"set_epoch: 'epoch' must not be negative (got {epoch})"
            )
        self.epoch = epoch

    def __iter__(self) -> Iterator[Any]:
        epoch = self.epoch
        self.epoch += 1
        loader: Any = super()
        self._pass_epoch = epoch
        if self.num_workers > 0 or self.prefetch == 0:  # type: ignore
            return loader.__iter__()
        return self._iter_prefetched(loader)

    def _iter_prefetched(self, loader: Any) -> Iterator[Any]:
        # PyG's iterator is made in this thread, as it draws a base seed.
        feed = IndexFeed(self._index_sampler)
        self._feed = feed
        try:
            batches = loader.__iter__()
        finally:
            self._feed = None
        ahead = prefetched(feed, lambda: batches, self.prefetch)
        return ahead if self.transform is None else map(self.transform, ahead)

    @property
    def transform(self) -> Any:
        """What to do with a batch: in the caller's thread, as in PyG.

        It may use torch's default generator, as the caller does.
        """
        return None if in_prefetch_thread() else self._transform

    @transform.setter
    def transform(self, transform: Any) -> None:
        self._transform = transform

    @property
    def _index_sampler(self) -> Any:
        # Where torch's loader looks for batches of indices.
        if self._feed is not None:
            return self._feed
        batches = super()._index_sampler  # type: ignore[misc]
        return NumberedBatches(batches, lambda: self._pass_epoch)

    def collate_fn(self, index: Any) -> Any:
        """Samples a batch under its number."""
        collate: Any = super().collate_fn  # type: ignore[misc]
        if not isinstance(index, BatchIndex):
            return collate(index)
        with batch_scope(*index.number):
            return collate(list(index))

    def __setattr__(self, name: str, value: Any) -> None:
        # PyG hands `range(n)` to torch's loader, which would look up every
        # index of a batch and lose its number.
        if name == 'dataset' and isinstance(value, range):
            value = IndexRange(len(value))
        super().__setattr__(name, value)


def split_sampler(
    name: str, sampler: Any, kwargs: dict[str, Any]
) -> BaseSampler | None:
    """Tells a graph sampler from torch's sampler of indices.

    Both are called ``sampler``: torch's goes on to its loader.
    """
    if sampler is None or isinstance(sampler, BaseSampler):
        return sampler
    if not hasattr(sampler, '__iter__'):
        raise TypeError(
            f"{name}: 'sampler' must be a graph sampler (a 'BaseSampler') or "
            f'a sampler of indices (got {type(sampler).__name__})'
        )
    kwargs['sampler'] = sampler
    return None
