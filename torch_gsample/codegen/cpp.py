"""The C++ text of a kernel. The same program gives the same text."""

from pathlib import Path

from torch_gsample.codegen.body import Body
from torch_gsample.codegen.expression import CPP_TYPES
from torch_gsample.codegen.program import Program, Role

#: What every kernel begins with.
PREAMBLE = """\
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace {

constexpr int64_t kBlock = 1024;  // edges whose indices are checked together

// Whether `count` numbers of an index are in [low, high).
template <typename index_t>
bool inside(const index_t* index, int64_t count, int64_t low, int64_t high) {
  index_t least = std::numeric_limits<index_t>::max();
  index_t most = std::numeric_limits<index_t>::min();
#pragma omp simd reduction(min : least) reduction(max : most)
  for (int64_t i = 0; i < count; ++i) {
    least = index[i] < least ? index[i] : least;
    most = index[i] > most ? index[i] : most;
  }
  return count == 0 || (least >= low && most < high);
}

// Negative positions count from the end.
inline int64_t wrapped(int64_t i, int64_t size) {
  return i < 0 ? i + size : i;
}

}  // namespace
"""

#: What kernels that reduce columns of single values have, too.
REDUCE_COLUMNS = Path(__file__).with_name('reduce_columns.h').read_text()

_HEAD = """
// {text}
// Runs over {range}.
// Returns 1 for an index that is out of range, 2 for pointers that descend.
extern "C" int gsample_kernel(int64_t begin,
                              int64_t end,
                              int64_t edges,
                              const void* const* data,
                              const int64_t* sizes,
                              void* to) {{
  using T = {type};
  constexpr int F = {features};
  T* const out = static_cast<T*>(to);
"""

_EDGES = """\
  for (int64_t base = begin; base < end; base += kBlock) {
    const int64_t stop = std::min(base + kBlock, end);
    CHECKS
EACH
  }
  return 0;
}
"""

_MAP_EDGES = """\
#pragma omp simd
    for (int64_t e = base; e < stop; ++e)
      edge(e, 0, [&](T value, int f) { out[e * F + f] = value; });"""
_ADD_EDGES = """\
    for (int64_t e = base; e < stop; ++e)
      add(e, 0);"""
_ADD_COLUMN = """\
      for (int64_t e = P[col]; e < P[col + 1]; ++e)
        add(e, col);"""

# One thread adds all edges, each row in order.
_ROWS = """\
  const auto add = [&](int64_t e, int64_t col) {
    const auto row = ROW[e];
    edge(e, col, [&](T value, int f) { out[row * F + f] += value; });
  };
"""

_FIRST_POINTER = """\
  if (begin == 0 && P[0] != 0)
    return 2;
"""

_COLUMNS = """\
  for (int64_t first = begin, last; first < end; first = last) {
    for (last = first; last < end; ++last) {
      if (P[last] < 0 || P[last] > P[last + 1] || P[last + 1] > edges)
        return 2;
      if (last > first && P[last + 1] - P[first] > kBlock)
        break;
    }
    const int64_t base = P[first], stop = P[last];
    CHECKS
EACH
  }
  return 0;
}
"""

_EACH_COLUMN = """\
    for (int64_t col = first; col < last; ++col) {
EACH
    }"""

_MAP_COLUMN = """\
      for (int64_t e = P[col]; e < P[col + 1]; ++e)
        edge(e, col, [&](T value, int f) { out[e * F + f] = value; });"""

_REDUCE_COLUMN = """\
      T total[F];
      for (int f = 0; f < F; ++f)
        total[f] = START;
      for (int64_t e = P[col]; e < P[col + 1]; ++e)
        edge(e, col, [&](T value, int f) {
          total[f] = reduce(total[f], value);
        });
      for (int f = 0; f < F; ++f)
        out[col * F + f] = P[col] < P[col + 1] ? total[f] : T(FILL);"""

_BLOCKS = """\
  Block<T> block;
  for (int64_t first = begin, count; first < end; first += count) {
    count = block.take(POINTERS + first, end - first, edges);
    if (count == 0)
      return 2;
    const int64_t last = first + count, base = P[first], stop = P[last];
    CHECKS
    if (!block.fits()) {
      T total = START;
      for (int64_t e = base; e < stop; ++e)
        edge(e, first, [&](T value, int) { total = reduce(total, value); });
      out[first] = total;
      continue;
    }
DIRECT
    T* const values = block.values();
VALUES
    block.reduce(START, T(FILL), reduce, count, out + first);
  }
  return 0;
}
"""
# Values of consecutive edges are computed where lanes take them. Gathers wait
# less if all values of a block are computed first, as are those of the last
# block: lanes read on behind its end.
_DIRECT = """\
    if (base + block.reach() <= edges) {
      const auto read = [&](int64_t i, T* to) {
        ahead(base + i + block.kAhead);
#pragma omp simd
        for (int j = 0; j < block.kWidth; ++j)
          edge(base + i + j, 0, [&](T value, int) { to[j] = value; });
      };
      block.reduce(START, T(FILL), reduce, count, read, out + first);
      continue;
    }
"""
_VALUES_OF_EDGES = """\
#pragma omp simd
    for (int64_t e = base; e < stop; ++e)
      edge(e, 0, [&](T value, int) { values[e - base] = value; });"""
_VALUES_OF_COLUMNS = """\
    for (int64_t col = first; col < last; ++col)
      for (int64_t e = P[col]; e < P[col + 1]; ++e)
        edge(e, col, [&](T value, int) { values[e - base] = value; });"""

#: Where a reduction starts, and how it goes on: for numbers and for vectors.
_REDUCTIONS = {
    'sum': ('T(0)', 'total + value'),
    'prod': ('T(1)', 'total * value'),
    'amax': (
        'T(-INFINITY)',
        '((value != value) | (total < value)) ? value : total',
    ),
    'amin': (
        'T(INFINITY)',
        '((value != value) | (value < total)) ? value : total',
    ),
}


def cpp_source(program: Program) -> str:
    """Returns the text of a kernel for the CPU."""
    head = _HEAD.format(
        text=program.text,
        range=_range(program),
        type=CPP_TYPES[program.root.dtype],
        features=program.features if program.wide else 1,
    )
    preamble = PREAMBLE
    if _in_lanes(program):
        preamble += '\n' + REDUCE_COLUMNS
    lines = [preamble + head.rstrip('\n')]
    for i, operand in enumerate(program.operands):
        kind = CPP_TYPES[operand.dtype]
        lines.append(
            f'  const auto* x{i} = static_cast<const {kind}*>(data[{i}]);'
        )
        if operand.role == Role.GATHER:
            lines.append(f'  const int64_t n{i} = sizes[{i}];')
    lines.append(
        '  const auto edge = [&](int64_t e, int64_t col, auto take) {'
    )
    lines += [*Body(program).lines(), '  };']
    return '\n'.join(lines) + '\n' + reduction_text(program) + _loops(program)


def _range(program: Program) -> str:
    text = 'edges' if program.pointers is None else 'columns'
    return f'{text} [begin, end)'


def _loops(program: Program) -> str:
    text = ''
    if program.by is not None:
        text = _ROWS.replace('ROW', f'x{program.by}')
    if program.pointers is None:
        each = _MAP_EDGES if program.by is None else _ADD_EDGES
        text += _EDGES.replace('EACH', each)
    else:
        text += _FIRST_POINTER
        if _in_lanes(program):
            text += _block_text(program)
        else:
            adds = program.by is not None
            each = _ADD_COLUMN if adds else column_text(program)
            each = _EACH_COLUMN.replace('EACH', each)
            text += _COLUMNS.replace('EACH', each)
    text = text.replace('P[', f'x{program.pointers}[')
    return text.replace('    CHECKS\n', _checks(program))


def _in_lanes(program: Program) -> bool:
    """Whether columns of single values are reduced, several at a time."""
    wide, reduces = program.wide, program.reduce is not None
    return reduces and program.by is None and not wide


def reduction_text(program: Program) -> str:
    """Returns the function by which a reduction of columns goes on."""
    if program.reduce is None or program.by is not None:
        return ''
    _, step = _REDUCTIONS[program.reduce]
    return (
        '  const auto reduce = [](auto total, auto value) {\n'
        f'    return {step};\n'
        '  };\n'
    )


def _block_text(program: Program) -> str:
    """Returns the loop over blocks of columns."""
    roles = {operand.role for operand in program.operands}
    text = _BLOCKS.replace(
        'VALUES',
        _VALUES_OF_COLUMNS if Role.COLUMN in roles else _VALUES_OF_EDGES,
    )
    direct = not roles & {Role.COLUMN, Role.GATHER}
    text = text.replace('DIRECT\n', _DIRECT if direct else '')
    if direct:
        text = _ahead_text(program) + text
    text = text.replace('POINTERS', f'x{program.pointers}')
    return _filled(program, text)


def _ahead_text(program: Program) -> str:
    """Returns the function that requests what an edge reads."""
    lines = ['  const auto ahead = [&](int64_t e) {']
    for i, operand in enumerate(program.operands):
        if operand.role == Role.EDGE:
            width = f' * {program.features}' if operand.wide else ''
            lines.append(f'    __builtin_prefetch(x{i} + e{width});')
    return '\n'.join([*lines, '  };']) + '\n'


def column_text(program: Program) -> str:
    """Returns the statements for the edges of column ``col``."""
    if program.reduce is None:
        text = _MAP_COLUMN
    else:
        text = _filled(program, _REDUCE_COLUMN)
    return text.replace('P[', f'x{program.pointers}[')


def _filled(program: Program, text: str) -> str:
    assert program.reduce is not None
    start, _ = _REDUCTIONS[program.reduce]
    return text.replace('START', start).replace('FILL', repr(program.fill))


def _checks(program: Program) -> str:
    """Every index is in range before it is used."""
    bounds = []
    for i, operand in enumerate(program.operands):
        if operand.role == Role.GATHER:
            assert operand.index is not None
            wraps = program.operands[operand.index].wraps
            bounds.append((operand.index, f'-n{i}' if wraps else '0', f'n{i}'))
    if program.by is not None:
        bounds.append((program.by, '0', f'sizes[{len(program.operands)}]'))
    return ''.join(
        f'    if (!inside(x{index} + base, stop - base, {low}, {high}))\n'
        f'      return 1;\n'
        for index, low, high in bounds
    )
