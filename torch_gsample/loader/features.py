"""Joins wide node features to a sample, in reused memory.

PyG gathers features into fresh memory for each batch, which the operating
system zeroes in more time than the copy takes. PyG gathers narrow attributes,
and those that are not plain tensors in main memory.
"""

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.sampler import HeteroSamplerOutput, SamplerOutput

from torch_gsample.loader.adjacency import add_adj_t
from torch_gsample.loader.blocks import add_blocks, drop_stale, knows_order
from torch_gsample.loader.narrow import Narrow, narrow_tensors
from torch_gsample.loader.padding import Padding
from torch_gsample.loader.read_ahead import store_plans_reads
from torch_gsample.ops import gather_rows
from torch_gsample.samplers.output.attributes import (
    AttributedOutput,
    HeteroAttributedOutput,
)

#: Minimum bytes of a row: a cache line.
_WIDE = 64


class WideFeatures:
    """The wide node features of a graph, removed from a shallow copy.

    Args:
        data (Data or HeteroData): The graph, which does not change.
        widen (bool, optional): Whether to widen features to float32; see
            :class:`~torch_gsample.loader.NeighborLoader`.

    Example:
        >>> data = Data(x=torch.ones(3, 16), y=torch.arange(3))
        >>> features = WideFeatures(data)
        >>> features.rest
        Data(x=[3, 0], y=[3])
        >>> features.join(features.rest, torch.tensor([2, 0])).x.shape
        torch.Size([2, 16])
    """

    #: The graph with empty tensors in their place, which preserves the order
    #: of attributes.
    rest: Data | HeteroData

    def __init__(self, data: Data | HeteroData, widen: bool = False):
        self.rest = copy.copy(data)
        self.features: list[tuple[Any, str, Tensor]] = []
        self._narrow: dict[tuple[Any, str], Narrow] = {}
        for store in self.rest.node_stores:
            if widen:
                for narrow in list(narrow_tensors(data, store)):
                    self._narrow[store._key, narrow.key] = narrow
                    narrow.take_scale(store)
                    self._take(store, narrow.key, narrow.value)
            for key, value in list(_wide_tensors(data, store)):
                self._take(store, key, value)

    def _take(self, store: Any, key: str, value: Tensor) -> None:
        store[key] = value.new_empty(value.shape[0], 0)
        self.features.append((store._key, key, value))

    def join(
        self,
        batch: Data | HeteroData,
        node: Tensor | dict[str, Tensor],
    ) -> Data | HeteroData:
        """Puts the features of the sampled nodes into a batch.

        Args:
            batch (Data or HeteroData): A sample of :attr:`rest`.
            node (torch.Tensor or Dict[str, torch.Tensor]): int64
                ``[num_sampled_nodes]`` (by type), the ids of its nodes.
        """
        for group, key, value in self.features:
            store = batch._store if group is None else batch[group]
            if store[key].numel() > 0:
                continue  # computed by the sampler
            ids = node[group] if isinstance(node, dict) else node
            narrow = self._narrow.get((group, key))
            store[key] = (
                gather_rows(value, ids)
                if narrow is None
                else narrow.gather(ids)
            )
        return batch


def _wide_tensors(data: Any, store: Any) -> Iterator[tuple[str, Tensor]]:
    for key, value in store.items():
        if (
            is_wide(value)
            and store.is_node_attr(key)
            and data.__cat_dim__(key, value, store) == 0
        ):
            yield key, value


def is_wide(value: Any) -> bool:
    """Whether :func:`gather_rows` gathers a tensor fastest."""
    return (
        _has_rows(value)
        and value.dim() > 1
        and value[:1].numel() * value.element_size() >= _WIDE
    )


def is_column(value: Any) -> bool:
    """Whether it gathers many rows fastest, of one number each."""
    return (
        _has_rows(value)
        and value[:1].numel() == 1
        and value.element_size() in (4, 8)
    )


def _has_rows(value: Any) -> bool:
    return (
        type(value) is Tensor
        and value.device.type == 'cpu'
        and value.dim() > 0
        and value.is_contiguous()
        and not value.requires_grad
    )


def join_features(loader: Any, filter_fn: Any, out: Any) -> Any:
    """Makes a batch of a sample, as ``filter_fn(loader, out)`` does.

    Attributes that the sampler computed are written to it, and it gets one of
    the loader's static shapes, before the loader's ``transform``.

    Args:
        loader (NodeLoader or LinkLoader): PyG's loader.
        filter_fn (Callable): Its function.
        out (SamplerOutput or HeteroSamplerOutput): The sample.
    """
    if loader.transform_sampler_output:
        out = loader.transform_sampler_output(out)
    shapes = loader.static_shapes
    padding = None if shapes is None else shapes.padding(out, loader.data)
    with loader.counts.phase('join_features'):
        batch = loader.planned.batch(loader, filter_fn, out)
        if batch is None:
            batch = _join(loader, filter_fn, out, padding)
    add_blocks(batch, knows_order(loader), loader.planned.reads)
    if padding is None:
        add_adj_t(batch, loader.adj_t_values)
    if loader.transform is None:
        return batch
    return drop_stale(loader.transform(batch))


def _join(
    loader: Any, filter_fn: Any, out: Any, padding: Padding | None
) -> Any:
    bare = copy.copy(loader)
    bare.transform = bare.transform_sampler_output = None
    features = _wide_features(bare, out)
    if features is not None:
        bare.data = features.rest
    if bare.gpu_batches is None:
        batch = filter_fn(bare, out)
    else:
        batch = bare.gpu_batches.make(bare, filter_fn, out)
    if isinstance(bare.data, tuple):  # PyG reads those of nodes from stores
        add = getattr(bare.data[0], 'add_edge_features', None)
        batch = batch if add is None else add(batch)
    if isinstance(out, (AttributedOutput, HeteroAttributedOutput)):
        out.attributes.write_to(batch)
    if padding is not None:
        with bare.counts.phase('pad_batch'):
            padding.apply(batch)
    if features is None:
        return batch
    if padding is None:
        return features.join(batch, out.node)
    features.join(batch, padding.spread(out.node))
    for group, key, _ in features.features:
        padding.clear(batch, group, key)
    return batch


def _wide_features(bare: Any, out: Any) -> WideFeatures | None:
    """Returns the features joined here instead of by PyG."""
    in_memory = isinstance(bare.data, (Data, HeteroData))
    in_worker = torch.utils.data.get_worker_info() is not None
    sampled = isinstance(out, (SamplerOutput, HeteroSamplerOutput))
    left_to_pyg = in_worker and not bare.widen_features
    if bare.gpu_batches is not None or left_to_pyg or not in_memory:
        return None  # PyG writes to the shared memory of a worker
    features = (
        WideFeatures(bare.data, bare.widen_features) if sampled else None
    )
    return features if features is not None and features.features else None


def filter_per_worker(data: Any, kwargs: dict[str, Any]) -> bool | None:
    """The default of ``filter_per_worker``.

    Sending features between processes costs more than gathering them. Workers
    gather if there is more parallel work: the user's callables, and stores
    that may be slow. None leaves it to PyG. A store that prefetches does so in
    one process.
    """
    if store_plans_reads(data):
        return False
    in_memory = isinstance(data, (Data, HeteroData))
    if kwargs.get('num_workers', 0) == 0 or not in_memory:
        return None
    callables = ('transform', 'transform_sampler_output')
    return any(kwargs.get(name) is not None for name in callables)
