"""Builds what the emulator (csrc/emu) runs, and loads its operators.

Operators for the GPU are in `torch.ops.gsample_emulated` then, with the
schemas of `torch.ops.gsample`, and take CPU tensors.
"""

import contextlib
import ctypes
import os
import subprocess
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from filelock import FileLock

import torch_gsample.ops  # noqa: F401  (the schemas)
from tests.built import CSRC, FOLDER, make, path_of

TORCH = Path(torch.__file__).parent
GXX = os.environ.get('CXX', 'g++')
SANITIZERS = {
    'none': [],
    'address': ['-fsanitize=address,undefined', '-fno-sanitize-recover=all'],
    'thread': ['-fsanitize=thread'],
}
FLAGS = ['-std=c++17', '-O1', '-g1', '-fPIC', '-fvisibility=hidden']
FLAGS += ['-ffp-contract=off', '-Wall', '-Wextra', '-Werror']
#: Of what starts kernels: it takes longer to compile than to run.
OPERATOR_FLAGS = [
    *('-O0', '-g0', '-DGSAMPLE_EMULATE'),
    '-DTORCH_TARGET_VERSION=0x020b000000000000',
    f'-isystem{TORCH / "include"}',
]
#: Headers that most sources include, precompiled: half of the time.
OPERATOR_HEADERS = """\
#include <torch/csrc/stable/library.h>
#include "bind/device_cuda.h"
"""
#: Headers of all kernels.
KERNEL_HEADERS = """\
#include "cuda/launch.cuh"
#include "cuda/portable.h"
"""
#: The emulator itself; device.cpp makes operators run on it.
EMULATOR = [
    CSRC / 'emu' / f'{name}.cpp'
    for name in ('emulator', 'fiber', 'synchronize')
]


class Builder:
    """Compiles every text once, for all processes and runs of a checkout.

    Args:
        folder (Path): Of what is linked.
    """

    def __init__(self, folder):
        self.folder = folder

    def compile(self, sources, flags=(), sanitizer='none', headers=''):
        """Object files of sources, made in parallel.

        Includes that most sources have are read once, if they are given.
        """
        jobs = []
        for source in sources:
            command = [*compiler(source, sanitizer), *flags, '-c']
            jobs.append((command, path_of(command, source), source))
        outputs = [output for _, output, _ in jobs]
        # The one that waits leaves its processor to the other's compilers.
        with FileLock(FOLDER / 'lock'):
            needed = [job for job in jobs if not job[1].exists()]
            if needed and headers:
                first = self.precompile(headers, needed[0][0])
                needed = [
                    ([*command, '-include', first], *job)
                    for command, *job in needed
                ]
            with ThreadPoolExecutor(os.cpu_count()) as executor:
                list(executor.map(lambda job: make(*job), needed))
        return outputs

    def precompile(self, headers, command):
        """A header that sources include first, as the compiler keeps it."""
        path = self.folder / 'headers.h'
        path.write_text(headers)
        kept = path.with_suffix('.h.gch')
        make([*command, f'-I{CSRC}', '-x', 'c++-header'], kept, path)
        return path

    def link(self, objects, name, sanitizer='none', flags=()):
        output = self.folder / f'{name}-{sanitizer}'
        command = [GXX, *SANITIZERS[sanitizer], *objects, '-o', output]
        subprocess.check_call([*command, *flags])
        return output

    def program(self, source, sanitizer='none', flags=()):
        """A program that runs kernels of its own."""
        objects = self.compile(EMULATOR, (), sanitizer)
        objects += self.compile([source], [*flags, f'-I{CSRC}'], sanitizer)
        return self.link(objects, source.stem, sanitizer)

    def operators(self, sanitizer='none'):
        """The library of all operators that have a CUDA kernel.

        Of it only the kernels are watched by a sanitizer.
        """
        kernels = set((CSRC / 'cuda').glob('*.cu'))
        kernels.remove(CSRC / 'cuda' / 'device.cu')
        bind = set((CSRC / 'bind').glob('*_cuda.cpp'))
        bind.remove(CSRC / 'bind' / 'device_cuda.cpp')
        bind.add(CSRC / 'emu' / 'device.cpp')
        objects = self.compile(
            sorted(bind), OPERATOR_FLAGS, headers=OPERATOR_HEADERS
        )
        objects += self.compile(
            sorted(kernels), (), sanitizer, headers=KERNEL_HEADERS
        )
        objects += self.compile(EMULATOR, (), sanitizer)
        link = ['-shared', f'-L{TORCH / "lib"}', '-ltorch_cpu', '-lc10']
        return self.link(objects, 'operators.so', sanitizer, link)


def compiler(source, sanitizer):
    """How a file is compiled; `.cu` is C++ to g++."""
    # The emulator tells ThreadSanitizer of its fibers, and must not be watched
    # itself, see csrc/emu/sanitizers.h.
    if sanitizer == 'thread' and source.parent == CSRC / 'emu':
        return [GXX, *FLAGS, '-DGSAMPLE_TSAN', '-x', 'c++']
    return [GXX, *FLAGS, *SANITIZERS[sanitizer], '-x', 'c++']


class Emulator:
    """The operators of a library, and the emulator that runs them."""

    def __init__(self, path):
        self.path = path
        self._schemas = torch.library.Library('gsample_emulated', 'FRAGMENT')
        torch.ops.load_library(str(path))
        self._library = ctypes.CDLL(str(path))
        self._configure = self._library.gsample_emulator
        self._configure.argtypes = [ctypes.c_uint64, *[ctypes.c_int] * 3]
        self._on_host = set()

    def operator(self, name):
        """The operator that has the schema of `torch.ops.gsample.<name>`."""
        if not hasattr(torch.ops.gsample_emulated, name):
            schema = str(getattr(torch.ops.gsample, name).default._schema)
            self._schemas.define(schema.removeprefix('gsample::'))
        return getattr(torch.ops.gsample_emulated, name)

    def configure(self, seed=1, blocks=3, threads=64, yield_percent=20):
        """Chooses the order of execution and the shape of launches."""
        self._configure(seed, blocks, threads, yield_percent)

    def allow_allocations(self, number, fault=None, free_bytes=0):
        """Lets the allocation after that number fail; -1: none fails.

        It fails for a lack of memory, or for a fault: CUDA's error, or an
        empty text for one that CUDA does not know, with some memory free.
        """
        self._library.gsample_emulator_memory(ctypes.c_int64(number))
        self._library.gsample_emulator_fault(
            None if fault is None else fault.encode(),
            ctypes.c_int64(free_bytes),
        )

    def sort_at_once(self, numbers):
        """Says how many numbers torch sorts at once."""
        self._library.gsample_emulator_sort(ctypes.c_int64(numbers))

    @contextlib.contextmanager
    def running(self, capturing=False):
        """Kernels of operators that are called in it run until `finish`."""
        self.finish(0, capturing)
        try:
            yield
        finally:
            self.finish(-1)

    def finish(self, running=0, capturing=False):
        """Lets all events pass but the last few, and no later one.

        With -1 later ones pass, too. A CUDA graph may record the stream.
        """
        self._library.gsample_emulator_events(
            ctypes.c_int64(running), int(capturing)
        )

    def on_host(self, tensor, pinned=True, hidden=True):
        """A copy of a tensor in memory of the host.

        What kernels see of pinned memory is at another address, and holds
        what the tensor holds now: nothing is left of that in the tensor, if
        it is to be hidden from the CPU.
        """
        tensor = tensor.clone()
        memory = ctypes.c_void_p(tensor.data_ptr())
        size = ctypes.c_size_t(tensor.nbytes)
        self._library.gsample_emulator_host(memory, size, int(pinned))
        self._on_host.add(tensor.data_ptr())
        weakref.finalize(tensor.untyped_storage(), self._forget, memory)
        return tensor.fill_(-1) if pinned and hidden else tensor

    def _forget(self, memory):
        self._on_host.discard(memory.value)
        self._library.gsample_emulator_forget(memory)

    def is_on_host(self, tensor):
        """Whether a tensor is one of :meth:`on_host`."""
        return tensor.data_ptr() in self._on_host
