"""A vector of all nodes that each batch may take and change.

A tensor comes in; copies of it go out whose pages are those of one file in
memory until they are written to. So a batch pays for the pages that it reads.
"""

import mmap
import os
import weakref

import torch
from torch import Tensor

#: Bytes of a vector that is copied in less time than it is mapped.
_SMALL = 1 << 17


class SharedVector:
    """A vector with cheap copies.

    Args:
        value (torch.Tensor): ``[n]``.

    Example:
        >>> vector = SharedVector(torch.zeros(100_000))
        >>> vector.copy().add_(1).sum(), vector.copy().sum()
        (tensor(100000.), tensor(0.))
    """

    def __init__(self, value: Tensor):
        self._value: Tensor | None = None
        self._dtype, self._size = value.dtype, value.nbytes
        if value.nbytes < _SMALL:
            self._value = value.clone()
            return
        fd = os.memfd_create('gsample-vector', os.MFD_CLOEXEC)
        weakref.finalize(self, os.close, fd)
        data = value.contiguous().view(torch.uint8).numpy().data
        done = 0
        while done < len(data):
            done += os.pwrite(fd, data[done:], done)
        self._fd = fd

    def copy(self) -> Tensor:
        """Returns a tensor of its own, ``[n]``.

        Raises:
            OSError: If there is no memory for it.
        """
        if self._value is not None:
            return self._value.clone()
        pages = mmap.mmap(
            self._fd,
            self._size,
            flags=mmap.MAP_PRIVATE,
            prot=mmap.PROT_READ | mmap.PROT_WRITE,
        )
        return torch.frombuffer(pages, dtype=self._dtype)
