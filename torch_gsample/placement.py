"""Placement of a graph for a GPU: in its memory, or pinned on the host.

A GPU reads pinned memory itself (UVA): only what a sample touches crosses the
bus. Tensors come in, and tensors with the same values go out.
"""

import ctypes
import functools
import os
import threading
import weakref
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from torch_gsample import _library
from torch_gsample._library import has_cuda_kernel
from torch_gsample.locks import new_lock
from torch_gsample.torch_private import is_cuda_lost

GraphPlacement: TypeAlias = Literal['gpu', 'uva', 'auto']

_PLACEMENTS = ('gpu', 'uva', 'auto')
#: Share of a GPU's free memory that ``'auto'`` gives to a graph.
_AUTO_SHARE = 0.5


def read_device(name: str, device: torch.device | str) -> torch.device:
    """Returns a device to sample on, after checks.

    Args:
        name (str): Name of the caller, for messages.
        device (torch.device or str): ``'cpu'``, ``'cuda'`` or ``'cuda:<i>'``.

    Raises:
        RuntimeError: If there is no driver, or if this process was forked
            after CUDA was used.
        TypeError: If ``device`` is not a device.
        ValueError: If the device is of another type, the GPU does not exist,
            or torch or this package was built without CUDA.
    """
    if not isinstance(device, (torch.device, str)):
        raise TypeError(
            f"{name}: 'device' must be a device or its name (got {device!r})"
        )
    try:
        found = torch.device(device)
    except RuntimeError:
        found = None
    if found is None or found.type not in ('cpu', 'cuda'):
        raise ValueError(
            f"{name}: 'device' must be 'cpu', 'cuda' or 'cuda:<index>' "
            f'(got {str(device)!r})'
        )
    return found if found.type == 'cpu' else _check_cuda(name, found)


def _check_cuda(name: str, device: torch.device) -> torch.device:
    _check_built(name, device)
    check_process(name)
    if not torch.cuda.is_available():
        raise RuntimeError(
            f"{name}: 'device' is {device}, but no GPU with a driver was "
            f'found; see nvidia-smi and CUDA_VISIBLE_DEVICES'
        )
    count = torch.cuda.device_count()
    index = torch.cuda.current_device() if device.index is None else None
    device = device if index is None else torch.device('cuda', index)
    if device.index >= count:
        raise ValueError(
            f"{name}: 'device' is {device}, but there are {count} GPUs: its "
            f'index must be in [0, {count})'
        )
    return device


def _check_built(name: str, device: torch.device) -> None:
    if not has_cuda_kernel('sample_neighbors'):
        raise ValueError(
            f"{name}: 'device' is {device}, but this torch_gsample was built "
            f'without CUDA; build it with GSAMPLE_CUDA=1'
        )
    if not torch.backends.cuda.is_built():
        raise ValueError(
            f"{name}: 'device' is {device}, but this torch "
            f'({torch.__version__}) was built without CUDA'
        )


def check_process(name: str) -> None:
    """Checks that this process may use a GPU.

    Raises:
        RuntimeError: If it is a loader's worker, or was forked after CUDA was
            used.
    """
    if get_worker_info() is not None:
        raise RuntimeError(
            f'{name}: a sampler on a GPU must not be used in a worker of a '
            "DataLoader; set 'num_workers' to 0 (a thread prefetches "
            'the next batches)'
        )
    if is_cuda_lost():
        raise RuntimeError(
            f'{name}: CUDA cannot be used in a process that was forked after '
            f'CUDA was used (process {os.getpid()})'
        )


@dataclass(frozen=True)
class Placement:
    """The memory of a graph's tensors for sampling on a device.

    Args:
        device (torch.device): The device that samples.
        pinned (bool): Whether large tensors stay in pinned memory.
    """

    device: torch.device
    pinned: bool

    def place(self, tensor: Tensor) -> Tensor:
        """Returns a large tensor in its memory."""
        return pin(tensor) if self.pinned else tensor.to(self.device)

    def on_device(self, tensor: Tensor) -> Tensor:
        """Returns a tensor on the device, wherever large ones are."""
        return tensor.to(self.device)


def choose_placement(
    name: str, device: torch.device, kind: str, tensors: list[Tensor]
) -> Placement:
    """Chooses the memory of a graph for a GPU.

    Args:
        name (str): Name of the caller, for messages.
        device (torch.device): The GPU.
        kind (str): ``'gpu'``, ``'uva'``, or ``'auto'``: on the GPU if the
            graph fits in half of its free memory.
        tensors (List[torch.Tensor]): The large tensors of the graph.

    Raises:
        ValueError: If the kind is unknown.
    """
    check_kind(name, kind)
    if kind == 'auto':
        size = sum(t.numel() * t.element_size() for t in tensors)
        free, _ = torch.cuda.mem_get_info(device)
        kind = 'gpu' if size <= _AUTO_SHARE * free else 'uva'
    return Placement(device, kind == 'uva')


def check_kind(name: str, kind: str) -> None:
    """Checks the name of a placement.

    Raises:
        ValueError: If it is unknown.
    """
    if kind not in _PLACEMENTS:
        raise ValueError(
            f"{name}: 'graph_placement' must be one of {_PLACEMENTS} "
            f'(got {kind!r})'
        )


# Pinned memory ###############################################################


@dataclass
class _Registered:
    """Memory that was registered here, and how many tensors need it."""

    size: int
    driver: Any
    users: int = 0


_registered: dict[int, _Registered] = {}
_lock = new_lock(threading.RLock)  # a tensor may be released at any moment


def pin(tensor: Tensor) -> Tensor:
    """Returns a tensor in pinned memory, for access by GPUs.

    The tensor's memory is registered with CUDA in place, for the lifetime of
    the result and of the kernels that read it. If CUDA refuses, for example
    for a memory-mapped file, the result is a copy.

    Args:
        tensor (torch.Tensor): A tensor on the CPU; a tensor on a GPU is
            returned as it is.

    Raises:
        RuntimeError: If there is no GPU with a driver.
        ValueError: If this package was built without CUDA.

    Example:
        >>> import torch
        >>> pin(torch.arange(3))  # doctest: +SKIP
        tensor([0, 1, 2])
    """
    if tensor.is_cuda:
        return tensor
    _check_cuda('pin', torch.device('cuda'))
    tensor = tensor.contiguous().view(tensor.shape)  # an object of its own
    address, size = tensor.data_ptr(), tensor.numel() * tensor.element_size()
    with _lock:
        known = _registered.get(address)
        if size == 0 or (known is None and tensor.is_pinned()):
            return tensor
        if known is None:
            driver = _driver()
            if driver.gsample_register_host(address, size) != 0:
                return tensor.pin_memory()
            known = _registered[address] = _Registered(size, driver)
        elif known.size < size:
            return tensor.pin_memory()
        known.users += 1
    weakref.finalize(tensor, _release, address).atexit = False
    return tensor


def is_pinned(tensor: Tensor) -> bool:
    """Whether a tensor is in pinned memory.

    If this process has not used CUDA, the driver is not called: this would
    create a context, and fail in forked workers.
    """
    return torch.cuda.is_initialized() and tensor.is_pinned()


def is_registered(tensor: Tensor) -> bool:
    """Whether a tensor is in memory that :func:`pin` registered.

    torch's allocator does not know such memory, and would not keep it until an
    asynchronous copy of it is done.
    """
    if not _registered or not tensor.is_cpu:
        return False
    address = tensor.data_ptr()
    with _lock:
        return any(
            start <= address < start + known.size
            for start, known in _registered.items()
        )


def _release(address: int) -> None:
    with _lock:
        known = _registered[address]
        known.users -= 1
        if known.users == 0:
            del _registered[address]
            known.driver.gsample_unregister_host(address)


@functools.cache
def _driver() -> Any:
    """The functions of the extension that register memory."""
    library = ctypes.CDLL(str(_library.PATH))
    library.gsample_register_host.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    library.gsample_unregister_host.argtypes = [ctypes.c_void_p]
    return library
