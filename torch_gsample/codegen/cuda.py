"""The CUDA C++ source of a unit.

The CPU's source has the same statements. A group of lanes takes a vertex and
divides loops over features: one lane per feature, up to a warp. Each feature
sums the edges in order and in pieces, as on the CPU, so there are no atomics
and the bits are the same. Only functions of CUDA's library (``pow``, ``erf``,
``sin``, ``cos``; in float64 also ``exp``, ``log``, ``tanh`` and others) may
round differently. Vertices are in descending order of degree, and blocks start
in order, so the largest vertices start first. Rows of later edges are
prefetched.
"""

from dataclasses import dataclass

import torch

from torch_gsample.codegen.build import BuildError
from torch_gsample.codegen.cpp import Writer
from torch_gsample.codegen.cpp_library import HALF, MATH
from torch_gsample.codegen.cuda_edges import cuda_edge_map
from torch_gsample.codegen.cuda_loops import SYNC, GroupBlock
from torch_gsample.codegen.cuda_prefetch import PREFETCH, ask_ahead
from torch_gsample.codegen.draws import DRAWS
from torch_gsample.codegen.expression import (
    CPP_TYPES,
    MEMORY_TYPES,
    Expression,
)
from torch_gsample.codegen.loops import Block
from torch_gsample.codegen.passes import Kept
from torch_gsample.codegen.pieces import in_pieces
from torch_gsample.codegen.unit import AGGREGATES, EDGE, PARAMETER, Unit

#: The start of every GPU kernel. NVRTC has no headers.
PREAMBLE = """\
#if defined(__CUDACC_RTC__)
typedef int int32_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
namespace std {
using ::abs;
using ::acos;
using ::asin;
using ::atan2;
using ::ceil;
using ::cos;
using ::erf;
using ::exp;
using ::expm1;
using ::floor;
using ::log;
using ::log1p;
using ::nearbyint;
using ::pow;
using ::sin;
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
namespace lib = std;
#ifndef GSAMPLE_SHARED
#define GSAMPLE_SHARED(Struct, name) __shared__ Struct name
#endif
"""

THREADS = 128  # maximum of a block
_EDGE_THREADS = 256  # of a block of an edge map
_WARP = 32
_SHARED = 48 << 10  # bytes available to every block
_UNROLLED = 32  # iterations of an unrolled loop

_SUMS = """
// Partial sum `lane` of n numbers.
template <int n, typename T>
GSAMPLE_INLINE T partial_sum(const T* x, int lane) {
  T total = 0;
  for (int i = lane; i < n; i += lanes_of(n))
    total += x[i];
  return total;
}

// Adds the upper half of partial sums to the lower half, until one is left.
template <int lanes, typename T>
GSAMPLE_INLINE T folded(const T* sums) {
  T part[lanes];
  for (int i = 0; i < lanes; ++i)
    part[i] = sums[i];
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i)
      part[i] += part[i + half];
  return part[0];
}
"""

_HEAD = """
// {text}
// fault: whether an index is out of range, whether pointers descend.
extern "C" __global__ void __launch_bounds__({threads}) gsample_kernel(
{arguments}) {{
  using T = {type};
  constexpr int kLanes = {lanes}, kGroups = {groups};
  const int group = threadIdx.x / kLanes, lane = threadIdx.x % kLanes;
  const uint32_t mask = {mask};
"""

_VERTEX = """\
  for (int64_t i = blockIdx.x * int64_t{kGroups} + group; i < count;
       i += gridDim.x * int64_t{kGroups}) {
    SYNC
    const int64_t v = order == nullptr ? i : order[i];
    if (v < 0 || v >= vertices) {
      fault[0] = 1;
      continue;
    }
    const int64_t first = begins[v], last = ends[v];
    if (first < 0 || last < first || last > edges) {
      fault[1] = 1;
      continue;
    }
"""

_NEIGHBOR = """\
      const int64_t u = indices[k];
      if (u < 0 || u >= neighbors) {
        fault[0] = 1;
        break;
      }
"""

_EDGE_ROW = """\
      const int64_t e = edge_id == nullptr ? k : edge_id[k];
      if (e < 0 || e >= rows) {
        fault[0] = 1;
        break;
      }
"""

_INDEX = '  const int f = j * kLanes + lane;'


@dataclass(frozen=True)
class CudaKernel:
    """The source of a kernel, and its launch configuration.

    Args:
        source (str): The CUDA source.
        threads (int): Of a block.
        groups (int): Vertices, edges, columns or rows that a block processes
            at a time.
    """

    source: str
    threads: int
    groups: int


def cuda_kernel(unit: Unit, text: str = 'vertex program') -> CudaKernel:
    """Returns a kernel for a GPU.

    For a unit of a vertex program, its arguments are the numbers of vertices
    to compute, and of all, of neighbours, edges and rows of features of edges;
    pointers to where the edges of each vertex begin and end, ``indices``,
    ``edge_id`` or null, and ``order`` or null; to each operand and result; and
    to two error counters.

    Args:
        unit (Unit): What it computes.
        text (str): What it is called in a comment.

    Raises:
        BuildError: If a vertex does not fit in shared memory.
    """
    if unit.center == EDGE:
        source = f'{PREAMBLE}{cuda_edge_map(unit)}'
        return CudaKernel(source, _EDGE_THREADS, _EDGE_THREADS)
    writer = _CudaWriter(unit)
    body = writer.lines()
    bytes_ = sum(width * size for _, width, size in writer.shared.values())
    groups = THREADS // writer.lanes
    while groups > 1 and groups * bytes_ > _SHARED:
        groups //= 2
    if groups * bytes_ > _SHARED:
        raise BuildError(
            f'a vertex has {bytes_} bytes of values, more than the {_SHARED} '
            f'of shared memory'
        )
    mask = '~0u'
    if writer.lanes < _WARP:
        ones = (1 << writer.lanes) - 1
        mask = f'{ones}u << (threadIdx.x % {_WARP} / kLanes * kLanes)'
    head = _HEAD.format(
        text=text,
        threads=groups * writer.lanes,
        arguments=',\n'.join(f'    {x}' for x in _arguments(unit)),
        type=CPP_TYPES[unit.dtype],
        lanes=writer.lanes,
        groups=groups,
        mask=mask,
    )
    drawn = DRAWS if unit.is_random else ''
    drawn += HALF if unit.has_half else ''
    shared = _shared_text(writer, groups)
    source = f'{PREAMBLE}\n{MATH}{_SUMS}{PREFETCH}{drawn}{shared}{head}'
    lines = [source.rstrip('\n')]
    if writer.shared:
        lines.append('  GSAMPLE_SHARED(Shared, shared);')
    lines += [
        f'  {kind}* const {name} = shared.{name}[group];'
        for name, (kind, _, _) in writer.shared.items()
    ]
    return CudaKernel(
        '\n'.join([*lines, *body]) + '\n', groups * writer.lanes, groups
    )


def _shared_text(writer: '_CudaWriter', groups: int) -> str:
    """Declares the shared arrays of a block's groups."""
    if not writer.shared:
        return ''
    # Widest first, so each is aligned.
    arrays = sorted(writer.shared.items(), key=lambda item: -item[1][2])
    fields = ''.join(
        f'  {kind} {name}[{groups}][{width}];\n'
        for name, (kind, width, _) in arrays
    )
    return f'\nstruct Shared {{\n{fields}}};\n'


def _arguments(unit: Unit) -> list[str]:
    index = CPP_TYPES[unit.index]
    arguments = [
        *(
            f'int64_t {x}'
            for x in ('count', 'vertices', 'neighbors', 'edges', 'rows')
        ),
        *(
            f'const {index}* __restrict__ {x}'
            for x in ('begins', 'ends', 'indices', 'edge_id', 'order')
        ),
    ]
    for i, leaf in enumerate(unit.leaves):
        name = 'x' if leaf.kind == PARAMETER else 'p'
        kind = MEMORY_TYPES[leaf.memory]
        arguments.append(f'const {kind}* __restrict__ {name}{i}')
    for i, output in enumerate(unit.outputs):
        kind = MEMORY_TYPES[output.memory]
        arguments.append(f'{kind}* __restrict__ out{i}')
    return [*arguments, 'int* fault']


class _CudaWriter(Writer):
    """Writes the scans of a group over its vertex's edges."""

    _neighbor, _edge = _NEIGHBOR.rstrip('\n'), _EDGE_ROW
    _keeps = False  # lanes of a group would share its memory

    def __init__(self, unit: Unit):
        super().__init__(unit)
        widths = [unit.width(leaf.axes) for leaf in unit.leaves]
        widths += [unit.width(output.axes) for output in unit.outputs]
        #: Lanes of a group, one per feature.
        self.lanes = min(_WARP, 1 << (max(widths) - 1).bit_length())
        #: Type, size and item size of each array of a group.
        self.shared: dict[str, tuple[str, int, int]] = {}

    def declare(self, name: str, dtype: torch.dtype, width: int) -> None:
        """Declares an array of the group."""
        size = torch.empty((), dtype=dtype).element_size()
        self.shared[name] = CPP_TYPES[dtype], width, size

    def turns(self, count: int) -> int:
        """Returns the maximum number of items of a lane."""
        return -(-count // self.lanes)

    def open_loop(self, count: int) -> list[str]:
        """Opens a loop over a lane's items, counted by j."""
        turns = self.turns(count)
        if turns == 1:
            below = '' if count == self.lanes else f'if (lane < {count}) '
            return [f'{below}{{', '  constexpr int j = 0;', _INDEX]
        lines = [
            f'#pragma unroll {turns if turns <= _UNROLLED else 1}',
            f'for (int j = 0; j < {turns}; ++j) {{',
            _INDEX,
        ]
        if turns * self.lanes != count:
            lines += [f'  if (f >= {count})', '    continue;']
        return lines

    def lines(self) -> list[str]:
        """Returns the statements of the kernel."""
        self._vertex()
        head = _VERTEX.replace('    SYNC\n', f'    {SYNC}\n')
        return [head.rstrip('\n'), *self._lines, '  }', '}']

    def _block(
        self,
        prefix: str,
        indent: str,
        arrays: dict[Expression, str] | None = None,
    ) -> Block:
        parts = self._unit, self._types, self._arrays, prefix, indent
        return GroupBlock(self, *parts)

    def _ask(
        self,
        level: int,
        read: list[int],
        written: list[int],
        rest: dict[Expression, Kept],
    ) -> list[str]:
        ask = ask_ahead(self._unit, level, read)
        self._lines += [] if ask is None else [ask.before]
        return [] if ask is None else [ask.inside]

    def _reset(self, node: Expression, width: int, start: str) -> str:
        """Initialises an aggregate in the registers of lanes."""
        name = self._arrays[node]
        texts = [f'r{name}[j] = {start};']
        if in_pieces(self._unit, [node]):
            texts.append(f'{name}[f] = {start};')
        self._lines += [
            f'    T r{name}[{self.turns(width)}];',
            *self._each_turn(width, *texts),
        ]
        return f'r{name}[j]'

    def _each_turn(self, width: int, *texts: str) -> list[str]:
        lines = [*self.open_loop(width), *(f'  {x}' for x in texts), '}']
        return [f'    {line}' for line in lines]

    def _carry(self, sums: list[Expression]) -> list[str]:
        lines = []
        for node in in_pieces(self._unit, sums):
            name = self._arrays[node]
            start, step = AGGREGATES[node.op]
            step = step.format(f'{name}[f]', f'r{name}[j]')
            lines += self._each_turn(
                self._unit.width(self._types.axes(node)),
                f'{name}[f] = {step};',
                f'r{name}[j] = {start};',
            )
        return [line.removeprefix('    ') for line in lines]

    def _fill(self, node: Expression) -> None:
        name = self._arrays[node]
        value = f'r{name}[j]'
        if node.op in ('max_in', 'min_in'):
            value = f'first == last ? T(0) : {value}'
        if in_pieces(self._unit, [node]):
            value = AGGREGATES[node.op][1].format(f'{name}[f]', value)
        width = self._unit.width(self._types.axes(node))
        self._lines += self._each_turn(width, f'{name}[f] = {value};')
        self._lines.append(f'    {SYNC}')

    def _center(self, bodies: list[Expression], level: int) -> None:
        super()._center(bodies, level)
        if f'c{level}_0' in self.shared:
            self._lines.append(f'    {SYNC}')
