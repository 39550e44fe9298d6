"""Forms of a graph for kernels, cached with its tensors."""

import weakref
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from torch_gsample.snapshot import Snapshot, add_keeper
from torch_gsample.torch_private import is_transformed


class _Cache:
    """Graphs cached by their tensors.

    A graph is freed with its tensors, and rebuilt if a
    :class:`~torch_gsample.snapshot.Snapshot` detects a change.
    """

    def __init__(self) -> None:
        self._known: dict[tuple, tuple[Snapshot, dict[tuple, Any]]] = {}

    def of(self, tensors: Sequence[Tensor]) -> dict[tuple, Any]:
        """Returns the cached properties of tensors."""
        key = tuple(map(id, tensors))
        if any(tensor.is_inference() for tensor in tensors):
            return {}  # inference tensors have no version
        found = self._known.get(key)
        if found is None:
            for tensor in tensors:
                weakref.finalize(tensor, self._known.pop, key, None)
        if found is None or not found[0].holds(tensors):
            found = self._known[key] = Snapshot(tensors), {}
        return found[1]

    def forget(self) -> None:
        """Drops all graphs."""
        for _, graphs in list(self._known.values()):
            graphs.clear()


_cache = add_keeper(_Cache())


def known_of(tensors: Sequence[Tensor]) -> dict[Any, Any]:
    """Returns what is cached with the tensors of a graph, by any key.

    Another thread may empty it at any time (:func:`torch_gsample.forget`).
    """
    return _cache.of(tensors)


def flipped(edge_index: Tensor) -> Tensor:
    """Returns edges in the other direction, cached with them."""
    known = known_of([edge_index])
    found: Tensor | None = known.get(_FLIPPED)
    if found is None:
        found = known[_FLIPPED] = edge_index.flip(0)
    return found


def has_loops(edges: Tensor) -> bool:
    """Returns whether an edge ends where it starts, cached with the edges."""
    known = known_of([edges])
    found: bool | None = known.get(_LOOPS)
    if found is None:
        found = known[_LOOPS] = bool((edges[0] == edges[1]).any())
    return found


#: The cache key of whether there are loops.
_LOOPS = ('loops',)


#: The cache key of the reversed edges.
_FLIPPED = ('flipped',)


def bounds_of(index: Tensor) -> tuple[int, int]:
    """Returns the least and the largest number, cached with the tensor.

    Reading them waits for a GPU. Tensors of a transform have no memory of
    their own to watch for changes: theirs are read at each call.
    """
    known = {} if is_transformed() else known_of([index])
    found: tuple[int, int] | None = known.get(_BOUNDS)
    if found is None:
        least, most = index.aminmax()
        found = known[_BOUNDS] = int(least), int(most)
    return found


#: The cache key of the bounds of numbers.
_BOUNDS = ('bounds',)
