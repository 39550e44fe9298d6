"""C++ source that prefetches rows.

The rows of edges are scattered, so a kernel would wait for memory at each
edge. A second iterator runs ahead of the kernel, across vertices: most
vertices have fewer edges than its distance.
"""

import torch

from torch_gsample.codegen.unit import EDGE, PARAMETER, Unit

#: The row of an edge in edge features.
EDGE_ROW = 'const int64_t e = edge_id == nullptr ? k : edge_id[k];'

#: The iterator; it never ends before the kernel.
WALK = """
// Walks over the edges of vertices [i, end) of an order.
template <typename index_t>
struct Walk {
  const index_t *indptr, *order;
  int64_t i, end;
  // The edge, and where those of its vertex start and end.
  int64_t k = 0, first = 0, last = 0;

  // Goes on to the next edge, if there is one.
  bool next() {
    if (++k < last)
      return true;
    while (i < end) {
      const int64_t v = order == nullptr ? i : order[i];
      ++i;
      k = first = indptr[v];
      last = indptr[v + 1];
      if (k < last)
        return true;
    }
    return false;
  }
};
"""

_ASK = """\
  Walk<I> walk{level}{{indptr, order, begin, end}};
  const auto ask{level} = [&] {{
    if (!walk{level}.next())
      return;
    const int64_t k = walk{level}.k;
{lines}
  }};
  for (int n = 0; n < {ahead}; ++n)
    ask{level}();"""

#: Prefetch distance in edges; for half precision, the same number of bytes.
AHEAD, AHEAD_OF_HALF = 16, 32
LINE = 64  # bytes of a cache line
ASKED = 1024  # bytes of a row; the hardware prefetches the rest


def ask(
    unit: Unit,
    level: int,
    read: list[int],
    written: list[int],
    again: list[int],
    most: int,
) -> str:
    """Returns the function that prefetches the rows of an edge, or nothing.

    Args:
        unit (Unit): The unit.
        level (int): A pass over edges.
        read (List[int]): The operands that edges read in it.
        written (List[int]): The outputs that they write.
        again (List[int]): Those that only edges without kept values read.
        most (int): The number of edges of a vertex that have them.
    """
    lines = _rows(unit, read)
    for number in written:
        lines += ask_to_write(unit, number, 'e')
    rare = _rows(unit, again)
    if lines and rare:
        walk = f'walk{level}'
        condition = f'if ({walk}.k - {walk}.first >= {most}) {{'
        lines += [condition, *(f'  {line}' for line in rare), '}']
    if any(' + e ' in line for line in lines):
        lines.insert(0, EDGE_ROW)
    if any(' + u ' in line for line in lines):
        lines.insert(0, 'const int64_t u = indices[k];')
    if not lines:
        return ''
    text = '\n'.join(f'    {line}' for line in lines)
    ahead = AHEAD_OF_HALF if unit.has_half else AHEAD
    return _ASK.format(level=level, lines=text, ahead=ahead)


def _rows(unit: Unit, read: list[int]) -> list[str]:
    """Prefetches the rows of operands of an edge."""
    rows = {EDGE: 'e', 'S': 'u', 'D': 'u', PARAMETER: '', unit.center: ''}
    lines: list[str] = []
    for number in read:
        leaf = unit.leaves[number]
        if rows[leaf.kind]:
            name = f'p{number} + {rows[leaf.kind]}'
            lines += _prefetch(name, leaf.memory, unit.width(leaf.axes))
    return lines


def ask_to_write(unit: Unit, number: int, row: str) -> list[str]:
    """Prefetches a row of an output for writing.

    Args:
        unit (Unit): The unit.
        number (int): Of the output.
        row (str): The row.
    """
    output = unit.outputs[number]
    width = unit.width(output.axes)
    return _prefetch(f'out{number} + {row}', output.memory, width, ', 1')


def _prefetch(
    name: str, dtype: torch.dtype, width: int, access: str = ''
) -> list[str]:
    """Prefetches the cache lines of a row."""
    size = torch.empty((), dtype=dtype).element_size()
    return [
        f'__builtin_prefetch({name} * {width} + {start // size}{access});'
        for start in range(0, min(width * size, ASKED), LINE)
    ]
