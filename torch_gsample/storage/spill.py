"""Arrays that grow: in memory while there is room, then on disk.

Pieces come in, one tensor goes out. Arrays are files, of shared memory or of
the disk, so that workers of any kind open them by name.
"""

import contextlib
import errno
import json
import mmap
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

SHARED_MEMORY = Path('/dev/shm')
_MANIFEST = 'manifest.json'
_PIECE = 1 << 20  # items that are looked at together


class Folder:
    """Where the arrays of an epoch are: one folder in memory, one on disk.

    Args:
        disk (Path): The folder on disk; made.
        memory (Path, optional): The folder in shared memory; made.
        limit (int): The most bytes of arrays in memory.
    """

    def __init__(self, disk: Path, memory: Path | None, limit: int):
        self.disk, self.memory, self.left = disk, memory, limit
        self.arrays: dict[str, list[Any]] = {}
        self._maps: list[Any] = []
        for folder in (disk, memory):
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)

    def takes(self, size: int) -> bool:
        """Takes some bytes of memory, if there are as many."""
        if self.memory is None or size > self.left:
            return False
        if size > shutil.disk_usage(self.memory).free:
            return False
        self.left -= size
        return True

    def write(self, name: str, pieces: Iterable[Tensor]) -> Tensor:
        """Writes an array."""
        with self.writer(name) as writer:
            for piece in pieces:
                writer.append(piece)
        return self.open(name)

    @contextlib.contextmanager
    def writer(self, name: str) -> Iterator['ArrayWriter']:
        """Returns what an array is appended to."""
        writer = ArrayWriter(self, name)
        try:
            yield writer
        finally:
            writer.close()
        self.arrays[name] = [str(writer.path), writer.dtype, writer.size]

    def open(self, name: str) -> Tensor:
        """Maps a complete array."""
        path, dtype, size = self.arrays[name]
        array, data = open_array(Path(path), dtype, size)
        self._maps.append(data)
        return array

    def release(self) -> None:
        """Gives back the pages of arrays that were read.

        They stay where they are, but are not counted as this process's.
        """
        release_maps(self._maps)

    def finish(self, **facts: Any) -> None:
        """Says that all arrays are complete: now others may open them."""
        text = json.dumps({'arrays': self.arrays, **facts})
        made = self.disk / (_MANIFEST + '.tmp')
        made.write_text(text)
        os.replace(made, self.disk / _MANIFEST)

    def remove(self) -> None:
        """Removes the files. Who has mapped them keeps them."""
        for folder in (self.disk, self.memory):
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)


def read_manifest(disk: Path) -> dict[str, Any] | None:
    """Returns what :meth:`Folder.finish` said, if it did."""
    try:
        return json.loads((disk / _MANIFEST).read_text())
    except FileNotFoundError:
        return None


def stamp(disk: Path) -> tuple[int, int] | None:
    """Tells results of one name apart; None where there are none."""
    try:
        facts = os.stat(disk / _MANIFEST)
    except FileNotFoundError:
        return None
    return facts.st_ino, facts.st_mtime_ns


def open_array(path: Path, dtype: str, size: int) -> tuple[Tensor, Any]:
    """Maps an array; returns the map, too."""
    if size == 0:
        return torch.from_numpy(np.empty(0, dtype)), None
    with open(path, 'rb') as file:
        # A private map: nobody writes, but torch wants that it may.
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    return torch.from_numpy(np.frombuffer(data, dtype)[:size]), data


def release_maps(maps: Iterable[Any]) -> None:
    """Gives back the pages of maps, None among them."""
    for data in maps:
        if data is not None:
            data.madvise(mmap.MADV_DONTNEED)


class ArrayWriter:
    """Appends to an array of a :class:`Folder`."""

    def __init__(self, folder: Folder, name: str):
        self._folder, self._in_memory = folder, folder.memory is not None
        self.path = (folder.memory or folder.disk) / name
        self.dtype, self.size = '<i8', 0
        self._bytes = 0
        self._file = open(self.path, 'wb', buffering=0)  # noqa: SIM115

    def append(self, piece: Tensor) -> None:
        """Adds items; all pieces have one dtype."""
        values = np.ascontiguousarray(piece.numpy())
        self.dtype = values.dtype.str
        raw = values.view(np.uint8).data
        if self._in_memory and not self._folder.takes(len(raw)):
            self._move()
        self._write(raw)
        self.size += len(values)
        self._bytes += len(raw)

    def _write(self, raw: memoryview) -> None:
        while len(raw) > 0:
            try:
                raw = raw[self._file.write(raw) :]
            except OSError as error:
                if not (self._in_memory and error.errno == errno.ENOSPC):
                    error.filename = str(self.path)
                    raise
                self._move()

    def _move(self) -> None:
        """Goes on with the file on disk."""
        self._file.close()
        path = self._folder.disk / self.path.name
        shutil.copyfile(self.path, path)
        os.unlink(self.path)
        self._folder.left += self._bytes
        self.path, self._in_memory = path, False
        self._file = open(path, 'ab', buffering=0)  # noqa: SIM115

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def pieces_of(size: int, step: int = _PIECE) -> Iterator[slice]:
    """Cuts ``[0, size)`` in pieces.

    Example:
        >>> list(pieces_of(5, 3))
        [slice(0, 3, None), slice(3, 5, None)]
    """
    for first in range(0, size, step):
        yield slice(first, min(first + step, size))


def shared_folder(prefix: str) -> Path | None:
    """Makes a folder in shared memory, where the system has one."""
    try:
        return Path(tempfile.mkdtemp('', prefix, SHARED_MEMORY))
    except OSError:
        return None
