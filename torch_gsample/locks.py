"""Locks that are free in a forked process.

A thread of the parent may hold a lock during a fork. The child does not have
this thread, and would wait for it forever.
"""

import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from torch_gsample.posix import at_fork

_locks: WeakSet[Any] = WeakSet()


def new_lock(kind: Callable[[], Any] = threading.Lock) -> Any:
    """Returns a lock that a forked process finds free.

    What it guards must be valid at any moment: the thread that held it may
    have ended its work halfway.

    Args:
        kind (Callable, optional): Creates the lock.

    Example:
        >>> with new_lock() as is_held:
        ...     is_held
        True
    """
    lock = kind()
    _locks.add(lock)
    return lock


def _free() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()


at_fork(after_in_child=_free)
