"""Loops over the edges of a vertex; nested loops would count pairs."""

import threading
from collections.abc import Iterable, Iterator
from typing import Any

from torch_gsample.vertex.frontend.values import Unsupported


class _Open(threading.local):
    """The open loops, by their enclosing aggregation."""

    def __init__(self) -> None:
        self.frames: list[list[object]] = [[]]


_open = _Open()


def one_edge(item: Any) -> Iterator[Any]:
    """Yields one symbol that represents all edges.

    Args:
        item (Any): The symbol.

    Raises:
        Unsupported: If the loop is inside another one, with no aggregation
            between the two. Loops that ``zip`` joins end in the order in which
            they began.
    """
    loop, frame = object(), _open.frames[-1]
    frame.append(loop)
    try:
        yield item
        if frame[0] is not loop:
            raise Unsupported(
                'a loop over edges is nested in another one: aggregate the '
                'inner loop'
            )
    finally:
        frame.remove(loop)


def consumed(values: Iterable[Any]) -> list[Any]:
    """Consumes the comprehension of an aggregation."""
    _open.frames.append([])
    try:
        return list(values)
    finally:
        _open.frames.pop()
