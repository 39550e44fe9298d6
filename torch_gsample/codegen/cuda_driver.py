"""Launches compiled kernels through CUDA's driver, loaded at run time.

Modules live as long as the process, in the primary context of their device:
the one that torch uses. Unloading one would have to wait for the GPU, which
may still run its kernels.
"""

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache

from torch import Tensor

from torch_gsample.codegen.build import BuildError

#: An argument of a kernel: a number, a tensor, or null.
Argument = int | Tensor | None


class Driver:
    """CUDA's driver.

    Args:
        path (str, optional): The library.

    Raises:
        BuildError: If it does not load, or has no device.
    """

    def __init__(self, path: str = 'libcuda.so.1'):
        try:
            self._library = ctypes.CDLL(path)
        except OSError as error:
            raise BuildError(f'the CUDA driver does not load: {error}') from (
                error
            )
        self._contexts: dict[int, ctypes.c_void_p] = {}
        self._call('cuInit', 0)

    def load(self, device: int, image: bytes, name: str) -> int:
        """Loads a kernel.

        Args:
            device (int): The number of the device.
            image (bytes): Machine code, of
                :func:`~torch_gsample.codegen.nvrtc.build_cubin`.
            name (str): Of its function.

        Raises:
            BuildError: If it does not load.
        """
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        with self._current(device):
            self._call('cuModuleLoadData', ctypes.byref(module), image)
            self._call(
                'cuModuleGetFunction',
                ctypes.byref(function),
                module,
                name.encode(),
            )
        assert function.value is not None
        return function.value

    def launch(
        self,
        device: int,
        function: int,
        shape: tuple[int, int],
        arguments: Sequence[Argument],
        stream: int,
    ) -> None:
        """Starts a kernel.

        Args:
            device (int): The number of the device.
            function (int): Of :meth:`load`.
            shape (Tuple[int, int]): Blocks, and threads of a block.
            arguments (Sequence): Numbers are int64.
            stream (int): The CUDA stream.

        Raises:
            BuildError: If it does not start.
        """
        values = [
            ctypes.c_void_p(x.data_ptr())
            if isinstance(x, Tensor)
            else ctypes.c_void_p()
            if x is None
            else ctypes.c_int64(x)
            for x in arguments
        ]
        pointers = (ctypes.c_void_p * len(values))(
            *(ctypes.addressof(value) for value in values)
        )
        blocks, threads = shape
        with self._current(device):
            self._call(
                'cuLaunchKernel',
                ctypes.c_void_p(function),
                *(blocks, 1, 1, threads, 1, 1, 0),
                *(ctypes.c_void_p(stream), pointers, None),
            )

    @contextmanager
    def _current(self, device: int) -> Iterator[None]:
        """Makes the primary context of a device current in this thread.

        The caller's current device may be another one; its context is restored
        afterwards.
        """
        if device not in self._contexts:
            handle, context = ctypes.c_int(), ctypes.c_void_p()
            self._call('cuDeviceGet', ctypes.byref(handle), device)
            self._call(
                'cuDevicePrimaryCtxRetain', ctypes.byref(context), handle
            )
            self._contexts[device] = context
        self._call('cuCtxPushCurrent_v2', self._contexts[device])
        try:
            yield
        finally:
            self._call('cuCtxPopCurrent_v2', ctypes.byref(ctypes.c_void_p()))

    def _call(self, name: str, *args: object) -> None:
        status = getattr(self._library, name)(*args)
        if status != 0:
            text = ctypes.c_char_p()
            self._library.cuGetErrorString(status, ctypes.byref(text))
            said = (text.value or b'unknown error').decode()
            raise BuildError(f'{name} failed: {said} ({status})')


@lru_cache(maxsize=1)
def driver() -> Driver:
    """Returns the driver of this machine.

    Raises:
        BuildError: If there is none.
    """
    return Driver()
