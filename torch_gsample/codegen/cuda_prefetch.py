"""CUDA source that asks for the rows of the next edges.

A check of its index comes before each row, so that the compiler cannot read
ahead, and a group of lanes would wait for memory at each edge. It asks for the
rows of later edges of its vertex while it adds up those of this one. An index
out of range asks for nothing: the edge itself reports it.
"""

from dataclasses import dataclass

import torch

from torch_gsample.codegen.unit import EDGE, Leaf, Unit

#: How many edges ahead, and which bytes of a row: later ones come by then.
AHEAD, ASKED = 4, 1024

#: The function that prefetches, in the preamble of a kernel.
PREFETCH = """
// Asks for `bytes` from x on. Lanes share them out by sectors of the L2 cache.
template <int lanes, int bytes, typename T>
GSAMPLE_INLINE void ask_for(const T* x, int lane) {
  for (int at = 32 * lane; at < bytes; at += 32 * lanes)
#if defined(__CUDA_ARCH__)
    asm volatile("prefetch.global.L2 [%0];" ::"l"((const char*)x + at));
#else
    __builtin_prefetch((const char*)x + at);
#endif
}
"""

_ASK = """\
    const auto ask{level} = [&](int64_t k) {{
      if (k >= last)
        return;
{lines}
    }};
    for (int64_t k = first; k < first + {ahead}; ++k)
      ask{level}(k);"""

_OTHER = """\
      const int64_t u = indices[k];
      if (u >= 0 && u < neighbors) {{
{rows}
      }}"""

_EDGE = """\
      const int64_t e = edge_id == nullptr ? k : edge_id[k];
      if (e >= 0 && e < rows) {{
{rows}
      }}"""


@dataclass(frozen=True)
class Ask:
    """Statements that prefetch rows, for a pass over edges.

    Args:
        before (str): Before its loop.
        inside (str): At each edge ``k``.
    """

    before: str
    inside: str


def ask_ahead(unit: Unit, level: int, read: list[int]) -> Ask | None:
    """Returns how a pass asks for rows of later edges, if it reads any.

    Args:
        unit (Unit): The unit.
        level (int): The pass.
        read (List[int]): The operands that edges read in it.
    """
    other = 'S' if unit.center == 'D' else 'D'
    leaves = [(number, unit.leaves[number]) for number in read]
    parts = []
    for kind, row, text in ((other, 'u', _OTHER), (EDGE, 'e', _EDGE)):
        rows = [
            f'        {_ask_for(unit, number, leaf, row)}'
            for number, leaf in leaves
            if leaf.kind == kind
        ]
        if rows:
            parts.append(text.format(rows='\n'.join(rows)))
    if not parts:
        return None
    text = _ASK.format(level=level, lines='\n'.join(parts), ahead=AHEAD)
    return Ask(text, f'      ask{level}(k + {AHEAD});')


def _ask_for(unit: Unit, number: int, leaf: Leaf, row: str) -> str:
    """Asks for a row of an operand."""
    width = unit.width(leaf.axes)
    size = torch.empty((), dtype=leaf.memory).element_size()
    bytes_ = min(width * size, ASKED)
    return f'ask_for<kLanes, {bytes_}>(p{number} + {row} * {width}, lane);'
