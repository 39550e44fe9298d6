"""Temporary folders that no process leaves behind, however it ends.

A parent folder and a prefix come in; a new folder in it goes out, which its
process keeps locked. The system unlocks it when the process ends, so a folder
without a lock is a leftover: the next process that makes one there removes it.
"""

import hashlib
import os
import platform
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from torch_gsample.locks import HAS_OWNERS, lock_folder

_NAME = re.compile(r'\.([0-9a-f]{8})-([0-9a-f]{8})\.tmp')
_BOOT = Path('/proc/sys/kernel/random/boot_id')


class OwnedFolder:
    """A new folder, which lives until it is removed or its process ends.

    A process that is forked shares the lock.

    Args:
        parent (str or Path): The folder that it is made in; must exist.
        prefix (str): How its name starts.

    Raises:
        OSError: If it cannot be made.

    Example:
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     folder = OwnedFolder(parent, 'example-')
        ...     print(os.listdir(parent) == [folder.path.name])
        ...     folder.remove()
        True
    """

    def __init__(self, parent: str | Path, prefix: str):
        remove_leftovers(parent)
        suffix = '.' + '-'.join(_machine()) + '.tmp'
        self._process = os.getpid()
        self._lock: int | None = None
        while True:
            self.path = Path(tempfile.mkdtemp(suffix, prefix, parent))
            try:
                self._lock = _lock(self.path)
            except OSError:  # the file system has no locks: nobody sweeps
                return
            if self._lock is not None:
                return
            # Another process took it for a leftover before it was locked.

    def remove(self) -> None:
        """Removes the folder with all that is in it; once is enough.

        A process that was forked leaves it to its parent.
        """
        if self._process == os.getpid():
            shutil.rmtree(self.path, ignore_errors=True)
        self.release()

    def release(self) -> None:
        """Gives up the lock, and leaves the folder; once is enough."""
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


@contextmanager
def owned_folder(parent: str | Path, prefix: str) -> Iterator[Path]:
    """Makes an :class:`OwnedFolder` that is removed at the end."""
    folder = OwnedFolder(parent, prefix)
    try:
        yield folder.path
    finally:
        folder.remove()


def remove_leftovers(parent: str | Path) -> None:
    """Removes the owned folders of this user whose processes have ended.

    Those of other machines stay, as their locks may not be seen here.
    """
    with suppress(OSError):
        for name in os.listdir(parent):
            # A kernel cache and /tmp have thousands of other names.
            found = '.tmp' in name and _NAME.search(name)
            # The host outlives a boot, the boot is that of all containers.
            if found and (set(found.groups()) & set(_machine())):
                remove_leftover(os.path.join(parent, name))


def remove_leftover(path: str | Path) -> None:
    """Removes a folder of this user, unless a process keeps it locked."""
    with suppress(OSError):
        state = os.lstat(path)
        foreign = HAS_OWNERS and state.st_uid != os.getuid()
        if foreign or not stat.S_ISDIR(state.st_mode):
            return
        lock = _lock(path)
        if lock is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)


def _lock(path: str | Path) -> int | None:
    """Locks a folder; returns None if it has an owner, or is gone.

    Raises:
        OSError: If the file system has no locks.
    """
    lock = -1
    try:
        lock = lock_folder(path)
        if os.path.samestat(os.fstat(lock), os.stat(path)):
            lock, locked = -1, lock
            return locked
    except (BlockingIOError, FileNotFoundError):
        pass
    finally:
        if lock >= 0:
            os.close(lock)
    return None


@lru_cache(maxsize=1)
def _machine() -> tuple[str, str]:
    """Tags of the host and of its boot."""
    boot = _BOOT.read_bytes() if _BOOT.exists() else b''
    host = platform.node().encode()
    return _tag(b'host' + host), _tag(b'boot' + boot)


def _tag(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:8]
