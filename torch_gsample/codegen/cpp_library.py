"""Library source of kernels over vertices, for the CPU."""

from pathlib import Path

#: Functions of kernels for the CPU and GPUs.
MATH = Path(__file__).with_name('kernel_math.h').read_text()
HALF = '\n' + Path(__file__).with_name('kernel_half.h').read_text()

#: The start of every CPU kernel.
LIBRARY = Path(__file__).with_name('kernel_lib.h').read_text()

#: The additional part of kernels over vertices.
OPEN = """
#define GSAMPLE_INLINE inline

// Loops that set or copy a row stay loops: calls take longer than short rows.
#pragma GCC optimize("no-tree-loop-distribute-patterns")

namespace {

using lib::memcpy;

"""

SUM = """
// Adds the upper half of partial sums to the lower half, until one is left.
// The length of each loop is constant, so they stay in registers.
template <int lanes>
struct Folded {
  template <typename T>
  static inline T of(const T* sums) {
    T part[lanes / 2];
#pragma omp simd
    for (int i = 0; i < lanes / 2; ++i)
      part[i] = sums[i] + sums[i + lanes / 2];
    return Folded<lanes / 2>::of(part);
  }
};
template <>
struct Folded<1> {
  template <typename T>
  static inline T of(const T* sums) {
    return sums[0];
  }
};

// The sum of n numbers. Its order does not depend on how wide vectors are.
template <int n, typename T>
inline T sum_of(const T* x) {
  constexpr int kLanes = lanes_of(n), kWhole = n / kLanes * kLanes;
  T part[kLanes] = {};
  for (int i = 0; i < kWhole; i += kLanes)
#pragma omp simd
    for (int j = 0; j < kLanes; ++j)
      part[j] += x[i + j];
  for (int j = kWhole; j < n; ++j)
    part[j - kWhole] += x[j];
  return Folded<kLanes>::of(part);
}
"""

MAX = """
// The largest of n numbers; NaN if there is one.
template <int n, typename T>
inline T max_of(const T* x) {
  T out = x[0];
  for (int i = 1; i < n; ++i)
    out = ((x[i] != x[i]) | (out < x[i])) ? x[i] : out;
  return out;
}
"""

CLOSE = """
}  // namespace
"""

#: The function of a kernel, up to its type.
SIGNATURE = """\
extern "C" int gsample_kernel(int64_t begin,
                              int64_t end,
                              const int64_t* sizes,
                              const void* const* graph,
                              const void* const* data,
                              void* const* to) {{
  using T = {type};
"""

_COMMENT = """
// {text}
// Runs over {range} [begin, end). Returns 1 for an index that is out of range,
// 2 for pointers that descend.
"""

#: The head of a kernel.
HEAD = _COMMENT + SIGNATURE

#: The graph, and the loop over the vertices of an order.
GRAPH = """\
  using I = {index};
  const I* const indptr = static_cast<const I*>(graph[0]);
  const I* const indices = static_cast<const I*>(graph[1]);
  const I* const edge_id = static_cast<const I*>(graph[2]);
  const I* const order = static_cast<const I*>(graph[3]);
"""

VERTEX = """\
  for (int64_t i = begin; i < end; ++i) {
    const int64_t v = order == nullptr ? i : order[i];
    const int64_t first = indptr[v], last = indptr[v + 1];
"""
