"""Options of loaders, each with its name and type.

Options of their samplers are in :mod:`torch_gsample.options`.
"""

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from torch_gsample.loader.static_shapes import Shapes
from torch_gsample.options import ForwardedOptions, KeyOptions, WorkerOptions


class TorchOptions(WorkerOptions, total=False):
    """Options of :class:`torch.utils.data.DataLoader` for all loaders.

    A loader ignores ``dataset`` and ``collate_fn``, which Lightning passes
    when it recreates a loader.
    """

    dataset: Any
    batch_sampler: Iterable[list[int]] | None
    collate_fn: Any
    drop_last: bool


class LoaderOptions(TorchOptions, total=False):
    """Options of all loaders; see :class:`NeighborLoader`."""

    prefetch: int | None
    rank: int | None
    world_size: int | None


class EpochOptions(LoaderOptions, total=False):
    """Options of loaders without a graph sampler: also torch's sampler."""

    sampler: Iterable[int] | None
    seed: int | None


class SubgraphOptions(EpochOptions, total=False):
    """Options of loaders of subgraphs, whose batches have several seeds."""

    batch_size: int


class GraphOptions(LoaderOptions, total=False):
    """Options of PyG's ``NodeLoader`` and ``LinkLoader``."""

    batch_size: int
    custom_cls: Any
    input_id: Tensor | None
    widen_features: bool


class SamplerLoaderOptions(LoaderOptions, total=False):
    """Options of loaders with a graph sampler as an argument."""

    batch_size: int
    sampler: Iterable[int] | None
    static_shapes: Shapes
    progress: bool
    widen_features: bool


class HGTOptions(GraphOptions, KeyOptions, total=False):
    """Options of a :class:`HGTLoader`."""

    sampler: Iterable[int] | None
    input_time: Tensor | None


class NeighborLoaderOptions(GraphOptions, ForwardedOptions, total=False):
    """Options of loaders on a :class:`NeighborSampler`."""

    static_shapes: Shapes
    progress: bool
