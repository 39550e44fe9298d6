"""Walks on a graph on disk whose edge ids are read on demand."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from torch_gsample.ops import Walks


class StoredWalks(Walks):
    """Walks as :class:`~torch_gsample.ops.Walks`.

    Args:
        nodes (torch.Tensor): int64 ``[num_seeds, length + 1]``.
        taken (torch.Tensor): int64 ``[num_seeds, length]``, -1 for a step
            without an edge.
        ids (StoredVector): Ids of the other steps, in order.
    """

    _ids: Any
    _read: Tensor | None

    def __new__(cls, nodes: Tensor, taken: Tensor, ids: Any) -> 'StoredWalks':
        """Creates walks whose edges are not read yet."""
        self = super().__new__(cls, nodes, taken)
        self._ids, self._read = ids, None
        return self

    @property
    def nodes(self) -> Tensor:
        """The nodes of each walk, int64 ``[num_seeds, length + 1]``."""
        return tuple.__getitem__(self, 0)

    @property
    def edges(self) -> Tensor:
        """The edge of each step, int64 ``[num_seeds, length]``."""
        if self._read is None:
            self._read = put(tuple.__getitem__(self, 1), self._ids)
        return self._read

    def __getitem__(self, index: Any) -> Any:
        return (self.nodes, self.edges)[index]

    def __iter__(self) -> Iterator[Any]:
        return iter((self.nodes, self.edges))


def put(taken: Tensor, ids: Any) -> Tensor:
    """Returns the edge ids of steps, -1 for steps without an edge."""
    out = torch.full_like(taken, -1)
    out[taken >= 0] = ids.read()
    return out
