"""The CUDA C++ text of a kernel."""

from torch_gsample.codegen.body import Body
from torch_gsample.codegen.cpp import column_text, reduction_text
from torch_gsample.codegen.expression import CPP_TYPES
from torch_gsample.codegen.program import Program, Role

_PREAMBLE = """\
#include <math.h>
#include <stdint.h>

#include <cmath>

__device__ inline int64_t wrapped(int64_t i, int64_t size) {
  return i < 0 ? i + size : i;
}
"""

_EDGES = """\
  const int64_t first = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t e = first; e < edges; e += step)
    edge(e, 0, [&](T value, int f) { out[e * F + f] = value; });
}
"""

# A thread adds the edges of a column in order, as the CPU does.
_COLUMNS = """\
  const int64_t first = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t col = first; col < cols; col += step) {
COLUMN
  }
}
"""


def cuda_source(program: Program) -> str:
    """Returns the text of a kernel for a GPU. Indices must be in range.

    Args:
        program (Program): The program.

    Raises:
        NotImplementedError: If rows are reduced: threads that add to one row
            would do it in any order.
    """
    if program.by is not None:
        raise NotImplementedError('rows are reduced in order on the CPU only')
    arguments = ['int64_t edges', 'int64_t cols']
    for i, operand in enumerate(program.operands):
        kind = CPP_TYPES[operand.dtype]
        arguments.append(f'const {kind}* __restrict__ x{i}')
        if operand.role == Role.GATHER:
            arguments.append(f'int64_t n{i}')
    kind = CPP_TYPES[program.root.dtype]
    arguments.append(f'{kind}* __restrict__ out')
    lines = [
        _PREAMBLE,
        f'// {program.text}',
        'extern "C" __global__ void gsample_kernel(',
        ',\n'.join(f'    {argument}' for argument in arguments) + ') {',
        f'  using T = {kind};',
        f'  constexpr int F = {program.features if program.wide else 1};',
        '  const auto edge = [&](int64_t e, int64_t col, auto take) {',
        *Body(program).lines(),
        '  };',
    ]
    loops = _EDGES
    if program.pointers is not None:
        loops = _COLUMNS.replace('COLUMN', column_text(program))
    return '\n'.join(lines) + '\n' + reduction_text(program) + loops
