"""Memory that tensors free stays with the process.

The C library of Linux gives each large block back to the system when it is
freed. A training step on the CPU takes as much again, and the system has to
fill each page with zeros before: up to a half of the step.
"""

import ctypes
import os
import platform
import re
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any

from torch_gsample.locks import at_fork, new_lock

#: Numbers of options in ``malloc.h``, as they are set to keep memory, and
#: glibc's own: the largest trim threshold that it chooses itself.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
_KEEPING = {_TRIM_THRESHOLD: (1 << 31) - 1, _MMAP_MAX: 0}
_USUAL = {_TRIM_THRESHOLD: 64 << 20, _MMAP_MAX: 1 << 16}
#: The interval of reads of available memory, and the limit of scarce memory.
_SECONDS, _SCARCE = 1.0, 0.1
_UNITS = {'': 1, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30, 'T': 1 << 40}


def bytes_of(value: int | str, name: str) -> int:
    """Returns a number of bytes.

    Args:
        value (int or str): The number, or a text of a number and a unit:
            nothing, ``KiB``, ``MiB``, ``GiB`` or ``TiB`` (or their first
            letter).
        name (str): The argument, for the error.

    Raises:
        ValueError: If it is something else.

    Example:
        >>> bytes_of('1.5MiB', 'memory'), bytes_of(512, 'memory')
        (1572864, 512)
    """
    match = re.fullmatch(r'(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?', str(value))
    if match is None:
        raise ValueError(
            f"{name} must be a number of bytes, such as '512MiB' (got "
            f'{value!r})'
        )
    return int(float(match[1]) * _UNITS[match[2]])


def resident_memory() -> int:
    """Returns the bytes of memory that this process has in use.

    Example:
        >>> resident_memory() > 1 << 20
        True
    """
    pages = int(Path('/proc/self/statm').read_text().split()[1])
    return pages * os.sysconf('SC_PAGE_SIZE')


def keep_memory(keep: bool = True) -> bool:
    """Reuses the memory of freed CPU tensors instead of returning it.

    It affects all allocations by ``malloc`` in the process, so it must be
    enabled explicitly: here, or by ``gsample run --keep-memory``. It helps
    most with tensors of tens of MiB, where a step spends up to half of its
    time on page faults. In return, the process keeps its peak memory, and up
    to twice as much due to fragmentation.

    Free memory is returned as long as less than a tenth of the memory of the
    system, or of the process's cgroup, is available; a check runs every
    second. Processes forked later return memory as usual.

    Args:
        keep (bool, optional): If false, returns free memory and restores the
            default.

    Returns:
        bool: Whether memory is kept, which requires glibc.

    Raises:
        TypeError: If ``keep`` is not a bool.

    Example:
        >>> import torch_gsample
        >>> torch_gsample.keep_memory()  # doctest: +SKIP
        True
        >>> torch_gsample.keep_memory(False)
        False
    """
    if type(keep) is not bool:
        raise TypeError(
            f"keep_memory: 'keep' must be a bool (got {type(keep).__name__})"
        )
    if _library() is None:
        return False
    with _lock:
        if not keep:
            _watch.stop()
            _set(_USUAL)
            _library().malloc_trim(0)
        elif _watch.thread is None:
            _set(_KEEPING)
            _watch.start()
    return keep


def give_back() -> None:
    """Gives free memory back to the system, unless it is kept."""
    if _library() is not None and _watch.thread is None:
        _library().malloc_trim(0)


@lru_cache
def _library() -> Any:
    """The C library, if it is glibc."""
    if platform.libc_ver()[0] != 'glibc':
        return None
    at_fork(after_in_child=_give_back_in_child)
    return ctypes.CDLL(None)


def _set(options: dict[int, int]) -> None:
    for name, value in options.items():
        _library().mallopt(name, value)


def _give_back_in_child() -> None:
    """A forked process has no thread that watches."""
    if _watch.thread is not None:
        _watch.thread = None
        _set(_USUAL)


class _Watch:
    """A thread that gives memory back while the system has little."""

    def __init__(self) -> None:
        self.thread: threading.Thread | None = None
        self._is_over = threading.Event()

    def start(self) -> None:
        """Begins to watch."""
        self._is_over = threading.Event()
        self.thread = threading.Thread(
            target=self._run, args=[self._is_over], daemon=True
        )
        self.thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._is_over.set()
        if self.thread is not None:
            self.thread.join()
            self.thread = None

    def _run(self, is_over: threading.Event) -> None:
        while not is_over.wait(_SECONDS):
            if is_scarce():
                _library().malloc_trim(0)


_lock, _watch = new_lock(), _Watch()


def is_scarce() -> bool:
    """Whether little memory is available, to the system or the cgroup."""
    known = _numbers('/proc/meminfo')
    total = known.get('MemTotal:', 0)
    if known.get('MemAvailable:', total) < _SCARCE * total:
        return True
    try:
        name = Path('/proc/self/cgroup').read_text().split('::')[1].strip()
        folder = f'/sys/fs/cgroup{name}'
        most = Path(folder, 'memory.max').read_text().strip()
        used = int(Path(folder, 'memory.current').read_text())
    except (OSError, IndexError, ValueError):
        return False  # no limit, or none that can be read
    if most == 'max':
        return False
    used -= _numbers(f'{folder}/memory.stat').get('inactive_file', 0)
    return int(most) - used < _SCARCE * int(most)


def _numbers(file: str) -> dict[str, int]:
    """Reads the lines of a file of the system: a name and a number."""
    try:
        lines = Path(file).read_text().splitlines()
    except OSError:
        return {}
    return {words[0]: int(words[1]) for words in map(str.split, lines)}
