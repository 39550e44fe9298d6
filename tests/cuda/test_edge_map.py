"""Generated CUDA kernels, run by the emulator, against the CPU's."""

import ctypes

import pytest
import torch

from tests.codegen.edges import SHAPES, edges, fused
from tests.codegen.test_expressions import ALL
from tests.cuda.emulated import CSRC, EMULATOR
from torch_gsample.codegen.cuda import cuda_source
from torch_gsample.codegen.expression import CPP_TYPES
from torch_gsample.codegen.kernel import EdgeKernel
from torch_gsample.codegen.program import Role

#: Starts kernel number I with tensors in place of its arguments.
LAUNCH = """
extern "C" __attribute__((visibility("default"))) void launch_I(
    uint64_t seed, int64_t edges, int64_t cols, void* const* data,
    const int64_t* rows, void* out) {
  (void)data, (void)rows;
  gsample::emu::config().seed = seed;
  const auto call = [&] { kernel_I::gsample_kernel(ARGUMENTS); };
  using Call = decltype(call);
  gsample::emu::run_grid(
      "kernel_I", gsample::emu::Dim3(3), gsample::emu::Dim3(64), false,
      [](void* c) { (*static_cast<Call*>(c))(); },
      const_cast<void*>(static_cast<const void*>(&call)));
}
"""
INCLUDES = '#include <math.h>\n#include <cmath>\n#include "emu/emulator.h"\n'


def calls(monkeypatch, name, shape):
    """The programs of a function of edges, their operands and results."""
    found = []
    run = EdgeKernel.run

    def spy(self, *operands, num_rows=0):
        out = run(self, *operands, num_rows=num_rows)
        found.append((self.program, operands, out))
        return out

    e = edges(shape, torch.float32)
    with monkeypatch.context() as patched, torch.no_grad():
        patched.setattr(EdgeKernel, 'run', spy)
        fused(ALL[name], e)(*e.inputs)
    # Rows are reduced on the CPU only.
    return [call for call in found if call[0].by is None]


def source(number, program):
    """The text of a kernel in a namespace of its own, and what starts it."""
    text = cuda_source(program)
    body = text[text.index('__device__') :].replace('extern "C" ', '')
    arguments = ['edges', 'cols']
    for i, operand in enumerate(program.operands):
        kind = CPP_TYPES[operand.dtype]
        arguments.append(f'static_cast<const {kind}*>(data[{i}])')
        if operand.role == Role.GATHER:
            arguments.append(f'rows[{i}]')
    kind = CPP_TYPES[program.root.dtype]
    arguments.append(f'static_cast<{kind}*>(out)')
    launch = LAUNCH.replace('I', str(number), 1)
    launch = launch.replace('_I', f'_{number}')
    launch = launch.replace('ARGUMENTS', ', '.join(arguments))
    return f'namespace kernel_{number} {{\n{body}}}\n{launch}'


@pytest.fixture(scope='module')
def library(builder, tmp_path_factory):
    """All programs in one library, and the number of each."""
    with pytest.MonkeyPatch.context() as patch:
        programs = [c[0] for name in ALL for c in calls(patch, name, 'hub')]
    numbers = {p: i for i, p in enumerate(dict.fromkeys(programs))}
    texts = [source(i, program) for program, i in numbers.items()]
    path = tmp_path_factory.mktemp('edge_map') / 'kernels.cpp'
    path.write_text(INCLUDES + '\n'.join(texts))
    flags = [
        '-include',
        str(CSRC / 'emu' / 'cuda.h'),
        f'-I{CSRC}',
        '-w',
        '-O0',
        '-g0',
    ]
    objects = builder.compile(EMULATOR) + builder.compile([path], flags)
    built = builder.link(objects, 'edge_map.so', flags=['-shared'])
    return ctypes.CDLL(str(built)), numbers


def launch(library, number, seed, program, operands, out):
    data = [x.contiguous() for x in operands]
    pointers = (ctypes.c_void_p * len(data))(*[x.data_ptr() for x in data])
    rows = [x.shape[0] if x.dim() else 1 for x in data]
    sizes = (ctypes.c_int64 * len(data))(*rows)
    cols = 0
    edges = out.shape[0]
    if program.pointers is not None:
        cols, edges = (
            rows[program.pointers] - 1,
            int(data[program.pointers][-1]),
        )
    getattr(library, f'launch_{number}')(
        ctypes.c_uint64(seed),
        ctypes.c_int64(edges),
        ctypes.c_int64(cols),
        pointers,
        sizes,
        ctypes.c_void_p(out.data_ptr()),
    )


@pytest.mark.parametrize('shape', SHAPES)
@pytest.mark.parametrize('name', ALL)
def test_kernels_for_a_gpu_compute_what_the_cpu_does(
    monkeypatch, library, name, shape
):
    for program, operands, want in calls(monkeypatch, name, shape):
        number = library[1].get(program)
        assert number is not None
        for seed in (1, 2):
            out = torch.full_like(want, 77)
            launch(library[0], number, seed, program, operands, out)
            assert torch.equal(out.nan_to_num(7), want.nan_to_num(7))


def test_most_programs_have_a_kernel(library):
    assert len(library[1]) > 15
