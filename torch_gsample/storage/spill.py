"""Growing arrays, in memory up to a limit, then on disk.

Pieces come in, one tensor goes out. Arrays are unnamed files, in memory or on
disk, held open by the writer: the system frees them when it ends. Workers of
any kind open them by the writer's descriptors.
"""

import contextlib
import errno
import fcntl
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from torch import Tensor

from torch_gsample.storage.new_file import write_error
from torch_gsample.storage.spill_array import BLOCK, SpillArray

_MANIFEST = 'manifest.json'
_PIECE = 1 << 20  # items compared at a time
#: Errors of a system without memory files, or out of memory.
_NO_MEMORY = (errno.ENOSPC, errno.ENOMEM, errno.ENOSYS, errno.EPERM)
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


class Folder:
    """The arrays of an epoch, and a folder with their manifest.

    Args:
        path (Path): The folder; created. Arrays beyond the limit are on its
            disk.
        limit (int): The maximum bytes of arrays in memory.
    """

    def __init__(self, path: Path, limit: int):
        self.path, self.left = path, limit
        self.process = os.getpid()
        self.arrays: dict[str, dict[str, Any]] = {}
        self.files: dict[str, IO[bytes]] = {}
        self._open: list[SpillArray] = []
        path.mkdir(parents=True, exist_ok=True)

    def takes(self, size: int) -> bool:
        """Reserves bytes of memory, if available."""
        if size > self.left:
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
        """Returns a writer for an array."""
        writer = ArrayWriter(self, name)
        try:
            yield writer
        except BaseException:
            writer.close()
            raise
        self.arrays[name] = writer.finish()

    def open(self, name: str) -> Tensor:
        """Maps a complete array, and checks it."""
        array = SpillArray(self.arrays[name])
        array.check_all()
        self._open.append(array)
        return array.tensor

    def release(self) -> None:
        """Releases the pages of arrays that were read."""
        for array in self._open:
            array.release()

    def finish(self, **facts: Any) -> None:
        """Marks all arrays as complete, so others may open them."""
        text = json.dumps({'arrays': self.arrays, **facts})
        made = self.path / (_MANIFEST + '.tmp')
        made.write_text(text)
        os.replace(made, self.path / _MANIFEST)
        self._open.clear()

    def close(self) -> None:
        """Closes the files; existing mappings stay valid."""
        for file in self.files.values():
            file.close()
        self.files.clear()

    def remove(self) -> None:
        """Closes the files and removes the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.close()


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Returns the manifest from :meth:`Folder.finish`, if it exists."""
    try:
        return json.loads((folder / _MANIFEST).read_text())
    except FileNotFoundError:
        return None


def stamp(folder: Path) -> tuple[int, int] | None:
    """Distinguishes results of the same name; None if there are none."""
    try:
        facts = os.stat(folder / _MANIFEST)
    except FileNotFoundError:
        return None
    return facts.st_ino, facts.st_mtime_ns


class ArrayWriter:
    """Appends to an array of a :class:`Folder`."""

    def __init__(self, folder: Folder, name: str):
        self._folder, self._name = folder, name
        self._in_memory = True
        self._file: IO[bytes] | None = None  # created with the first item
        self._dtype, self._size = '<i8', 0
        self._bytes = 0  # bytes of memory reserved
        self._checksums: list[int] = []
        self._room = 0  # bytes missing in the last block

    def append(self, piece: Tensor) -> None:
        """Adds items; all pieces have the same dtype."""
        values = np.ascontiguousarray(piece.numpy())
        self._dtype = values.dtype.str
        raw = values.view(np.uint8).data
        if self._in_memory:
            if self._folder.takes(len(raw)):
                self._bytes += len(raw)
            else:
                self._move()
        self._write(raw)
        self._size += len(values)

    def _write(self, raw: memoryview) -> None:
        while len(raw) > 0:
            try:
                if self._file is None:
                    self._file = self._new_file()
                    # Registered first, so that a fork closes it.
                    self._folder.files[self._name] = self._file
                count = self._file.write(raw)
            except OSError as error:
                if self._in_memory and error.errno in _NO_MEMORY:
                    self._move()
                    continue
                path = self._folder.path / self._name
                at = 0 if self._file is None else self._file.tell()
                raise write_error(path, at, error.errno) from None
            if not self._in_memory:
                self._add_checksum(raw[:count])
            raw = raw[count:]

    def _new_file(self) -> IO[bytes]:
        if not self._in_memory:
            return tempfile.TemporaryFile(buffering=0, dir=self._folder.path)
        flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
        file = os.memfd_create(f'gsample-{self._name}', flags)
        return os.fdopen(file, 'w+b', buffering=0)

    def _add_checksum(self, raw: memoryview) -> None:
        while len(raw) > 0:
            if self._room == 0:
                self._checksums.append(0)
                self._room = BLOCK
            part = raw[: self._room]
            self._checksums[-1] = zlib.crc32(part, self._checksums[-1])
            self._room -= len(part)
            raw = raw[len(part) :]

    def _move(self) -> None:
        """Continues in a file on disk."""
        memory, self._file = self._file, None
        self._in_memory = False
        if memory is not None:
            memory.seek(0)
            while part := memory.read(BLOCK):
                self._write(memoryview(part))
            memory.close()
        self._folder.left += self._bytes
        self._bytes = 0

    def finish(self) -> dict[str, Any]:
        """Passes the file to the folder; returns how others open it."""
        facts: dict[str, Any] = {
            'name': str(self._folder.path / self._name),
            'dtype': self._dtype,
            'size': self._size,
            'checksums': None if self._in_memory else self._checksums,
        }
        if self._file is not None:
            if self._in_memory:
                fcntl.fcntl(self._file, fcntl.F_ADD_SEALS, _SEALS)
            state = os.fstat(self._file.fileno())
            facts['file'] = [state.st_dev, state.st_ino]
            facts['process'] = os.getpid()
            facts['descriptor'] = self._file.fileno()
        return facts

    def close(self) -> None:
        """Drops the array."""
        if self._file is not None:
            self._folder.files.pop(self._name).close()


def pieces_of(size: int, step: int = _PIECE) -> Iterator[slice]:
    """Cuts ``[0, size)`` into pieces.

    Example:
        >>> list(pieces_of(5, 3))
        [slice(0, 3, None), slice(3, 5, None)]
    """
    for first in range(0, size, step):
        yield slice(first, min(first + step, size))
