"""Whether tensors changed since something was computed of them.

Tensors come in. What is cached of them is used again as long as they hold what
they held, and until a user calls :func:`forget`.
"""

import functools
import weakref
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from torch import Tensor

from torch_gsample.locks import new_lock
from torch_gsample.torch_private import version_of

#: Elements of a tensor that are compared, at most.
_ELEMENTS = 64


class Snapshot:
    """The contents of some tensors.

    Torch counts changes in place, but for those through ``.data`` and through
    NumPy arrays of the same memory. So, of tensors on the CPU, 64 elements
    that are spread over each are compared, too: all of a small tensor. A
    change of few others is not noticed, nor is one of this kind on a GPU:
    reading its memory would make each call wait for it.

    Args:
        tensors (Sequence[torch.Tensor]): They are not kept alive.
    """

    def __init__(self, tensors: Sequence[Tensor]):
        self._states = [_state(tensor) for tensor in tensors]
        read = [_elements(tensor) for tensor in tensors]
        self._elements = [
            (memory, positions, memory[positions].tobytes())
            for memory, positions in read
            if positions.size
        ]

    def holds(self, tensors: Sequence[Tensor]) -> bool:
        """Whether the same tensors hold the same, as far as is compared."""
        # Memory is read after this: it is there where the addresses are.
        return self._states == [_state(tensor) for tensor in tensors] and all(
            memory[positions].tobytes() == elements
            for memory, positions, elements in self._elements
        )


def _state(tensor: Tensor) -> tuple[int, int | None]:
    version = None if tensor.is_inference() else version_of(tensor)
    return tensor.data_ptr(), version


def _elements(tensor: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """The memory of a tensor as integers, and where elements of it are."""
    address, size = tensor.data_ptr(), tensor.element_size()
    if not tensor.is_cpu or address == 0:
        return np.empty(0), np.empty(0, np.int64)
    count = tensor.numel()
    span, positions = count, _spread(count)
    if not tensor.is_contiguous():
        index, positions = positions, np.zeros_like(positions)
        for length, stride in zip(
            reversed(tensor.shape), reversed(tensor.stride()), strict=True
        ):
            index, rest = np.divmod(index, max(length, 1))
            positions += rest * stride
        span = int(positions.max(initial=-1)) + 1
    return np.asarray(_Memory(address, size, span)), positions


class _Memory:
    """Memory, for NumPy: a ctypes array needs a type for each length.

    Args:
        address (int): The first byte.
        size (int): Bytes of an element.
        span (int): Elements.
    """

    def __init__(self, address: int, size: int, span: int):
        self.__array_interface__ = {
            'version': 3,
            'data': (address, True),
            'shape': (span,),
            'typestr': '<c16' if size == 16 else f'<u{size}',
        }


@functools.lru_cache
def _spread(count: int) -> np.ndarray:
    """Numbers below a count: one of each of its 64ths, at no fixed distance.

    Changes of each second element, or of a column, are seen as others are.
    """
    if count <= _ELEMENTS:
        return np.arange(count)
    part = np.arange(_ELEMENTS)
    return ((part + part * 0.618034 % 1) * (count / _ELEMENTS)).astype(int)


# Forgetting ##################################################################


class Keeper(Protocol):
    """A cache of values that were computed of tensors."""

    def forget(self) -> None:
        """Drops them."""


_Keeper = TypeVar('_Keeper', bound=Keeper)
_keepers: weakref.WeakSet[Any] = weakref.WeakSet()
_lock = new_lock()


def add_keeper(keeper: _Keeper) -> _Keeper:
    """Makes :func:`forget` reach an object, as long as it lives."""
    with _lock:
        _keepers.add(keeper)
    return keeper


def forget() -> None:
    """Drops all cached values computed from tensors.

    Compiled programs and fused layers recompute them at their next call. Call
    it after in-place changes that cannot be detected: of few elements, or on a
    GPU, through ``.data`` or another library's view of the memory. Other
    processes, such as a loader's workers, have their own caches.

    Example:
        >>> import torch_gsample
        >>> torch_gsample.forget()
    """
    with _lock:
        keepers = list(_keepers)
    for keeper in keepers:
        keeper.forget()
