"""What walks over edges ahead of a kernel, against plain loops."""

import ctypes

import numpy as np
import pytest

from torch_gsample.codegen.build import build
from torch_gsample.codegen.prefetch import WALK

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
