"""Replaces whole folders while other processes read them.

A complete folder takes the name of another one in one step. Readers of the old
folder keep open files; opening further ones is an error.
"""

import ctypes
import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from torch_gsample.storage.format import META

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_Out = TypeVar('_Out')


def exchange(one: Path, other: Path) -> None:
    """Exchanges the names of two folders in one step.

    Raises:
        OSError: If the file system does not support it, or a folder is
            missing.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    paths = os.fsencode(one), os.fsencode(other)
    done = libc.renameat2(
        _AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE
    )
    if done != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(one), None, str(other))


def check_exchange(name: str, folder: Path) -> None:
    """Checks that the file system can exchange folders.

    Args:
        name (str): The caller, for the error.
        folder (Path): An empty folder.

    Raises:
        OSError: If it cannot.
    """
    trial = folder / 'one', folder / 'other'
    for path in trial:
        path.mkdir()
    try:
        exchange(*trial)
    except (AttributeError, OSError) as error:
        raise OSError(
            errno.EOPNOTSUPP,
            f'{name}: the file system cannot exchange folders '
            f"({error}): pass 'to'",
            str(folder.parent),
        ) from error
    for path in trial:
        path.rmdir()


def identity(folder: Path) -> tuple[int, int, int]:
    """Returns an identity of a graph's description.

    Raises:
        OSError: If there is no description.
    """
    facts = os.stat(folder / META)
    return facts.st_ino, facts.st_mtime_ns, facts.st_size


def read_whole(folder: Path, read: Callable[[], _Out]) -> _Out:
    """Reads a folder; repeats if it was replaced meanwhile.

    Args:
        folder (Path): The folder of a graph.
        read (Callable): Reads it, without arguments.

    Raises:
        OSError: If a file is missing or cannot be read.
        ValueError: If ``read`` raises it.
    """
    while True:
        before = identity(folder)
        try:
            out = read()
        except (OSError, ValueError):
            if identity(folder) == before:
                raise
        else:
            if identity(folder) == before:
                return out


def check_current(
    folder: Path, opened: tuple[int, int, int], generation: int
) -> None:
    """Checks that a folder still has the graph that was opened.

    Args:
        folder (Path): The folder.
        opened (Tuple[int, int, int]): Its :func:`identity` when opened.
        generation (int): The graph's generation, for copies of the folder.

    Raises:
        OSError: If the folder no longer describes a graph.
        RuntimeError: If it has another graph.
    """
    if identity(folder) == opened:
        return
    fields = json.loads((folder / META).read_bytes())
    if int(fields.get('generation', '0'), 16) != generation:
        raise RuntimeError(
            f'ChunkedGraph: {folder} was replaced since it was opened (see '
            'compact_tables): open it again'
        )
