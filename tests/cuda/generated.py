"""Generated kernels, run by the emulator in the place of a GPU."""

import ctypes
import re
import subprocess
from contextlib import contextmanager
from types import SimpleNamespace
from unittest import mock

import torch

from tests.core.test_core import find_nvcc
from tests.cuda.emulated import CSRC, EMULATOR
from tests.cuda.simulated import held
from torch_gsample.codegen import cuda, run_cuda
from torch_gsample.codegen.cuda import PREAMBLE
from torch_gsample.codegen.nvrtc import _nvrtc

#: Starts kernel number I with arguments as of cuLaunchKernel.
LAUNCH = """
extern "C" __attribute__((visibility("default"))) int launch_I(
    uint64_t seed, unsigned blocks, unsigned threads, void** arguments) {
  using namespace gsample::kernel_I;
  gsample::emu::config().seed = seed;
  const auto call = [&] { gsample::kernel_I::NAME(ARGUMENTS); };
  using Call = decltype(call);
  try {
    gsample::emu::run_grid(
        "kernel_I", gsample::emu::Dim3(blocks), gsample::emu::Dim3(threads),
        false, [](void* c) { (*static_cast<Call*>(c))(); },
        const_cast<void*>(static_cast<const void*>(&call)));
  } catch (const gsample::emu::Error& error) {
    fprintf(stderr, "%s\\n", error.what());
    return 1;
  }
  return 0;
}
"""
INCLUDES = """\
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmath>
#include "cuda/portable.h"
"""
FLAGS = [f'-I{CSRC}', '-w', '-O0', '-g0']


def in_namespace(number, source):
    """The text of a kernel in a namespace, and what starts it."""
    body = source[source.index('#define GSAMPLE_INLINE') :]
    body = body.replace('#define GSAMPLE_INLINE __device__ inline\n', '')
    head = re.search(r'(gsample_\w+)\(\n(.*?)\) \{', body, re.S)
    name, arguments = head.groups()
    # `const float* __restrict__ x` is `const float*`.
    kinds = [
        item.replace('__restrict__', '').rsplit(' ', 1)[0].strip()
        for item in arguments.split(',')
    ]
    given = ', '.join(
        f'*static_cast<{kind}*>(arguments[{i}])'
        if '*' not in kind
        else f'*static_cast<{kind} const*>(arguments[{i}])'
        for i, kind in enumerate(kinds)
    )
    launch = LAUNCH.replace('_I', f'_{number}').replace('NAME', name)
    scope = f'namespace gsample {{ namespace kernel_{number} {{\n'
    return f'{scope}{body}}} }}\n{launch.replace("ARGUMENTS", given)}'


def merged(sources):
    """One text with all kernels, which are numbered."""
    parts = [PREAMBLE]
    for i, source in enumerate(dict.fromkeys(sources)):
        body = source.removeprefix(PREAMBLE)
        assert body != source
        body = re.sub(r'gsample_kernel\(', f'gsample_{i}(', body)
        parts.append(f'namespace kernel_{i} {{\n{body}}}')
    return '\n'.join(parts)


ARCHS = 'sm_75', 'sm_80', 'sm_90'


def assert_nvcc_compiles(sources, folder):
    """As device code; it warns of nothing."""
    path = folder / 'kernels.cu'
    path.write_text(merged(sources))
    nvcc = find_nvcc()
    assert nvcc is not None, 'nvcc was not found: install the CUDA toolkit'
    command = [nvcc, '-std=c++17', '-Werror', 'all-warnings']
    command += ['-diag-suppress', '177', '-ptx', path, '-o', f'{path}.ptx']
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = (folder / 'kernels.cu.ptx').read_text()
    assert text.count('.entry') == len(set(sources))


def assert_nvrtc_compiles(sources, arch):
    """As machine code, which has all kernels: for the oldest GPU each one.

    Newer ones have all that it has.
    """
    sources = list(dict.fromkeys(sources))
    if arch != ARCHS[0]:
        sources = sources[::4]
    image = _nvrtc().compile(merged(sources), arch)
    names = set(re.findall(rb'\.text\.(gsample_\d+)\0', image))
    assert len(names) == len(sources)


class Kernels:
    """A library of kernels, by their texts."""

    def __init__(self, builder, folder, sources):
        self.sources = list(dict.fromkeys(sources))
        texts = [
            in_namespace(i, source).replace('extern "C" __global__', 'static')
            for i, source in enumerate(self.sources)
        ]
        path = folder / 'kernels.cpp'
        define = '#define GSAMPLE_INLINE inline\n'
        path.write_text(INCLUDES + define + '\n'.join(texts))
        objects = builder.compile(EMULATOR) + builder.compile([path], FLAGS)
        built = builder.link(objects, f'{folder.name}.so', flags=['-shared'])
        self._library = ctypes.CDLL(str(built))
        self.seed, self.launches = 1, 0

    def put(self, tree):
        """Nothing: the emulator runs on tensors of the CPU."""
        return tree

    def assert_same(self, got, want, source=''):
        """The same bits: functions of CUDA's library are the CPU's here."""
        assert torch.equal(got.nan_to_num(7), want.nan_to_num(7))

    def loaded(self, source, device):
        return self.sources.index(source)

    def launch(self, device, function, shape, arguments, stream):
        values = [
            ctypes.c_int64(x)
            if isinstance(x, int)
            else ctypes.c_void_p(None if x is None else held(x).data_ptr())
            for x in arguments
        ]
        pointers = (ctypes.c_void_p * len(values))(
            *map(ctypes.addressof, values)
        )
        self.launches += 1
        self.last = arguments
        launch = getattr(self._library, f'launch_{function}')
        assert launch(ctypes.c_uint64(self.seed), *shape, pointers) == 0

    @contextmanager
    def running(self):
        """Kernels for a GPU run on tensors of the CPU."""
        stream = SimpleNamespace(cuda_stream=0)
        patches = {
            '_loaded': self.loaded,
            'driver': lambda: self,
            '_MOST_BLOCKS': 3,
            '_MOST_VERTEX_BLOCKS': 2,  # groups take several vertices
        }
        clear_kernels()
        with (
            mock.patch.multiple(run_cuda, **patches),
            mock.patch.object(cuda, '_EDGE_THREADS', 64),
            mock.patch('torch.cuda.current_stream', return_value=stream),
        ):
            yield self
        clear_kernels()


def clear_kernels():
    run_cuda._functions.clear()
