"""Locks that are free in a forked process, on systems with forks or without.

A thread of the parent may hold a lock during a fork. The child does not have
this thread, and would wait for it forever.
"""

import os
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

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


#: Whether files have owners and modes; Windows' have access lists.
HAS_OWNERS = hasattr(os, 'geteuid')


def at_fork(**handlers: Callable[[], object]) -> None:
    """Calls :func:`os.register_at_fork`, where processes fork."""
    if hasattr(os, 'register_at_fork'):
        os.register_at_fork(**handlers)


def lock_folder(path: str | os.PathLike[str]) -> int:
    """Opens and locks a folder; the system unlocks it with the process.

    Raises:
        BlockingIOError: If another process has locked it.
        OSError: If it cannot be opened, or the system has no such locks.
    """
    try:
        import fcntl
    except ImportError as error:
        raise OSError('folders have no locks on Windows') from error
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(path, flags)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock


at_fork(after_in_child=_free)
