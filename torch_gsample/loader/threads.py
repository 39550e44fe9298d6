"""Limits the threads of torch's operators and ours that make batches."""

from collections.abc import Iterator
from typing import Any

import torch

_END = object()


def bound(num_threads: int | None) -> None:
    """Limits the number of threads of the calling thread, if not None."""
    if num_threads is not None and num_threads < torch.get_num_threads():
        torch.set_num_threads(num_threads)


def keep() -> None:
    """Makes new threads inherit the calling thread's limit.

    Torch's setter sets both the limit of its thread and the default of new
    ones.
    """
    torch.set_num_threads(torch.get_num_threads())


def bounded(batches: Iterator[Any], num_threads: int | None) -> Iterator[Any]:
    """Yields batches that the calling thread makes with a thread limit.

    Args:
        batches (Iterator): Makes each batch on demand.
        num_threads (int, optional): The limit.
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
