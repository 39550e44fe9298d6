"""Operators for the GPU that run on the CPU, by the emulator (csrc/emu).

They are in `torch.ops.gsample_emulated`, with the schemas of `torch.ops.gsample`,
and take CPU tensors.
"""

import ctypes
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

import torch_gsample.ops  # noqa: F401  (the schemas)

CSRC = Path(__file__).resolve().parents[2] / 'csrc'
GXX = os.environ.get('CXX', 'g++')
SANITIZERS = {
    'none': [],
    'address': ['-fsanitize=address,undefined', '-fno-sanitize-recover=all'],
    'thread': ['-fsanitize=thread'],
}


def compile_command(source, sanitizer):
    """How a file is compiled for the emulator, but for its output."""
    flags = ['-std=c++17', '-O1', '-g', '-fPIC', '-Wall', '-Wextra', '-Werror']
    flags += ['-fvisibility=hidden', '-ffp-contract=off', f'-I{CSRC}']
    # The emulator tells ThreadSanitizer about its fibers and must not be
    # watched by it, see csrc/emu/sanitizers.h.
    of_emulator = Path(source).parent.name == 'emu'
    if sanitizer == 'thread' and of_emulator:
        flags.append('-DGSAMPLE_TSAN')
    else:
        flags += SANITIZERS[sanitizer]
    return [GXX, *flags, '-x', 'c++', '-c', source]


def build(sources, output, flags=(), sanitizer='none', link=()):
    """Compiles sources in parallel and links them."""
    output = Path(output)
    objects = []
    for i, source in enumerate(sources):
        object_file = output.with_name(f'{output.name}.{i}.o')
        command = [*compile_command(source, sanitizer), *flags]
        objects.append([*command, '-o', object_file])
    with ThreadPoolExecutor(os.cpu_count()) as executor:
        list(executor.map(subprocess.check_call, objects))
    files = [command[-1] for command in objects]
    subprocess.check_call(
        [GXX, *SANITIZERS[sanitizer], *files, '-o', output, *link]
    )


def build_program(source, output, sanitizer='none'):
    """A program that runs kernels of its own."""
    emulator = [
        CSRC / 'emu' / f'{name}.cpp'
        for name in ('emulator', 'fiber', 'synchronize')
    ]
    build([source, *emulator], output, sanitizer=sanitizer)


def build_operators(output, sanitizer='none', csrc=CSRC):
    """The library of all operators that have a CUDA kernel."""
    torch_dir = Path(torch.__file__).parent
    operators = set((csrc / 'bind').glob('*_cuda.cpp'))
    operators -= {csrc / 'bind' / 'device_cuda.cpp'}
    kernels = set((csrc / 'cuda').glob('*.cu')) - {csrc / 'cuda' / 'device.cu'}
    build(
        sorted(operators | kernels | set((csrc / 'emu').glob('*.cpp'))),
        output,
        [
            '-DGSAMPLE_EMULATE',
            '-DTORCH_TARGET_VERSION=0x020b000000000000',
            f'-isystem{torch_dir / "include"}',
        ],
        sanitizer,
        ['-shared', f'-L{torch_dir / "lib"}', '-ltorch_cpu', '-lc10'],
    )


class Emulator:
    """The operators of a library, and the emulator that runs them."""

    def __init__(self, path):
        self._schemas = torch.library.Library('gsample_emulated', 'FRAGMENT')
        torch.ops.load_library(str(path))
        self._configure = ctypes.CDLL(str(path)).gsample_emulator
        self._configure.argtypes = [ctypes.c_uint64, *[ctypes.c_int] * 2]

    def operator(self, name):
        """The operator that has the schema of `torch.ops.gsample.<name>`."""
        if not hasattr(torch.ops.gsample_emulated, name):
            schema = str(getattr(torch.ops.gsample, name).default._schema)
            self._schemas.define(schema.removeprefix('gsample::'))
        return getattr(torch.ops.gsample_emulated, name)

    def configure(self, seed=1, blocks=3, yield_percent=20):
        """Chooses the order of execution, and the blocks of a launch."""
        self._configure(seed, blocks, yield_percent)
