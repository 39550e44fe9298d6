"""The C++ source of edge maps: loops over edges, and over columns of them."""

from pathlib import Path

from torch_gsample.codegen.edge_map import body_of, reduction_of
from torch_gsample.codegen.expression import CPP_TYPES
from torch_gsample.codegen.loops import Block, Sink
from torch_gsample.codegen.prefetch import AHEAD, ASKED, LINE
from torch_gsample.codegen.unit import (
    AGGREGATES,
    DESTINATION,
    EDGE,
    PARAMETER,
    Types,
    Unit,
    operands_of,
)

#: The common part of edge maps.
CHECKS = """\
namespace {

constexpr int64_t kBlock = 1024;  // edges whose indices are checked together

// Whether `count` numbers of an index are in [low, high).
template <typename index_t>
bool inside(const index_t* index, int64_t count, int64_t low, int64_t high) {
  if (count == 0)
    return true;
  index_t least = index[0], most = index[0];
#pragma omp simd reduction(min : least) reduction(max : most)
  for (int64_t i = 0; i < count; ++i) {
    least = index[i] < least ? index[i] : least;
    most = index[i] > most ? index[i] : most;
  }
  return least >= low && most < high;
}

// Negative positions count from the end.
inline int64_t wrapped(int64_t i, int64_t size) {
  return i < 0 ? i + size : i;
}

}  // namespace
"""

#: The additional part of edge maps that reduce columns of scalars.
REDUCE_COLUMNS = Path(__file__).with_name('reduce_columns.h').read_text()

_EDGES = """\
  for (int64_t base = begin; base < end; base += kBlock) {
    const int64_t stop = lib::min(base + kBlock, end);
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

# One thread adds all edges, in order within each row.
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
# Without gathers, values are computed when lanes read them. Gathers wait less
# if all values of a block are computed first; so does the last block, because
# lanes read beyond its end.
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


def edge_map_lines(unit: Unit) -> list[str]:
    """Returns the statements of an edge map, for the CPU."""
    lines = ['  const int64_t edges = sizes[0];']
    for i, leaf in enumerate(unit.leaves):
        kind = CPP_TYPES[leaf.dtype]
        name = 'x' if leaf.kind == PARAMETER else 'p'
        lines.append(
            f'  const auto* {name}{i} = static_cast<const {kind}*>(data[{i}]);'
        )
        if leaf.index is not None:
            lines.append(f'  const int64_t n{i} = sizes[{i + 1}];')
    width = unit.width(unit.outputs[0].axes)
    lines += [
        '  T* const out = static_cast<T*>(to[0]);',
        f'  constexpr int F = {width};',
        '  const auto edge = [&](int64_t e, int64_t col, auto take) {',
        *_prefetch_lines(unit),
        *edge_lines(unit),
        '  };',
        *reduction_lines(unit),
    ]
    return [*lines, _loops(unit).rstrip('\n')]


def edge_lines(unit: Unit) -> list[str]:
    """Returns the statements for edge ``e`` of column ``col``.

    They end with ``take(value, f)`` for each feature ``f``.
    """
    body, [output] = body_of(unit), unit.outputs
    lines = []
    for i in operands_of([body]):
        leaf = unit.leaves[i]
        row = {EDGE: 'e', DESTINATION: 'col'}.get(leaf.kind)
        if leaf.index is not None:
            row = _gathered_row(unit, i, 'e')
        if row is not None:
            width = unit.width(leaf.axes)
            place = row if width == 1 else f'{row} * {width}'
            lines.append(f'    const auto* const x{i} = p{i} + {place};')
    block = Block(unit, Types(unit.leaves), {}, 'a', '    ')
    return lines + block.write([Sink(body, output.axes, 'take({1}, {0});')])


def _gathered_row(unit: Unit, i: int, e: str) -> str:
    """Returns the row of an operand that an edge reads by an index."""
    index = unit.leaves[i].index
    assert index is not None
    if unit.leaves[index].wraps:
        return f'wrapped(p{index}[{e}], n{i})'
    return f'int64_t(p{index}[{e}])'


def _prefetch_lines(unit: Unit) -> list[str]:
    """Returns the prefetch of a later edge's rows, if rows are wide.

    The unchecked index may be out of range.
    """
    lines = []
    for i in operands_of([body_of(unit)]):
        leaf = unit.leaves[i]
        if leaf.index is not None and leaf.axes:
            row = _gathered_row(unit, i, f'e + {AHEAD}')
            size = unit.width(leaf.axes) * leaf.dtype.itemsize
            begin = f'uintptr_t(p{i}) + uint64_t({row}) * {size}'
            lines += [
                f'__builtin_prefetch((const char*)({begin} + {at}));'
                for at in range(0, min(size, ASKED), LINE)
            ]
    if not lines:
        return []
    text = [f'      {line}' for line in lines]
    return [f'    if (e + {AHEAD} < edges) {{', *text, '    }']


def reduction_lines(unit: Unit) -> list[str]:
    """Returns the update function of a reduction of columns."""
    total = reduction_of(unit)
    if total is None or unit.by is not None:
        return []
    step = AGGREGATES[total.op][1].format('total', 'value')
    return [
        '  const auto reduce = [](auto total, auto value) {',
        f'    return {step};',
        '  };',
    ]


def _loops(unit: Unit) -> str:
    text = ''
    if unit.by is not None:
        text = _ROWS.replace('ROW', f'p{unit.by}')
    if unit.pointers is None:
        each = _MAP_EDGES if unit.by is None else _ADD_EDGES
        text += _EDGES.replace('EACH', each)
    else:
        text += _FIRST_POINTER
        if in_lanes(unit):
            text += _block_text(unit)
        else:
            adds = unit.by is not None
            each = _ADD_COLUMN if adds else column_text(unit)
            each = _EACH_COLUMN.replace('EACH', each)
            text += _COLUMNS.replace('EACH', each)
    text = text.replace('P[', f'p{unit.pointers}[')
    return text.replace('    CHECKS\n', _checks(unit))


def in_lanes(unit: Unit) -> bool:
    """Whether columns of scalars are reduced in vector lanes."""
    [output] = unit.outputs
    return output.kind == DESTINATION and not output.axes


def _block_text(unit: Unit) -> str:
    """Returns the loop over blocks of columns."""
    used = [unit.leaves[i] for i in operands_of([body_of(unit)])]
    of_columns = any(leaf.kind == DESTINATION for leaf in used)
    text = _BLOCKS.replace(
        'VALUES', _VALUES_OF_COLUMNS if of_columns else _VALUES_OF_EDGES
    )
    gathers = any(leaf.index is not None for leaf in used)
    direct = not of_columns and not gathers
    text = text.replace('DIRECT\n', _DIRECT if direct else '')
    if direct:
        text = _prefetch_text(unit) + text
    text = text.replace('POINTERS', f'p{unit.pointers}')
    return _filled(unit, text)


def _prefetch_text(unit: Unit) -> str:
    """Returns the function that prefetches an edge's operands."""
    lines = ['  const auto ahead = [&](int64_t e) {']
    for i, leaf in enumerate(unit.leaves):
        if leaf.kind == EDGE:
            width = f' * {unit.width(leaf.axes)}' if leaf.axes else ''
            lines.append(f'    __builtin_prefetch(p{i} + e{width});')
    return '\n'.join([*lines, '  };']) + '\n'


def column_text(unit: Unit) -> str:
    """Returns the statements for the edges of column ``col``."""
    text = _MAP_COLUMN
    if reduction_of(unit) is not None:
        text = _filled(unit, _REDUCE_COLUMN)
    return text.replace('P[', f'p{unit.pointers}[')


def _filled(unit: Unit, text: str) -> str:
    total = reduction_of(unit)
    assert total is not None
    start, _ = AGGREGATES[total.op]
    fill = repr(total.value or 0.0)
    return text.replace('START', start).replace('FILL', fill)


def _checks(unit: Unit) -> str:
    """Returns the range checks of indices."""
    bounds = []
    for i, leaf in enumerate(unit.leaves):
        if leaf.index is not None:
            low = f'-n{i}' if unit.leaves[leaf.index].wraps else '0'
            bounds.append((leaf.index, low, f'n{i}'))
    if unit.by is not None:
        bounds.append((unit.by, '0', f'sizes[{len(unit.leaves) + 1}]'))
    return ''.join(
        f'    if (!inside(p{index} + base, stop - base, {low}, {high}))\n'
        f'      return 1;\n'
        for index, low, high in bounds
    )
