"""The CUDA C++ text of a kernel of edges."""

from torch_gsample.codegen.body import Body
from torch_gsample.codegen.cpp import column_text, reduction_text
from torch_gsample.codegen.expression import CPP_TYPES
from torch_gsample.codegen.program import Program, Role

#: What every kernel for a GPU begins with. NVRTC has no headers.
PREAMBLE = """\
#if defined(__CUDACC_RTC__)
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
namespace std {
using ::abs;
using ::exp;
using ::log;
using ::pow;
using ::sqrt;
using ::tanh;
}  // namespace std
#else
#include <math.h>
#include <stdint.h>
#include <string.h>

#include <cmath>
#endif

#define GSAMPLE_INLINE __device__ inline
#ifndef GSAMPLE_SHARED
#define GSAMPLE_SHARED(Struct, name) __shared__ Struct name
#endif
"""

_WRAPPED = """\
GSAMPLE_INLINE int64_t wrapped(int64_t i, int64_t size) {
  return i < 0 ? i + size : i;
}
"""

_THREADS = """\
  const int64_t first = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
"""

_EDGES = """\
  for (int64_t e = first; e < edges; e += step)
    edge(e, 0, [&](T value, int f) { out[e * F + f] = value; });
}
"""

# A thread adds the edges of a column in order, as the CPU does.
_COLUMNS = """\
  if (first == 0 && cols > 0 && P[0] != 0)
    fault[1] = 1;
  for (int64_t col = first; col < cols; col += step) {
    if (P[col] < 0 || P[col] > P[col + 1] || P[col + 1] > edges) {
      fault[1] = 1;
      continue;
    }
COLUMN
  }
}
"""

# A thread adds the edges of a row in order: `perm` sorts edges by row, and
# keeps their order.
_ROWS = """\
  if (first == 0 && (starts[0] != 0 || starts[rows] != edges))
    fault[0] = 1;
  for (int64_t row = first; row < rows; row += step) {
    T total[F] = {};
    for (int64_t k = starts[row]; k < starts[row + 1]; ++k) {
      const int64_t e = perm[k];
      edge(e, COL, [&](T value, int f) { total[f] += value; });
    }
    for (int f = 0; f < F; ++f)
      out[row * F + f] = total[f];
  }
}
"""


def cuda_source(program: Program) -> str:
    """Returns the text of a kernel for a GPU.

    Its arguments are the numbers of edges and columns; of rows, with pointers
    to where the edges of a row start, the edges by row, and the column of
    each edge, if rows are reduced; a pointer to each operand, with its rows
    behind if it is gathered; pointers to the result and to two numbers of
    faults: whether an index is out of range, whether pointers descend.

    Args:
        program (Program): The program.
    """
    kind = CPP_TYPES[program.root.dtype]
    lines = [
        PREAMBLE,
        _WRAPPED,
        f'// {program.text}',
        'extern "C" __global__ void gsample_kernel(',
        ',\n'.join(f'    {x}' for x in _arguments(program)) + ') {',
        f'  using T = {kind};',
        f'  constexpr int F = {program.features if program.wide else 1};',
        '  const auto edge = [&](int64_t e, int64_t col, auto take) {',
        *_checks(program),
        *Body(program).lines(),
        '  };',
    ]
    text = '\n'.join(lines) + '\n' + reduction_text(program) + _THREADS
    if program.by is not None:
        col = 'column[e]' if needs_column(program) else '0'
        return text + _ROWS.replace('COL', col)
    if program.pointers is None:
        return text + _EDGES
    loops = _COLUMNS.replace('COLUMN', column_text(program))
    return text + loops.replace('P[', f'x{program.pointers}[')


def needs_column(program: Program) -> bool:
    """Whether a reduction of rows reads the column of each edge."""
    return any(operand.role == Role.COLUMN for operand in program.operands)


def _arguments(program: Program) -> list[str]:
    arguments = ['int64_t edges', 'int64_t cols']
    if program.by is not None:
        arguments.append('int64_t rows')
        for name in ('starts', 'perm', 'column'):
            arguments.append(f'const int64_t* __restrict__ {name}')
    for i, operand in enumerate(program.operands):
        kind = CPP_TYPES[operand.dtype]
        arguments.append(f'const {kind}* __restrict__ x{i}')
        if operand.role == Role.GATHER:
            arguments.append(f'int64_t n{i}')
    kind = CPP_TYPES[program.root.dtype]
    return [*arguments, f'{kind}* __restrict__ out', 'int* fault']


def _checks(program: Program) -> list[str]:
    """An edge whose index is out of range is left out."""
    lines = []
    for i, operand in enumerate(program.operands):
        if operand.role == Role.GATHER:
            assert operand.index is not None
            wraps = program.operands[operand.index].wraps
            index, low = f'x{operand.index}[e]', f'-n{i}' if wraps else '0'
            lines += [
                f'    if ({index} < {low} || {index} >= n{i}) {{',
                '      fault[0] = 1;',
                '      return;',
                '    }',
            ]
    return lines
