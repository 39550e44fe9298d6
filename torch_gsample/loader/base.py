"""The additions of our loaders to PyG's: epochs, batch ids and prefetching."""

import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils.data import get_worker_info
from torch_geometric.data import Data, HeteroData

from torch_gsample.loader.adjacency import with_edge_index
from torch_gsample.loader.batch_plan import Planned
from torch_gsample.loader.batch_shape import BatchShape
from torch_gsample.loader.blocks import drop_stale
from torch_gsample.loader.check_arguments import check_options
from torch_gsample.loader.features import (
    filter_per_worker,
    join_features,
)
from torch_gsample.loader.gpu_batches import GpuBatches, check_loader
from torch_gsample.loader.look_ahead import (
    Group,
    is_forking,
    one_by_one,
    sample_group,
    search_look_ahead,
)
from torch_gsample.loader.narrow import check_narrow
from torch_gsample.loader.numbered_loader import NumberedLoader
from torch_gsample.loader.numbering import (
    NumberedBatches,
    OwnIndex,
    number_of,
)
from torch_gsample.loader.prefetch import (
    Feed,
    begin_samples,
    in_prefetch_thread,
    overlapped,
    prefetched,
)
from torch_gsample.loader.progress import shown
from torch_gsample.loader.read_ahead import plans_reads, read_ahead
from torch_gsample.loader.replay import Drawn, RecordedIndex, Replays
from torch_gsample.loader.sharding import integer
from torch_gsample.loader.static_shapes import StaticShapes
from torch_gsample.loader.threads import bounded
from torch_gsample.loader.watch import BatchWatch, Watched, check_process
from torch_gsample.rng import batch_scope
from torch_gsample.samplers.arguments import flag
from torch_gsample.samplers.base import KeyedSampler
from torch_gsample.samplers.counts import Counts
from torch_gsample.samplers.neighbor.graph_sampler import GraphSampler
from torch_gsample.samplers.neighbor.node_wise import NeighborSampler
from torch_gsample.samplers.program.gradients import (
    check_no_gradients,
    check_nothing_ahead,
    is_trainable,
)
from torch_gsample.samplers.program.sampler import ProgramSampler
from torch_gsample.torch_private import iterator_of, new_iterator, pins_memory

#: Batches prefetched by a thread without workers.
DEFAULT_PREFETCH = 2


class KeyedLoader(NumberedLoader):
    """The first base class of our loaders, before PyG's.

    Each iteration is an epoch, counted from 0 unless :meth:`set_epoch` sets
    it. The epoch and the position of a batch in it are the key of the batch's
    draws, for any worker or thread.

    Process ``rank`` of ``world_size`` gets every ``world_size``-th batch of
    the epoch, so all processes together get the batches of a single one: see
    ``docs/distributed.md``.
    """

    prefetch: int
    _feed: Feed | None = None
    _watch: BatchWatch
    #: The plan for batches of a plain graph.
    planned: Planned
    #: The process that created the latest iterator.
    _process: int = -1
    #: The sampler that may sample several batches in one run.
    _ahead_of: GraphSampler | None = None
    #: The draws of workers for a trainable sampler.
    _replays: Replays | None = None
    #: The batch builder of a sampler on a GPU.
    gpu_batches: GpuBatches | None = None
    #: Whether `collate_fn` makes whole batches; set by PyG's loaders.
    filter_per_worker: bool = True
    #: Whether it also makes samples for other loaders, as in PyG.
    _collates_samples: bool = False
    #: Whether to show a progress bar.
    progress: bool = False
    #: Whether to widen features to float32.
    widen_features: bool = False

    def _init_keyed(
        self, data: Any, sampler: Any, kwargs: dict[str, Any]
    ) -> None:
        """Reads the options of this class, before PyG's initialisation.

        A sampler that is not keyed may share torch's default generator with
        its caller, so it runs in the caller's thread.
        """
        name = type(self).__name__
        prefetch = kwargs.pop('prefetch', None)
        if isinstance(sampler, NeighborSampler) and sampler.placement:
            check_loader(name, data, kwargs)
            device = sampler.placement.device
            widen = bool(kwargs.get('widen_features'))
            self.gpu_batches = GpuBatches(with_edge_index(data), device, widen)
            self._ahead_of = sampler
        self.progress = flag(name, 'progress', kwargs.pop('progress', False))
        widen = kwargs.pop('widen_features', False)
        self.widen_features = flag(name, 'widen_features', widen)
        if self.widen_features:
            check_narrow(name, data)
        shapes = kwargs.pop('static_shapes', False)
        if isinstance(shapes, StaticShapes):
            self.static_shapes = shapes
        elif shapes is not False:
            self.static_shapes = StaticShapes(name, shapes, sampler)
        if isinstance(sampler, ProgramSampler) and is_trainable(sampler):
            check_nothing_ahead(name, sampler, prefetch, kwargs)
            prefetch = 0
            if kwargs.get('num_workers', 0) > 0:
                self._replays = Replays(name, sampler)
        elif isinstance(sampler, ProgramSampler) and sampler.compile:
            self._ahead_of = sampler
        if kwargs.get('filter_per_worker') is not None:
            per_worker = kwargs['filter_per_worker']
            flag(name, 'filter_per_worker', per_worker)
            self._collates_samples = not per_worker
        else:
            kwargs['filter_per_worker'] = filter_per_worker(data, kwargs)
        if self._replays is not None:
            kwargs['filter_per_worker'] = False
        seed: int | None = None
        if isinstance(sampler, KeyedSampler):
            seed = sampler.seed if sampler.is_seeded else None
        else:
            # It has no seed to share between processes.
            seed = None if kwargs.get('world_size') is None else 0
            prefetch = 0 if prefetch is None else prefetch
        kwargs['prefetch'] = prefetch
        self._init_epochs(seed, kwargs)

    def _init_epochs(self, seed: int | None, kwargs: dict[str, Any]) -> None:
        name = type(self).__name__
        prefetch = kwargs.pop('prefetch', None)
        if prefetch is None:
            prefetch = DEFAULT_PREFETCH
        self.prefetch = integer(name, 'prefetch', prefetch)
        if prefetch < 0:
            raise ValueError(
                f"{name}: 'prefetch' must not be negative (got {prefetch})"
            )
        check_options(name, kwargs)
        for own in ('dataset', 'collate_fn'):  # Lightning passes them again
            kwargs.pop(own, None)
        self._init_order(seed, kwargs)
        self.counts = Counts()
        self.planned = Planned()
        self._watch = BatchWatch(name, self.counts, self.static_shapes)

    @property
    def buckets(self) -> list[BatchShape]:
        """The static shapes of batches, known from the first pass on."""
        return [] if self.static_shapes is None else self.static_shapes.buckets

    def stats(self) -> dict[str, Any]:
        """Returns counts of delivered batches.

        They include all workers' batches, but not the time of phases in
        workers.

        Returns:
            Dict[str, Any]: ``batches``, ``nodes``, ``edges`` and
            ``duplicates`` as of :meth:`KeyedSampler.stats`, without padding;
            ``seconds``, including the time that the caller had to ``wait``.
            With static shapes also ``buckets``, with their ``nodes``,
            ``edges`` and uses (``batches``), and ``padding``: added ``nodes``
            and ``edges`` as a fraction of the real ones.
        """
        return self._watch.stats()

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        check = partial(check_process, type(self).__name__)
        if iterator_of(self) is not None:
            check(self._process)  # its workers persist
        self._process = os.getpid()
        waits = self.prefetch > 0 or self.num_workers > 0
        place = self._epochs.begin()
        batches: Any = Watched(
            self._begin_pass(place.epoch),
            self._watch.see,
            partial(check, self._process) if waits else None,
            place,
        )
        return shown(batches, self) if self.progress else batches

    def _begin_pass(self, epoch: int) -> Iterator[Any]:
        sampler = self._keyed_sampler()
        if sampler is not None:
            sampler.begin_pass(epoch, getattr(self, 'input_data', None))
        self._prepare_sampler()
        if plans_reads(self):
            ahead, pins = read_ahead(self, super().__iter__)
            if self.prefetch > 0:
                return self._iter_workers(ahead, pins)
            return map(self.filter_fn, ahead)
        if self.prefetch > 0 and self.num_workers == 0:
            return self._iter_prefetched()
        samples = super().__iter__()
        if self.prefetch == 0 or self.filter_per_worker:
            batches = self._joined(samples)
            threads = self._num_threads()
            return batches if threads is None else bounded(batches, threads)
        return self._iter_workers(samples, pins_memory(samples))

    def _get_iterator(self) -> Any:
        """Returns the iterator that a loader with persistent workers stores.

        It must not refer to the loader: in a cycle, the garbage collector
        closes the queues before it stops the workers, and torch waits 5
        seconds for each of them. PyG's iterator refers to its loader to join
        features; here each iteration joins them.
        """
        return new_iterator(self)

    def _joined(self, samples: Iterator[Any]) -> Iterator[Any]:
        """Joins the features to samples that have none yet."""
        if not self.filter_per_worker:
            samples = map(self.filter_fn, samples)
        return samples if self._ahead_of is None else one_by_one(samples)

    def _prepare_sampler(self) -> None:
        """Does the work once that each worker would repeat in each epoch."""
        if self.static_shapes is not None:
            self.static_shapes.prepare(self)
        if self._ahead_of is not None:
            search_look_ahead(self, self._ahead_of)
            if is_forking(self):
                self._ahead_of.prepare_workers()
        if self._replays is not None and is_forking(self):
            self._replays.prepare()

    def _iter_prefetched(self) -> Iterator[Any]:
        feed, made = begin_samples(self, super().__iter__)
        batches = self._joined(overlapped(self, feed, made))

        def most() -> int:
            # A thread makes the next group while one is used.
            ahead_of = self._ahead_of
            return max(self.prefetch, ahead_of.look_ahead if ahead_of else 1)

        gpu = self.gpu_batches
        if gpu is None:
            ahead = prefetched(
                feed, lambda: batches, most, self._num_threads()
            )
        else:
            make_batches = gpu.on_stream(lambda: batches)
            ahead = gpu.arrived(prefetched(feed, make_batches, most))
        return self._transformed(ahead)

    def _iter_workers(
        self, samples: Iterator[Any], pins: bool
    ) -> Iterator[Any]:
        """Joins the features to the workers' samples in a thread."""

        def make_batches() -> Iterator[Any]:
            for sample in one_by_one(feed):
                batch = self.filter_fn(sample)
                yield batch.pin_memory() if pins else batch

        feed = Feed(samples)
        ahead = prefetched(
            feed, make_batches, lambda: self.prefetch, self._num_threads()
        )
        return self._transformed(ahead)

    def _num_threads(self) -> int | None:
        """The sampler's maximum number of threads for a batch."""
        return getattr(self._graph_sampler(), 'num_threads', None)

    def _transformed(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Applies the transform in the caller's thread."""
        if self.transform is None:
            return batches
        return map(drop_stale, map(self.transform, batches))

    @property
    def transform(self) -> Any:
        """The transform of batches, run in the caller's thread as in PyG.

        It may use torch's default generator, like the caller.
        """
        own = self.__dict__.get('transform')  # where Lightning looks
        return None if in_prefetch_thread() else own

    @transform.setter
    def transform(self, transform: Any) -> None:
        self.__dict__['transform'] = transform

    @property
    def _index_sampler(self) -> Any:
        # Torch's loader reads batches of indices here.
        if self._feed is not None:
            return self._feed
        # The iterator stores this, so it must not refer to the loader.
        ahead = self._ahead_of
        sampler = self._keyed_sampler()
        return NumberedBatches(
            self._epochs,
            None if ahead is None else lambda: ahead.look_ahead,
            self.num_workers,
            None if sampler is None else sampler.hand_out,
            None if self._replays is None else self._replays.hand_out,
        )

    def filter_fn(self, out: Any) -> Any:
        """Makes a batch of a sample; returns batches unchanged."""
        if isinstance(out, (Data, HeteroData)):  # ZipLoader passes batches
            return out
        if isinstance(out, Group):  # one by one, on request
            return map(self.filter_fn, out.items())
        if isinstance(out, Drawn):
            assert self._replays is not None
            out = self._replays.attach(out, self._collate)
        filter_fn: Any = super().filter_fn  # type: ignore[misc]
        return join_features(self, filter_fn.__func__, out)

    def collate_fn(self, index: Any) -> Any:
        """Samples a batch, or a group of batches, with its id.

        It makes whole batches for other loaders, which call it with the items
        of ``dataset`` at the indices of ``batch_sampler`` or ``sampler``.

        Raises:
            ValueError: If a sample requires gradients and is drawn in a
                worker, which cannot send them, or prefetched.
        """
        if isinstance(index, RecordedIndex):
            assert self._replays is not None
            out: Any = self._replays.draw(index, self._collate)
        else:
            out = self._collate(index)
        ahead = in_prefetch_thread() and self._graph_sampler() is not None
        if ahead or get_worker_info() is not None:
            check_no_gradients(type(self).__name__, out)
        own = isinstance(index, (OwnIndex, Group))
        if own or self.filter_per_worker or self._collates_samples:
            return out
        return self.filter_fn(out)  # its caller will not

    def __call__(self, index: Any) -> Any:
        """Samples the batch of indices, like PyG's loaders."""
        out = self.collate_fn(index)
        return self.filter_fn(out) if self._collates_samples else out

    def _collate(self, index: Any) -> Any:
        if isinstance(index, Group):
            assert self._ahead_of is not None
            return sample_group(self, self._ahead_of, index)
        number = number_of(index)
        if number is None:
            self._warn_unnumbered()
            return self._make_sample(index)
        with batch_scope(*number):
            return self._make_sample(index)

    def _make_sample(self, index: Any) -> Any:
        if isinstance(index, list):
            # Takes half the time of torch's conversion of a list.
            index = torch.from_numpy(np.array(index, dtype=np.int64))
        collate: Any = super().collate_fn
        return collate(index)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == 'data' and 'planned' in self.__dict__:
            self.planned.forget()
        # A class attribute: a bound method would refer to the loader.
        if name != 'collate_fn' or value != self.collate_fn:
            super().__setattr__(name, value)
