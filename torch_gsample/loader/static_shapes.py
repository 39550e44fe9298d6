"""Batches of a few shapes, so that a model is compiled only a few times.

The batches of a loader are padded to one of its shapes, the *buckets*. The
main process chooses them from a few samples before the first epoch. So they do
not depend on the number of workers, nor does the bucket of a batch.
"""

import copy
import statistics
from collections.abc import Sequence
from itertools import chain
from typing import Any, TypeAlias

import torch

from torch_gsample.loader.batch_shape import SPARE, BatchShape
from torch_gsample.loader.numbering import OwnIndex
from torch_gsample.loader.padding import Padding
from torch_gsample.ops import _check
from torch_gsample.rng import BatchNumber
from torch_gsample.samplers.base import KeyedSampler

#: Number of samples from which buckets are chosen.
_PROBES = 16
#: Size of the largest bucket above the mean, in standard deviations. Of
#: normally distributed sizes, one in 30,000 is larger.
_DEVIATIONS = 4.0

#: The loader's option: whether, how many buckets, or the buckets.
Shapes: TypeAlias = bool | int | Sequence[BatchShape]


class StaticShapes:
    """The buckets of a loader.

    Args:
        name (str): The loader, for errors.
        value (bool or int or List[BatchShape]): Number of buckets to choose,
            :obj:`True` for one; or the buckets, from small to large.
        sampler (BaseSampler): The loader's sampler.

    Raises:
        TypeError: If ``value`` has another type.
        ValueError: If there are no buckets, or the sampler is not a
            :class:`KeyedSampler`, whose samples can be drawn in advance.
    """

    def __init__(self, name: str, value: Shapes, sampler: Any):
        self._name = name
        self._count = 0
        self.buckets: list[BatchShape] = []
        if not isinstance(sampler, KeyedSampler):
            raise ValueError(
                f"{name}: 'static_shapes' needs a KeyedSampler, whose draws "
                f'do not depend on their order (got '
                f'{type(sampler).__name__})'
            )
        if value is True:
            self._count = 1
        elif isinstance(value, Sequence) and not isinstance(value, str):
            self.buckets = _checked_buckets(name, value)
        else:
            self._count = _check.count(name, 'static_shapes', value)

    def prepare(self, loader: Any) -> None:
        """Chooses the buckets of a loader, before its first epoch.

        Args:
            loader (NodeLoader or LinkLoader): One of our loaders.

        Raises:
            ValueError: If the loader has no batch size.
        """
        if self.buckets:
            return
        kinds = [
            [self._probe(loader, i, index) for i, index in enumerate(batches)]
            for batches in _places(self._name, loader)
        ]
        first = kinds[0][0]
        for shape in chain(*kinds):
            self._check_parts(shape, first)
        columns = [zip(*(s.sizes() for s in k), strict=True) for k in kinds]
        facts = [
            [(statistics.fmean(c), statistics.pstdev(c)) for c in sizes]
            for sizes in zip(*columns, strict=True)
        ]
        for i in range(self._count):
            room = _DEVIATIONS * (i + 1) / self._count
            sizes = [max(mean + room * s for mean, s in f) for f in facts]
            bucket = first.with_sizes(sizes)
            if bucket not in self.buckets:
                self.buckets.append(bucket)

    def _probe(
        self, loader: Any, batch: int, index: torch.Tensor
    ) -> BatchShape:
        """Returns the shape of a sample drawn in advance."""
        bare = copy.copy(loader)
        bare.filter_per_worker = False
        # Epoch 0, so that a resumed run has the same buckets. A sampler that
        # reads an epoch at a time only has the epoch that begins.
        prepared = hasattr(loader._graph_sampler(), 'prepare_epoch')
        epoch = loader._epochs.upcoming()[0] if prepared else 0
        number = BatchNumber(epoch, batch)
        # A user's `bare.collate_fn` may be bound to the loader.
        out = type(bare).collate_fn(bare, OwnIndex(index.tolist(), number))
        if loader.transform_sampler_output:
            out = loader.transform_sampler_output(out)
        return BatchShape.of(out).with_spare()

    def state(self) -> list[dict[str, Any]]:
        """Returns the buckets as plain values."""
        return [
            {'nodes': dict(b.nodes), 'edges': dict(b.edges)}
            for b in self.buckets
        ]

    def load(self, state: list[dict[str, Any]]) -> None:
        """Sets the buckets of a saved state."""
        self.buckets = [BatchShape(b['nodes'], b['edges']) for b in state]

    def padding(self, out: Any, graph: Any) -> Padding:
        """Returns the padding of a sample's batch.

        Args:
            out (SamplerOutput or HeteroSamplerOutput): The sample.
            graph (Any): The graph of the loader.

        Raises:
            ValueError: If its types or its number of hops differ.
        """
        counts = BatchShape.of(out)
        return Padding(counts, self._room(counts.with_spare()), graph)

    def _room(self, needed: BatchShape) -> BatchShape:
        for bucket in self.buckets:
            self._check_parts(needed, bucket)
            if needed.fits(bucket):
                return bucket
        return self.buckets[-1].grown(needed)

    def _check_parts(self, needed: BatchShape, bucket: BatchShape) -> None:
        if not needed.same_parts(bucket):
            raise ValueError(
                f"{self._name}: 'static_shapes' need samples of the same "
                f'types and numbers of hops as {bucket} (got {needed})'
            )


def _checked_buckets(name: str, value: Sequence[Any]) -> list[BatchShape]:
    for bucket in value:
        if not isinstance(bucket, BatchShape):
            raise TypeError(
                f"{name}: 'static_shapes' must be True, a number of buckets "
                f'or a list of BatchShape (got {bucket!r} in it)'
            )
        for edge_type, counts in bucket.edges.items():
            ends = (None, None) if edge_type is None else edge_type[::2]
            seeds = [bucket.nodes.get(t, (0,))[0] for t in ends]
            if any(counts) and min(seeds) < SPARE:
                raise ValueError(
                    f"{name}: 'static_shapes' with edges {edge_type} must "
                    f'have room for {SPARE} seeds of both their types (got '
                    f'{bucket})'
                )
    if not value:
        raise ValueError(
            f"{name}: 'static_shapes' must have at least one bucket (got "
            f'{value!r})'
        )
    return list(value)


def _places(name: str, loader: Any) -> list[list[torch.Tensor]]:
    """Returns indices of full batches, and of ones as short as the last.

    Shuffled indices do not use torch's default generator.
    """
    size, total = loader.batch_size, len(loader.dataset)
    if size is None:
        raise ValueError(
            f"{name}: 'static_shapes' needs a 'batch_size', or with a batch "
            'sampler a list of buckets'
        )
    if total == 0:
        raise ValueError(f"{name}: 'static_shapes' needs seeds (got none)")
    if loader.is_sequential:
        order = torch.arange(total)
    else:
        order = torch.randperm(
            total, generator=torch.Generator().manual_seed(0)
        )
    full = total // size
    # Fewer seeds may find more new nodes at a hop, so both sizes count.
    last = order[full * size :]
    starts = [size * (i * full // _PROBES) for i in range(_PROBES)]
    out = [[order[start : start + size] for start in starts]] * (full > 0)
    if last.numel() > 0 and not (loader.drop_last and full > 0):
        out.append([last] * _PROBES)
    return out
