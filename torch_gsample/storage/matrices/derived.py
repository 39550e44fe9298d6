"""Caches values computed from a graph on disk in files next to it.

Files are named by a digest of the graph, so results of another or a replaced
graph are never used. A name and a function that computes a vector come in, the
vector goes out.
"""

import errno
import hashlib
import os
import struct
import warnings
import zlib
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from torch_gsample.owned_folder import OwnedFolder
from torch_gsample.storage.chunk_writer import sync
from torch_gsample.storage.format import RelationMeta
from torch_gsample.storage.new_file import NewFile
from torch_gsample.storage.scratch_file import FULL

#: magic, version, code of the dtype, number of items, CRC-32 of the items,
#: zero, and the digest of the graph and the name.
_HEADER = struct.Struct('<8sIIqII32s')
_MAGIC, _VERSION = b'gsDerive', 1
_DTYPES = [torch.int64, torch.int32, torch.float32, torch.float64]
_DTYPES += [torch.float16, torch.bfloat16]
#: Errors of a folder that is not writable, has no space, or was deleted.
_NOT_STORED = errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, *FULL


def fingerprint(relation: RelationMeta) -> str:
    """Returns a digest of the edges of a relation.

    It covers their part of ``meta.json``, which has their checksums.
    """
    digest = hashlib.sha256()
    for field in fields(relation):
        value = getattr(relation, field.name)
        digest.update(f'{field.name}='.encode())
        if isinstance(value, np.ndarray):
            digest.update(np.ascontiguousarray(value).tobytes())
        else:
            digest.update(repr(value).encode())
    return digest.hexdigest()


class DerivedFiles:
    """The vectors computed from the edges of a relation.

    If they cannot be written, as in a read-only folder, each process computes
    them.

    Args:
        path (Path): The folder of the graph.
        mark (str): The result of :func:`fingerprint`, an attribute.
    """

    def __init__(self, path: Path, mark: str):
        path = Path(path)
        self.folder = path.with_name(f'{path.name}.derived') / mark[:32]
        self.mark = mark

    def vector(self, name: str, compute: Callable[[], Tensor]) -> Tensor:
        """Returns a stored vector, or computes and stores it.

        A damaged file is computed again, with a warning.

        Args:
            name (str): Its name, part of the file name.
            compute (Callable): Computes it from the edges.
        """
        found = self._read(name)
        if found is None:
            found = compute()
            self._write(name, found)
        return found

    def _digest(self, name: str) -> bytes:
        return hashlib.sha256(f'{self.mark}/{name}'.encode()).digest()

    def _read(self, name: str) -> Tensor | None:
        path = self.folder / f'{name}.bin'
        try:
            raw = path.read_bytes()
        except OSError:
            return None
        out = self._parse(name, raw)
        if out is None:
            warnings.warn(
                f'ChunkedGraph: {path} is damaged: it is computed again',
                stacklevel=2,
            )
        return out

    def _parse(self, name: str, raw: bytes) -> Tensor | None:
        if len(raw) < _HEADER.size:
            return None
        magic, version, code, count, checksum, zero, digest = (
            _HEADER.unpack_from(raw)
        )
        known = (magic, version, zero) == (_MAGIC, _VERSION, 0)
        if not known or code >= len(_DTYPES) or digest != self._digest(name):
            return None
        data, dtype = memoryview(raw)[_HEADER.size :], _DTYPES[code]
        if count < 0 or count * dtype.itemsize != len(data):
            return None
        if zlib.crc32(data) != checksum:
            return None
        if count == 0:
            return torch.empty(0, dtype=dtype)
        return torch.frombuffer(bytearray(data), dtype=dtype)

    def _write(self, name: str, value: Tensor) -> None:
        data = value.contiguous().view(torch.uint8).numpy().data
        header = _HEADER.pack(
            _MAGIC,
            _VERSION,
            _DTYPES.index(value.dtype),
            value.numel(),
            zlib.crc32(data),
            0,
            self._digest(name),
        )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            made = OwnedFolder(self.folder, '.write-')
        except OSError as error:
            if error.errno not in _NOT_STORED:
                raise
            return
        try:
            path = made.path / name
            with NewFile(path) as file:
                file.write(header)
                file.write(data)
                file.sync()
            os.replace(path, self.folder / f'{name}.bin')
            sync(self.folder)
        except OSError as error:
            if error.errno not in _NOT_STORED:
                raise
        finally:
            made.remove()
