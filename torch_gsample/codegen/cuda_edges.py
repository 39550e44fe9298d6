"""The CUDA C++ source of edge maps: a thread for an edge, column or row."""

from torch_gsample.codegen.cpp_edges import (
    column_text,
    edge_lines,
    reduction_lines,
)
from torch_gsample.codegen.edge_map import body_of, text_of
from torch_gsample.codegen.expression import CPP_TYPES
from torch_gsample.codegen.unit import (
    DESTINATION,
    PARAMETER,
    Unit,
    operands_of,
)

#: Conversion of a negative index.
WRAPPED = """\
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

# A thread adds the edges of a column in order, like the CPU.
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


def cuda_edge_map(unit: Unit) -> str:
    """Returns the source of an edge map for a GPU.

    Its arguments are the numbers of edges and columns; of rows, with pointers
    to where the edges of a row start, the edges by row, and the column of
    each edge, if rows are reduced; a pointer to each operand, followed by its
    rows if an index finds them; pointers to the result and to two error flags:
    an index is out of range, pointers descend.

    Args:
        unit (Unit): The edge map.
    """
    width = unit.width(unit.outputs[0].axes)
    body = [line for line in edge_lines(unit) if not line.startswith('#')]
    lines = [
        WRAPPED,
        f'// {text_of(unit)}',
        'extern "C" __global__ void gsample_kernel(',
        ',\n'.join(f'    {x}' for x in _arguments(unit)) + ') {',
        f'  using T = {CPP_TYPES[unit.dtype]};',
        f'  constexpr int F = {width};',
        '  const auto edge = [&](int64_t e, int64_t col, auto take) {',
        *_checks(unit),
        *body,
        '  };',
        *reduction_lines(unit),
    ]
    text = '\n'.join(lines) + '\n' + _THREADS
    if unit.by is not None:
        col = 'column[e]' if needs_column(unit) else '0'
        return text + _ROWS.replace('COL', col)
    if unit.pointers is None:
        return text + _EDGES
    loops = _COLUMNS.replace('COLUMN', column_text(unit))
    return text + loops.replace('P[', f'p{unit.pointers}[')


def needs_column(unit: Unit) -> bool:
    """Whether a reduction of rows reads the column of each edge."""
    used = operands_of([body_of(unit)])
    return any(unit.leaves[i].kind == DESTINATION for i in used)


def _arguments(unit: Unit) -> list[str]:
    arguments = ['int64_t edges', 'int64_t cols']
    if unit.by is not None:
        arguments.append('int64_t rows')
        for name in ('starts', 'perm', 'column'):
            arguments.append(f'const int64_t* __restrict__ {name}')
    for i, leaf in enumerate(unit.leaves):
        name = 'x' if leaf.kind == PARAMETER else 'p'
        kind = CPP_TYPES[leaf.dtype]
        arguments.append(f'const {kind}* __restrict__ {name}{i}')
        if leaf.index is not None:
            arguments.append(f'int64_t n{i}')
    kind = CPP_TYPES[unit.dtype]
    return [*arguments, f'{kind}* __restrict__ out', 'int* fault']


def _checks(unit: Unit) -> list[str]:
    """Writes range checks; an edge with an invalid index is skipped."""
    lines = []
    for i, leaf in enumerate(unit.leaves):
        if leaf.index is not None:
            wraps = unit.leaves[leaf.index].wraps
            index, low = f'p{leaf.index}[e]', f'-n{i}' if wraps else '0'
            lines += [
                f'    if ({index} < {low} || {index} >= n{i}) {{',
                '      fault[0] = 1;',
                '      return;',
                '    }',
            ]
    return lines
