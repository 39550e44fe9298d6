"""Calls of POSIX that Windows lacks, and what happens there instead.

Locks and handlers come in; on Windows there is no fork to handle, and no lock
of a folder. Nothing has run there.
"""

import os
from collections.abc import Callable

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: Windows' files have access lists, which :func:`os.stat` does not show.
HAS_OWNERS = hasattr(os, 'geteuid')


def at_fork(**handlers: Callable[[], object]) -> None:
    """Calls :func:`os.register_at_fork`, where processes fork."""
    if hasattr(os, 'register_at_fork'):
        os.register_at_fork(**handlers)


def lock_folder(path: str | os.PathLike[str]) -> int:
    """Opens and locks a folder; the system unlocks it with the process.

    Raises:
        BlockingIOError: If another process has locked it.
        OSError: If it cannot be opened, or has no locks.
    """
    if fcntl is None:
        raise OSError('folders have no locks on Windows')
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(path, flags)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock
