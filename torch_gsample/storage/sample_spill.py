"""Stores the samples of future batches on disk.

A sample comes in, its position goes out; it is read back once, with the same
values.
"""

import pickle
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.sampler import HeteroSamplerOutput, SamplerOutput

from torch_gsample.samplers.output.attributes import (
    AttributedOutput,
    HeteroAttributedOutput,
    SampledAttributes,
)
from torch_gsample.storage.crc32c import crc32c
from torch_gsample.storage.format import malformed, round_up
from torch_gsample.storage.reading import page_aligned
from torch_gsample.storage.scratch_file import ScratchFile

#: Allowed classes in samples, in addition to tensors and Python's own.
_KNOWN = (
    SamplerOutput,
    HeteroSamplerOutput,
    AttributedOutput,
    HeteroAttributedOutput,
    SampledAttributes,
)
#: Alignment of the parts of a sample.
_ALIGNED = 64
_NAMES = type, FunctionType, BuiltinFunctionType


@dataclass
class Spilled:
    """The position of a sample; its parts are contiguous."""

    offset: int
    sizes: list[int]
    checksum: int


class _Pickler(pickle.Pickler):
    """Pickles plain samples; rejects values bound to this process."""

    def reducer_override(self, value: Any) -> Any:
        if type(value) is np.ndarray:
            array = np.ascontiguousarray(value)
            return _array, (
                pickle.PickleBuffer(array.data),
                array.dtype.str,
                value.shape,
            )
        if type(value) is Tensor:
            if value.requires_grad or value.device.type != 'cpu':
                raise pickle.PicklingError('a tensor of a graph or a GPU')
            return torch.from_numpy, (value.numpy(),)
        if type(value) in _KNOWN or isinstance(value, _NAMES):
            return NotImplemented
        if isinstance(value, pickle.PickleBuffer):
            return NotImplemented
        raise pickle.PicklingError(f'{type(value)} stays in memory')


def _array(data: Any, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    # An empty buffer has no address.
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.frombuffer(data, dtype).reshape(shape)


class SampleSpill:
    """Samples in an unnamed file.

    Args:
        folder (Path): A folder on the target disk.
    """

    def __init__(self, folder: Path):
        self._file, self.nbytes = ScratchFile(folder), 0

    def add(self, sample: Any) -> Spilled | None:
        """Writes a sample; returns None for one that must stay in memory.

        Raises:
            OSError: If it cannot be written.
        """
        buffers: list[pickle.PickleBuffer] = []
        stream = BytesIO()
        pickler = _Pickler(stream, 5, buffer_callback=buffers.append)
        try:
            pickler.dump(sample)
        except (pickle.PicklingError, AttributeError, RuntimeError, TypeError):
            return None
        parts = [stream.getbuffer(), *(buffer.raw() for buffer in buffers)]
        out, at = Spilled(self.nbytes, [*map(len, parts)], 0), self.nbytes
        for part in parts:
            out.checksum = crc32c(part, out.checksum)
            padding = bytes(-len(part) % _ALIGNED)
            for data in (part, padding):
                self._file.write(at, data)
                at += len(data)
        self.nbytes = at
        return out

    def take(self, spilled: Spilled) -> Any:
        """Returns a sample, and frees its space.

        Raises:
            OSError: If it cannot be read.
            ValueError: If it is damaged.
        """
        ends = np.cumsum(round_up(np.array(spilled.sizes), _ALIGNED))
        data = page_aligned(int(ends[-1]))
        self._file.read(spilled.offset, data)
        parts, found = np.split(data, ends[:-1]), 0
        for i, count in enumerate(spilled.sizes):
            parts[i] = parts[i][:count]
            found = crc32c(parts[i], found)
        if found != spilled.checksum:
            malformed(
                self._file.path,
                spilled.offset,
                f'the checksum of a sample in a scratch file ({data.size} '
                'bytes) is wrong',
                'SampleSpill',
            )
        self._file.free(spilled.offset, data.size)
        return pickle.loads(parts[0].data, buffers=parts[1:])

    def close(self) -> None:
        """Removes the file; further calls have no effect."""
        self._file.close()
