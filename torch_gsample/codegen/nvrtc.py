"""Compiles CUDA C++ with NVRTC on first use, and caches it on disk.

NVRTC is part of the CUDA toolkit and of torch's builds for CUDA. It is loaded
at run time, and needs no GPU.
"""

import ctypes
import glob
import hashlib
import os
import sys
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from torch_gsample.codegen.build import BuildError, kept, write
from torch_gsample.locks import new_lock

#: No contraction of a * b + c, as on the CPU; unmarked functions (lambdas) run
#: on the GPU.
OPTIONS = '--std=c++17', '--fmad=false', '-default-device', '-w'

_NAMES = 'libnvrtc.so.13', 'libnvrtc.so.12', 'libnvrtc.so'
_lock = new_lock()


def build_cubin(source: str, arch: str) -> BinaryIO:
    """Opens the checked machine code of a CUDA C++ source.

    Args:
        source (str): The source.
        arch (str): The architecture, as ``'sm_90'``.

    Raises:
        BuildError: If there is no NVRTC, or it fails; the error has its
            message.
    """
    nvrtc = _nvrtc()
    parts = nvrtc.identity, OPTIONS, arch, source
    key = hashlib.sha256(repr(parts).encode()).hexdigest()[:32]

    def make(path: Path) -> None:
        write(path, nvrtc.compile(source, arch))

    with _lock:  # per process; others may build the same
        return kept(f'{key}.cubin', make)


class Nvrtc:
    """The library.

    Args:
        path (str): Its path or name.

    Raises:
        OSError: If it does not load.
    """

    def __init__(self, path: str):
        # NVRTC loads this library by name, which may not be on the loader's
        # path.
        for builtins in _siblings(path):
            ctypes.CDLL(builtins)
        self._library = ctypes.CDLL(path)
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call('nvrtcVersion', ctypes.byref(major), ctypes.byref(minor))
        state = os.stat(path) if os.path.exists(path) else None
        #: The properties that determine compiled code.
        self.identity = (
            *(path, major.value, minor.value),
            None if state is None else (state.st_size, state.st_mtime_ns),
        )

    def compile(self, source: str, arch: str) -> bytes:
        """Returns the machine code of a source.

        Raises:
            BuildError: If it fails.
        """
        program = ctypes.c_void_p()
        given = source.encode(), b'kernel.cu', 0, None, None
        self._call('nvrtcCreateProgram', ctypes.byref(program), *given)
        try:
            options = [f'--gpu-architecture={arch}', *OPTIONS]
            array = (ctypes.c_char_p * len(options))(
                *(option.encode() for option in options)
            )
            status = self._library.nvrtcCompileProgram(
                program, len(options), array
            )
            if status != 0:
                log = self._text('ProgramLog', program).rstrip(b'\0')
                lines = log.decode(errors='replace').splitlines()
                said = next((x for x in lines if 'error' in x), None)
                said = said or self._error(status)
                raise BuildError(f'NVRTC failed for {arch}: {said}')
            return self._text('CUBIN', program)
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _text(self, name: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self._call(f'nvrtcGet{name}Size', program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self._call(f'nvrtcGet{name}', program, buffer)
        return buffer.raw

    def _call(self, name: str, *args: object) -> None:
        status = getattr(self._library, name)(*args)
        if status != 0:
            raise BuildError(f'{name} failed: {self._error(status)}')

    def _error(self, status: int) -> str:
        return self._library.nvrtcGetErrorString(status).decode()


def _siblings(path: str) -> list[str]:
    if not os.path.dirname(path):
        return []
    folder = glob.escape(os.path.dirname(path))
    found = glob.glob(f'{folder}/libnvrtc-builtins.so*')
    return sorted(found)


@lru_cache(maxsize=1)
def _nvrtc() -> Nvrtc:
    for path in _places():
        try:
            return Nvrtc(path)
        except (OSError, AttributeError):
            continue
    raise BuildError('NVRTC (libnvrtc.so) was not found')


def _places() -> list[str]:
    """Candidate paths of NVRTC: loaded, in a package, in the CUDA toolkit."""
    found = list(_NAMES)
    homes = [os.environ.get('CUDA_HOME'), '/usr/local/cuda']
    folders = [Path(home) / 'lib64' for home in homes if home]
    for base in sys.path:
        for name in ('cu13', 'cuda_nvrtc'):
            folders.append(Path(base) / 'nvidia' / name / 'lib')
    for folder in folders:
        found += [str(folder / name) for name in _NAMES]
    return [x for x in found if '/' not in x or os.path.exists(x)]
