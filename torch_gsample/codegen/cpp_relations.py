"""The C++ source of kernels that multiply by the matrix of a relation.

Edges are grouped by a code, and groups by their matrix. The sum of a group and
its product with the matrix stay in the cache: no value of a group is stored.
"""

from pathlib import Path

import torch

from torch_gsample.codegen.cpp import LIBRARY
from torch_gsample.codegen.cpp_library import SIGNATURE
from torch_gsample.codegen.expression import CPP_TYPES, MEMORY_TYPES

#: Compiler flags; products may be contracted, as in BLAS.
FLAGS = ('-O3', '-fno-trapping-math', '-ffp-contract=fast')

#: Vertices of a tile, whose results are accumulated together.
TILE = 64

_PARTS = Path(__file__).with_name('relations.h').read_text()
_HALF = Path(__file__).with_name('kernel_half.h').read_text()
_HALF = f'\nnamespace {{\n\n{_HALF}\n}}  // namespace\n'
#: The C++ types of widened rows.
HALF_TYPES = {k: v for k, v in MEMORY_TYPES.items() if k not in CPP_TYPES}

_OPERANDS = """\
  using S = {memory};
  using I = {index};
  const I* const indptr = static_cast<const I*>(graph[0]);
  const I* const indices = static_cast<const I*>(graph[1]);
  const I* const code = static_cast<const I*>(graph[2]);
  const I* const order = static_cast<const I*>(graph[3]);
  const S* const x = static_cast<const S*>(data[0]);
  const {other}* const y = static_cast<const {other}*>(data[1]);
  const T* const scale = {scale};
  constexpr int kLeft = {left}, kRight = {right};
"""

_HEAD = '\n// {text}\n' + SIGNATURE + _OPERANDS

_PROJECT = """\
  constexpr int kTile = {tile};
  alignas(64) static thread_local T sums[kTile * kLeft], out[kTile * kRight];
  T* rows[kTile];
  for (int64_t n = begin; n < end; ++n) {{
    const int64_t i = order == nullptr ? n : order[n];
    int64_t k = indptr[i];
    const int64_t last = indptr[i + 1];
    lib::fill_n(out, kTile * kRight, T(0));
    while (k < last) {{
      const int64_t type = code[k] / kTile;
      int count = 0;
      for (; k < last && code[k] / kTile == type; ++count) {{
        rows[count] = out + code[k] % kTile * kRight;
        k = add_rows<kLeft>(x, indices, code, scale, k, last,
                            sums + count * kLeft);
      }}
      multiply<kRight>(sums, kLeft, 1, count, kLeft,
                       y + type * kLeft * kRight, rows);
    }}
    S* const result = static_cast<S*>(to[0]) + i * kTile * kRight;
#pragma omp simd
    for (int j = 0; j < kTile * kRight; ++j)
      result[j] = {put};
  }}
  return 0;
}}
"""

_OUTER = """\
  constexpr int kBatch = {tile};
  constexpr int kOne = {one}, kMany = {many};
  alignas(64) static thread_local T left[kBatch * kLeft];
  alignas(64) static thread_local T right[kBatch * kRight];
  T* rows[kLeft];
  for (int64_t n = begin; n < end; ++n) {{
    const int64_t i = order == nullptr ? n : order[n];
    int64_t k = indptr[i];
    const int64_t last = indptr[i + 1];
    T* const out = static_cast<T*>(to[0]) + i * kLeft * kRight;
    lib::fill_n(out, kLeft * kRight, T(0));
    for (int r = 0; r < kLeft; ++r)
      rows[r] = out + r * kRight;
    while (k < last) {{
      int count = 0;
      for (; k < last && count < kBatch; ++count) {{
        if (k + kAhead < last)
          ask<kOne>(y + int64_t(code[k + kAhead]) * kOne);
        const S* const from = y + int64_t(code[k]) * kOne;
#pragma omp simd
        for (int j = 0; j < kOne; ++j)
          {single}[count * kOne + j] = wide(from[j]);
        k = add_rows<kMany>(x, indices, code, scale, k, last,
                            {sums} + count * kMany);
      }}
      multiply<kRight>(left, 1, kLeft, kLeft, count, right, rows);
    }}
  }}
  return 0;
}}
"""


def project_source(
    left: int, right: int, dtype: torch.dtype, index: torch.dtype, scaled: bool
) -> str:
    """Returns the kernel of ``out[v] = sum_r (sum_e s_e x[u_e]) @ y[r]``.

    A code is a type times :data:`TILE`, and a vertex of the tile.

    Args:
        left (int): Features of ``x``.
        right (int): Features of results.
        dtype (torch.dtype): Of rows in memory.
        index (torch.dtype): Of indices.
        scaled (bool): Whether edges have a factor.
    """
    text = f'[{left}] @ [type, {left}, {right}]'
    head = _head(text, left, right, dtype, index, scaled, True)
    put = 'out[j]'
    if dtype in HALF_TYPES:
        put = f'narrow<{HALF_TYPES[dtype]}>(out[j])'
    return head + _PROJECT.format(tile=TILE, put=put)


def outer_source(
    left: int,
    right: int,
    dtype: torch.dtype,
    index: torch.dtype,
    scaled: bool,
    turned: bool,
) -> str:
    """Returns the kernel of ``out = sum_p (sum_e s_e x[u_e])^T y[p]``.

    A code is the row ``p``.

    Args:
        left (int): Rows of a result.
        right (int): Columns of a result.
        dtype (torch.dtype): Of rows in memory.
        index (torch.dtype): Of indices.
        scaled (bool): Whether edges have a factor.
        turned (bool): Whether ``y`` is on the left side.
    """
    text = f'sum of [{left}].T @ [{right}]'
    head = _head(text, left, right, dtype, index, scaled, False)
    one, many = (left, right) if turned else (right, left)
    single, sums = ('left', 'right') if turned else ('right', 'left')
    return head + _OUTER.format(
        tile=TILE, one=one, many=many, single=single, sums=sums
    )


def _head(
    text: str,
    left: int,
    right: int,
    dtype: torch.dtype,
    index: torch.dtype,
    scaled: bool,
    is_product: bool,
) -> str:
    parts = f'{LIBRARY}\n{_PARTS}' + (_HALF if dtype in HALF_TYPES else '')
    scale = 'static_cast<const T*>(data[2])' if scaled else 'nullptr'
    return parts + _HEAD.format(
        text=text,
        type=CPP_TYPES.get(dtype, 'float'),
        memory=MEMORY_TYPES[dtype],
        other='T' if is_product else 'S',
        index=CPP_TYPES[index],
        scale=scale,
        left=left,
        right=right,
    )
