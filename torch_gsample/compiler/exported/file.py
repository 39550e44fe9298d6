"""The file of an exported program: a JSON header, tensors and a checksum.

``GSPROGRM``, the length of the header (8 bytes, little-endian), the header,
the bytes of the tensors one after another, and the SHA-256 of everything
before. Nothing in it is executed or unpickled.
"""

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

MAGIC = b'GSPROGRM'
#: The version of the header's format.
VERSION = 1
_LENGTH = 8
_DIGEST = hashlib.sha256().digest_size
_DTYPES = {
    name: getattr(torch, name)
    for name in 'float64 float32 float16 bfloat16 int64 int32 int16 int8 '
    'uint8 bool'.split()
}


def pack(header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> bytes:
    """Returns the bytes of a file.

    Args:
        header (Dict[str, Any]): Plain values of JSON.
        tensors (Dict[str, torch.Tensor]): Tensors by name.

    Raises:
        ValueError: If the dtype or layout of a tensor is not supported.
    """
    table, blobs = {}, []
    for name, tensor in tensors.items():
        dtype = str(tensor.dtype).removeprefix('torch.')
        if dtype not in _DTYPES or tensor.layout != torch.strided:
            raise ValueError(
                f"export: '{name}' must be a dense tensor of "
                f'{sorted(_DTYPES)} (got {tensor.dtype}, {tensor.layout})'
            )
        data = tensor.detach().cpu().contiguous()
        blobs.append(data.reshape(-1).view(torch.uint8).numpy().tobytes())
        table[name] = [dtype, list(tensor.shape), tensor.requires_grad]
    text = json.dumps({**header, 'tensors': table}, allow_nan=False).encode()
    parts = [MAGIC, len(text).to_bytes(_LENGTH, 'little'), text, *blobs]
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return b''.join([*parts, digest.digest()])


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Returns the header and the tensors of a file.

    Raises:
        ValueError: If it is not such a file, or has changed.
    """
    start = len(MAGIC) + _LENGTH
    if data[: len(MAGIC)] != MAGIC:
        raise ValueError('it is not an exported program')
    if len(data) < start + _DIGEST:
        raise ValueError(f'it is truncated after {len(data)} bytes')
    body = memoryview(data)[:-_DIGEST]
    if hashlib.sha256(body).digest() != data[-_DIGEST:]:
        raise ValueError('its checksum is wrong: it is truncated or changed')
    end = start + int.from_bytes(data[len(MAGIC) : start], 'little')
    if end > len(body):
        raise ValueError(f'its header ends at {end}, beyond its end')
    header = json.loads(bytes(body[start:end]))
    if not isinstance(header, dict) or header.get('version') != VERSION:
        found = header.get('version') if isinstance(header, dict) else header
        raise ValueError(
            f'its format must be version {VERSION} (got {found!r}): export it '
            'again'
        )
    tensors = {}
    for name, (dtype, shape, grad) in header['tensors'].items():
        kind = _DTYPES[dtype]
        if any(type(n) is not int or n < 0 for n in shape):
            raise ValueError(f'{name!r} has the shape {shape}')
        size = math.prod(shape) * kind.itemsize
        if size > len(body) - end:
            raise ValueError(f'{name!r} ends beyond the end of the file')
        flat = np.frombuffer(body[end : end + size], np.uint8).copy()
        tensor = torch.from_numpy(flat).view(kind).reshape(shape)
        tensors[name] = tensor.requires_grad_(bool(grad))
        end += size
    if end != len(body):
        raise ValueError(f'{len(body) - end} bytes follow its tensors')
    return header, tensors


def write(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes a file atomically.

    Raises:
        OSError: If it cannot be written.
    """
    path = Path(path)
    part = path.with_name(f'.{path.name}.{os.getpid()}.part')
    try:
        part.write_bytes(data)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
