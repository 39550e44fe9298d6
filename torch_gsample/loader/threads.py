"""Bounds the threads that make batches, of torch's operators and ours."""

from collections.abc import Iterator
from typing import Any

import torch

_END = object()


def bound(num_threads: int | None) -> None:
    """Bounds the threads that the calling one uses, if there is a bound."""
    if num_threads is not None and num_threads < torch.get_num_threads():
        torch.set_num_threads(num_threads)


def keep() -> None:
    """Lets new threads begin as the calling one, whatever another one bound.

    Torch sets the number of a thread and that of all to come together.
    """
    torch.set_num_threads(torch.get_num_threads())


def bounded(batches: Iterator[Any], num_threads: int | None) -> Iterator[Any]:
    """Yields batches that the calling thread makes with a bound on threads.

    Args:
        batches (Iterator): Makes a batch when it is asked.
        num_threads (int, optional): The bound.
    """
    while True:
        before = torch.get_num_threads()
        bound(num_threads)
        try:
            batch = next(batches, _END)
        finally:
            if torch.get_num_threads() != before:
                torch.set_num_threads(before)
        if batch is _END:
            return
        yield batch
