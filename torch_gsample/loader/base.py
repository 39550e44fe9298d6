"""What our loaders add to PyG's: epochs, batch numbers and prefetching."""

import os
from collections.abc import Iterator
from functools import partial
from numbers import Integral
from typing import Any

from torch.utils.data import get_worker_info
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader.base import DataLoaderIterator
from torch_geometric.sampler import BaseSampler

from torch_gsample.loader.adjacency import with_edge_index
from torch_gsample.loader.batch_shape import BatchShape
from torch_gsample.loader.features import join_features
from torch_gsample.loader.gpu_batches import GpuBatches, check_loader
from torch_gsample.loader.look_ahead import (
    Group,
    is_forking,
    one_by_one,
    sample_group,
    search_look_ahead,
)
from torch_gsample.loader.numbering import (
    BatchIndex,
    IndexRange,
    NumberedBatches,
)
from torch_gsample.loader.prefetch import (
    Feed,
    in_prefetch_thread,
    prefetched,
)
from torch_gsample.loader.progress import check_progress, shown
from torch_gsample.loader.sharding import Shard, read_shard
from torch_gsample.loader.static_shapes import Shapes, StaticShapes
from torch_gsample.loader.watch import BatchWatch, Watched, check_process
from torch_gsample.rng import batch_scope
from torch_gsample.samplers.arguments import flag
from torch_gsample.samplers.base import KeyedSampler
from torch_gsample.samplers.counts import Counts
from torch_gsample.samplers.gradients import check_no_gradients, is_trainable
from torch_gsample.samplers.node_wise import NeighborSampler
from torch_gsample.samplers.program import ProgramSampler

#: Batches that are made ahead in a thread when there are no workers.
DEFAULT_PREFETCH = 2


class KeyedLoader:
    """Mixin in front of a PyG loader.

    Each pass over the loader is an epoch: the first is 0, the next 1, and so
    on, unless :meth:`set_epoch` says otherwise. Together with the position of
    a batch in the pass it is the key of the batch's draws, whichever worker
    or thread makes it.

    Of ``world_size`` processes, number ``rank`` gets every
    ``world_size``-th batch of the pass, so that all of them together get what
    one process would: see ``docs/distributed.md``.
    """

    epoch: int
    prefetch: int
    _feed: Feed | None = None
    _watch: BatchWatch
    _pass_epoch: int = 0
    #: Who created the latest iterator.
    _process: int = -1
    _shard: Shard | None = None
    _transform: Any = None
    #: The sampler that may sample several batches in one run.
    _ahead_of: ProgramSampler | None = None
    #: Where batches are made if the sampler is on a GPU.
    gpu_batches: GpuBatches | None = None
    #: Whether a pass shows a progress bar.
    progress: bool = False
    #: The shapes that batches are padded to.
    static_shapes: StaticShapes | None = None

    def _init_keyed(
        self,
        data: Any,
        prefetch: int | None,
        sampler: Any,
        kwargs: dict[str, Any],
        static_shapes: Shapes = False,
        progress: bool = False,
    ) -> None:
        """Reads what concerns this class, before PyG's initialisation.

        A sampler that is not keyed may use torch's default generator, which
        its caller uses as well: it stays in the caller's thread.
        """
        name = type(self).__name__
        if isinstance(sampler, NeighborSampler) and sampler.placement:
            check_loader(name, data, kwargs)
            device = sampler.placement.device
            self.gpu_batches = GpuBatches(with_edge_index(data), device)
        self.progress = flag(name, 'progress', progress)
        if progress:
            check_progress(name)
        if static_shapes is not False:
            self.static_shapes = StaticShapes(name, static_shapes, sampler)
        if kwargs.get('filter_per_worker') is not None:
            flag(name, 'filter_per_worker', kwargs['filter_per_worker'])
        else:
            kwargs['filter_per_worker'] = _filter_per_worker(data, kwargs)
        if isinstance(sampler, ProgramSampler) and is_trainable(sampler):
            _check_nothing_ahead(name, sampler, prefetch, kwargs)
            prefetch = 0
        elif isinstance(sampler, ProgramSampler) and sampler.compile:
            self._ahead_of = sampler
        if prefetch is None:
            keyed = isinstance(sampler, KeyedSampler)
            prefetch = DEFAULT_PREFETCH if keyed else 0
        # Samplers without a seed have none that all processes must share.
        seed: int | None = 0
        if isinstance(sampler, KeyedSampler):
            seed = sampler.seed if sampler.is_seeded else None
        self._init_epochs(prefetch, kwargs, seed)

    def _init_epochs(
        self, prefetch: int, kwargs: dict[str, Any], seed: int | None
    ) -> None:
        if not isinstance(prefetch, Integral) or isinstance(prefetch, bool):
            raise TypeError(
                f"{type(self).__name__}: 'prefetch' must be an integer (got "
                f'{prefetch!r})'
            )
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
        self._shard = read_shard(type(self).__name__, kwargs, seed)
        self.prefetch = prefetch
        self.epoch = 0
        self.counts = Counts()
        name = type(self).__name__
        self._watch = BatchWatch(name, self.counts, self.static_shapes)

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

    @property
    def buckets(self) -> list[BatchShape]:
        """The static shapes of batches, known from the first pass on."""
        return [] if self.static_shapes is None else self.static_shapes.buckets

    def stats(self) -> dict[str, Any]:
        """Returns counts of the batches that were handed out.

        Whichever worker made them. The time of phases in workers is not in
        it.

        Returns:
            Dict[str, Any]: ``batches``, ``nodes``, ``edges`` and
            ``duplicates`` as of :meth:`KeyedSampler.stats`, without padding;
            ``seconds``, among them those that the caller did ``wait``. With
            static shapes also ``buckets``, with their ``nodes``, ``edges``
            and uses (``batches``), and ``padding``: how many ``nodes`` and
            ``edges`` were added, as a part of the real ones.
        """
        return self._watch.stats()

    def __iter__(self) -> Iterator[Any]:
        loader: Any = self
        check = partial(check_process, type(self).__name__)
        if loader._iterator is not None:
            check(self._process)  # its workers persist
        self._process = os.getpid()
        waits = self.prefetch > 0 or loader.num_workers > 0
        batches: Any = Watched(
            self._begin_pass(),
            self._watch.see,
            partial(check, self._process) if waits else None,
        )
        return shown(batches, self) if self.progress else batches

    def _begin_pass(self) -> Iterator[Any]:
        epoch = self.epoch
        self.epoch += 1
        loader: Any = super()
        self._pass_epoch = epoch
        sampler = self._keyed_sampler()
        if sampler is not None:
            sampler.begin_pass(epoch, getattr(self, 'input_data', None))
        self._prepare_sampler()
        if self.prefetch == 0:
            batches = loader.__iter__()
            return batches if self._ahead_of is None else one_by_one(batches)
        if self.num_workers > 0:  # type: ignore[attr-defined]
            return self._iter_workers(loader.__iter__())
        return self._iter_prefetched(loader)

    def _prepare_sampler(self) -> None:
        """Does once what each worker would do for each pass."""
        if self.static_shapes is not None:
            self.static_shapes.prepare(self)
        if self._ahead_of is not None:
            search_look_ahead(self, self._ahead_of)
            if is_forking(self):
                self._ahead_of.prepare_workers()

    def _iter_prefetched(self, loader: Any) -> Iterator[Any]:
        # PyG's iterator is made in this thread, as it draws a base seed.
        feed = Feed(self._index_sampler)
        self._feed = feed
        try:
            batches = loader.__iter__()
        finally:
            self._feed = None

        def most() -> int:
            # A group is made while the one before it is used.
            return max(self.prefetch, self._group_size())

        gpu = self.gpu_batches
        if gpu is None:
            ahead = prefetched(feed, lambda: one_by_one(batches), most)
        else:
            make_batches = gpu.on_stream(lambda: batches)
            ahead = gpu.arrived(prefetched(feed, make_batches, most))
        return ahead if self.transform is None else map(self.transform, ahead)

    def _iter_workers(self, batches: Any) -> Iterator[Any]:
        """Joins the features to the workers' samples in a thread."""
        if not isinstance(batches, DataLoaderIterator):
            # Workers do it.
            return batches if self._ahead_of is None else one_by_one(batches)
        samples: Any = batches.iterator

        def make_batches() -> Iterator[Any]:
            for sample in one_by_one(feed):
                batch = batches.transform_fn(sample)
                yield batch.pin_memory() if samples._pin_memory else batch

        feed = Feed(samples)
        ahead = prefetched(feed, make_batches, lambda: self.prefetch)
        return ahead if self.transform is None else map(self.transform, ahead)

    def _group_size(self) -> int:
        return 1 if self._ahead_of is None else self._ahead_of.look_ahead

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
        size = None if self._ahead_of is None else self._group_size
        sampler = self._keyed_sampler()
        return NumberedBatches(
            batches,
            lambda: self._pass_epoch,
            size,
            self.num_workers,  # type: ignore[attr-defined]
            None if sampler is None else sampler.hand_out,
            self._shard,
        )

    def _graph_sampler(self) -> BaseSampler | None:
        for name in ('node_sampler', 'link_sampler'):
            sampler: BaseSampler | None = getattr(self, name, None)
            if sampler is not None:
                return sampler
        return None

    def _keyed_sampler(self) -> KeyedSampler | None:
        sampler = self._graph_sampler()
        return sampler if isinstance(sampler, KeyedSampler) else None

    def filter_fn(self, out: Any) -> Any:
        """Makes a batch of a sample."""
        if isinstance(out, Group):  # one after another, as they are asked for
            return map(self.filter_fn, out.items())
        filter_fn: Any = super().filter_fn  # type: ignore[misc]
        return join_features(self, filter_fn.__func__, out)

    def collate_fn(self, index: Any) -> Any:
        """Samples a batch under its number, or a group of them.

        Raises:
            ValueError: If a sample requires gradients, and is made in a
                worker, which cannot send them, or ahead of its step.
        """
        out = self._collate(index)
        ahead = in_prefetch_thread() and self._graph_sampler() is not None
        if ahead or get_worker_info() is not None:
            check_no_gradients(type(self).__name__, out)
        return out

    def _collate(self, index: Any) -> Any:
        if isinstance(index, Group):
            assert self._ahead_of is not None
            return sample_group(self, self._ahead_of, index)
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


def _check_nothing_ahead(
    name: str,
    sampler: ProgramSampler,
    prefetch: int | None,
    kwargs: dict[str, Any],
) -> None:
    """Checks that a sampler that trains draws by the parameters of each step.

    Workers would draw by a copy of its parameters, and a thread by what they
    were some steps before, for a sample that depends on time.

    Raises:
        ValueError: If there are workers, or batches are made ahead.
    """
    counts = {
        'num_workers': kwargs.get('num_workers', 0),
        'prefetch': prefetch or 0,
    }
    for option, value in counts.items():
        if value > 0:
            raise ValueError(
                f"{name}: '{option}' must be 0 with a sampler that trains, "
                f'{sampler!r}, which draws by the parameters of each step; '
                f"or freeze it by 'requires_grad_(False)' (got {value})"
            )


def _filter_per_worker(data: Any, kwargs: dict[str, Any]) -> bool | None:
    """Whether workers join the features, where the caller does not say.

    Between processes, features cost more to pass on than to collect. Workers
    do it where there is more to do in parallel: callables of the user, and
    stores that may be slow. None leaves it to PyG.
    """
    in_memory = isinstance(data, (Data, HeteroData))
    if kwargs.get('num_workers', 0) == 0 or not in_memory:
        return None
    callables = ('transform', 'transform_sampler_output')
    return any(kwargs.get(name) is not None for name in callables)


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
