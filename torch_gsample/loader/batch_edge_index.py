"""Edges that carry the blocks of their batch, for fused models."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling
from torch_geometric.data import Data, HeteroData

from torch_gsample.block import Block, Blocks
from torch_gsample.torch_private import (
    PLAIN_RESULTS,
    version_of,
    without_functorch,
)

#: The readers of marks; without readers, batches are not marked.
READERS: WeakSet[Any] = WeakSet()


class BatchBlocks:
    """The blocks of a batch, on each device of its edges.

    Args:
        blocks (Blocks): The blocks on the original device.
        device (torch.device): That device.
        num_nodes (int): The nodes of the batch, of all types.
    """

    def __init__(self, blocks: Blocks, device: torch.device, num_nodes: int):
        self._on, self.num_nodes = {device: blocks}, num_nodes

    def on(self, device: torch.device) -> Blocks:
        """Returns the blocks on a device, copied to it once."""
        if device not in self._on:
            blocks = next(iter(self._on.values()))
            self._on[device] = blocks.to(device)
        return self._on[device]


class BatchEdgeIndex(Tensor):
    """The edges of a batch (of one relation), with its blocks.

    Copies on any device and pickled ones keep the blocks. The edges of a mask,
    as of PyG's ``dropout_edge``, have blocks of their own. Other tensors
    computed from it are plain.
    """

    __torch_function__ = PLAIN_RESULTS  # type: ignore[assignment]
    #: The blocks of the batch.
    batch: BatchBlocks
    #: The relation; None if there is only one.
    edge_type: Any
    #: Its version counter when it was marked.
    version: int

    @staticmethod
    def of(edge_index: Tensor, batch: BatchBlocks, edge_type: Any) -> Any:
        """Wraps the edges of a batch."""
        if edge_index.is_inference():  # which would not count versions
            with torch.inference_mode(False):
                edge_index = edge_index.clone()
        out = edge_index.as_subclass(BatchEdgeIndex)
        out.batch, out.edge_type = batch, edge_type
        out.version = version_of(out)
        return out

    @property
    def is_known(self) -> bool:
        """Whether the blocks match: the edges were not changed."""
        return version_of(self) == self.version

    @property
    def plain(self) -> Tensor:
        """The same edges as a plain tensor, the cache key of layouts."""
        found = vars(self).get('_plain')
        if found is None or found.data_ptr() != self.data_ptr():
            with without_functorch():  # a transform's tensor ends with it
                found = self._plain = self.as_subclass(Tensor)
        return found

    def block(self, level: int) -> Block:
        """Returns the block of a layer that computes the nodes of a hop.

        Args:
            level (int): The hop; 0 is that of the seeds.
        """
        block = self.batch.on(self.device).level(level)
        return block if self.edge_type is None else block[self.edge_type]

    def __getitem__(self, index: Any) -> Any:
        out = super().__getitem__(index)
        if is_dynamo_compiling():  # compiled functions take plain edges
            return out
        if not self._is_mask(index) or not self.is_known:
            return out
        blocks = self.batch.on(self.device)
        blocks = blocks.masked(self.edge_type, out, index[1])
        batch = BatchBlocks(blocks, self.device, self.batch.num_nodes)
        return self.of(out, batch, self.edge_type)

    def _is_mask(self, index: Any) -> bool:
        """Whether an index is a mask of edges: `edge_index[:, mask]`."""
        if type(index) is not tuple or len(index) != 2:
            return False
        every, mask = index
        return (
            isinstance(mask, Tensor)
            and mask.dtype == torch.bool
            and mask.shape == self.shape[1:]
            and (every is Ellipsis or _is_every(every))
        )

    def _like(self, edge_index: Tensor) -> Any:
        if isinstance(edge_index, BatchEdgeIndex):
            return edge_index
        if edge_index.dtype != self.dtype:
            return edge_index
        return self.of(edge_index, self.batch, self.edge_type)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the edges on a device."""
        return self._like(super().to(*args, **kwargs))

    def cpu(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the edges in main memory."""
        return self._like(super().cpu(*args, **kwargs))

    def cuda(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the edges on a GPU."""
        return self._like(super().cuda(*args, **kwargs))

    def clone(self, *args: Any, **kwargs: Any) -> Any:
        """Returns a copy of the edges."""
        return self._like(super().clone(*args, **kwargs))

    def detach(self) -> Any:
        """Returns the edges."""
        return self._like(super().detach())

    def contiguous(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the edges in contiguous memory."""
        return self._like(super().contiguous(*args, **kwargs))

    def pin_memory(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the edges in pinned memory."""
        return self._like(super().pin_memory(*args, **kwargs))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        memo[id(self)] = out = self.clone()
        return out

    def __reduce_ex__(self, protocol: Any) -> Any:
        parts = self.plain, self.batch, self.edge_type
        return BatchEdgeIndex.of, parts


def _is_every(index: Any) -> bool:
    return type(index) is slice and index == slice(None)


def mark_batch(batch: Any) -> None:
    """Attaches blocks to the edges of a batch, if there are readers.

    Args:
        batch (Any): A batch of a loader.
    """
    if not READERS or not isinstance(batch, (Data, HeteroData)):
        return
    blocks = batch.get('blocks') if isinstance(batch, Data) else None
    if isinstance(batch, HeteroData):
        blocks = batch._global_store.get('blocks')
    if not isinstance(blocks, Blocks):
        return
    known: BatchBlocks | None = None
    for store in batch.edge_stores:
        edge_index = store.get('edge_index')
        if store._key in blocks.edges and type(edge_index) is Tensor:
            known = known or BatchBlocks(
                blocks, edge_index.device, batch.num_nodes or 0
            )
            key = store._key
            store.edge_index = BatchEdgeIndex.of(edge_index, known, key)


def marked_edges(*values: Any) -> Iterator[BatchEdgeIndex]:
    """Finds marked edges among the arguments of a model."""
    return (edges for edges in edges_of_batches(*values) if edges.is_known)


def marked_in(args: Any, kwargs: dict[str, Any]) -> BatchEdgeIndex | None:
    """Returns the first marked edges of a call.

    Args:
        args (Tuple): Its positional arguments.
        kwargs (Dict[str, Any]): Its keyword arguments.
    """
    values = (*args, *kwargs.values()) if kwargs else args
    for value in values:
        if type(value) is not Tensor:
            return next(marked_edges(*values), None)
    return None  # as fast as possible: a graph may be small


def edges_of_batches(*values: Any) -> Iterator[BatchEdgeIndex]:
    """Finds the edges of batches, also if they were changed since."""
    for value in values:
        if isinstance(value, Tensor):
            if isinstance(value, BatchEdgeIndex):
                yield value
        elif isinstance(value, dict):
            yield from edges_of_batches(*value.values())
        elif isinstance(value, (list, tuple)):
            yield from edges_of_batches(*value)
        elif isinstance(value, (Data, HeteroData)):
            yield from edges_of_batches(
                *(store.get('edge_index') for store in value.edge_stores)
            )


def plain_edges(value: Any) -> Any:
    """Returns an argument of a model with plain tensors as edges."""
    if isinstance(value, Tensor):
        return value.plain if isinstance(value, BatchEdgeIndex) else value
    if isinstance(value, dict):
        return {key: plain_edges(x) for key, x in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(plain_edges, value))
    if isinstance(value, (Data, HeteroData)):
        value = copy.copy(value)
        for store in value.edge_stores:
            if 'edge_index' in store:
                store.edge_index = plain_edges(store.edge_index)
    return value


class _Reader:
    """A reader of marks."""


@contextmanager
def reading_marks() -> Iterator[None]:
    """Lets loaders mark batches within a ``with`` statement."""
    reader = _Reader()
    READERS.add(reader)
    try:
        yield
    finally:
        READERS.discard(reader)
