"""Walks on a graph on disk, the ids of whose edges are read when needed."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from torch_gsample.ops import Walks


class StoredWalks(Walks):
    """Walks as :class:`~torch_gsample.ops.Walks`.

    Args:
        nodes (torch.Tensor): int64 ``[num_seeds, length + 1]``.
        taken (torch.Tensor): int64 ``[num_seeds, length]``, -1 where a step
            took no edge.
        ids (StoredVector): Of the others, in order.
    """

    _ids: Any
    _read: Tensor | None

    def __new__(cls, nodes: Tensor, taken: Tensor, ids: Any) -> 'StoredWalks':
        """Makes walks whose edges are not read yet."""
        self = super().__new__(cls, nodes, taken)
        self._ids, self._read = ids, None
        return self

    @property
    def nodes(self) -> Tensor:
        """Where each walk was, int64 ``[num_seeds, length + 1]``."""
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
    """Returns the ids of the steps that took an edge, -1 for the others."""
    out = torch.full_like(taken, -1)
    out[taken >= 0] = ids.read()
    return out
