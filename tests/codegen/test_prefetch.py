"""What asks for rows ahead of a kernel, against plain loops."""

import ctypes

import numpy as np
import pytest
import torch

from torch_gsample.codegen.build import build
from torch_gsample.codegen.cuda_prefetch import AHEAD, ask_ahead
from torch_gsample.codegen.prefetch import WALK
from torch_gsample.codegen.unit import PARAMETER, Leaf, Unit

SOURCE = f"""
#include <cstdint>
{WALK}
extern "C" int64_t walk(int64_t begin, int64_t end, const int32_t* indptr,
                        const int32_t* order, int64_t* edges) {{
  Walk<int32_t> walk{{indptr, order, begin, end}};
  int64_t count = 0;
  while (walk.next())
    edges[count++] = walk.k;
  for (int i = 0; i < 3; ++i)  // it goes on being at the end
    if (walk.next())
      return -1;
  return count;
}}
"""
DEGREES = [0, 3, 0, 0, 1, 2, 0, 5, 0]
ORDER = [7, 0, 1, 3, 8, 5, 4, 2, 6]


def pointer(array):
    return None if array is None else ctypes.c_void_p(array.ctypes.data)


@pytest.mark.parametrize('order', [None, ORDER])
@pytest.mark.parametrize(('begin', 'end'), [(0, 9), (1, 4), (2, 4), (9, 9)])
def test_a_walk_is_over_the_edges_of_its_vertices(order, begin, end):
    with build(SOURCE) as file:
        library = ctypes.CDLL(file.name)
    indptr = np.cumsum([0, *DEGREES]).astype(np.int32)
    vertices = list(range(9)) if order is None else order
    want = [
        edge
        for v in vertices[begin:end]
        for edge in range(indptr[v], indptr[v + 1])
    ]
    edges = np.full(sum(DEGREES), -1)
    given = None if order is None else np.array(order, np.int32)
    count = library.walk(
        *(ctypes.c_int64(begin), ctypes.c_int64(end)),
        *(pointer(indptr), pointer(given), pointer(edges)),
    )
    assert edges[:count].tolist() == want


#: A vertex of a pass that writes down what it asks for, and when it reads.
PASS = """
#include <cstdint>
constexpr int kLanes = 4;
struct Log {{
  int64_t* at;
  int64_t size;
  void add(int64_t number) {{ at[size++] = number; }}
}};
static Log log_;
template <int lanes, int bytes, typename T>
void ask_for(const T* x, int) {{
  static_assert(lanes == 4 && bytes == 12, "all lanes, and the row");
  log_.add((intptr_t)x / 12);
}}
extern "C" int64_t run(int64_t first, int64_t last, int64_t neighbors,
                       int64_t rows, const int32_t* indices,
                       const int32_t* edge_id, int64_t* found) {{
  log_ = {{found, 0}};
  const float *p0 = nullptr, *p1 = nullptr;
  const int lane = 0;
{before}
  for (int64_t k = first; k < last; ++k) {{
{inside}
    log_.add(-1 - k);
  }}
  return log_.size;
}}
"""


@pytest.mark.parametrize('kinds', ['S', 'E', 'SE'])
@pytest.mark.parametrize('count', [0, 1, 3, 4, 9])
@pytest.mark.parametrize('with_ids', [True, False])
def test_rows_of_later_edges_are_prefetched_on_a_gpu(kinds, count, with_ids):
    leaves = [Leaf('', kind, torch.float32, (0,)) for kind in 'SE']
    unit = Unit('D', tuple(leaves), (3,), ())
    ask = ask_ahead(unit, 0, ['SE'.index(kind) for kind in kinds])
    with build(PASS.format(before=ask.before, inside=ask.inside)) as file:
        library = ctypes.CDLL(file.name)
    indices = np.array([5, 0, -1, 7, 8, 2, 9, 1, 3, 4, 6], np.int32)
    ids = np.array([3, 4, 5, 0, 1, 9, -1, 2, 8, 10, 7], np.int32)
    found = np.zeros(99, np.int64)
    first, last, neighbors, rows = 1, 1 + count, 9, 8
    want = []
    for k in range(first - AHEAD, last):
        edge = k + AHEAD
        if edge < last:
            u, e = int(indices[edge]), int(ids[edge]) if with_ids else edge
            want += [u] * ('S' in kinds and 0 <= u < neighbors)
            want += [e] * ('E' in kinds and 0 <= e < rows)
        want += [-1 - k] * (k >= first)
    size = library.run(
        *map(ctypes.c_int64, (first, last, neighbors, rows)),
        *(pointer(indices), pointer(ids if with_ids else None)),
        pointer(found),
    )
    assert found[:size].tolist() == want


def test_a_pass_that_reads_no_rows_of_edges_asks_for_none():
    leaves = Leaf('', 'D', torch.float32), Leaf('', PARAMETER, torch.float32)
    assert ask_ahead(Unit('D', leaves, (), ()), 0, [0, 1]) is None
