#include "mask_columns.h"

#include <algorithm>
#include <atomic>

#include "parallel.h"

namespace gsample {

namespace {

constexpr int64_t kBlock = 512;  // columns of a work item

template <typename body_t>
void for_blocks(int64_t num_cols, int threads, const body_t& body) {
  const int64_t blocks = (num_cols + kBlock - 1) / kBlock;
  parallel_items(blocks, static_cast<int>(std::min<int64_t>(threads, blocks)),
                 [&](int64_t block) {
                   const int64_t begin = block * kBlock;
                   body(begin, std::min(num_cols, begin + kBlock));
                 });
}

}  // namespace

template <typename indptr_t>
bool count_masked(const indptr_t* indptr,
                  const bool* mask,
                  int64_t num_cols,
                  int64_t num_edges,
                  int threads,
                  indptr_t* out_indptr) {
  // The bytes of a mask may be any: a view of integers is a mask, too.
  const auto* bytes = reinterpret_cast<const uint8_t*>(mask);
  std::atomic<bool> valid{indptr[0] == 0 && indptr[num_cols] == num_edges};
  for_blocks(num_cols, threads, [&](int64_t begin, int64_t end) {
    for (int64_t v = begin; v < end; ++v) {
      const int64_t first = indptr[v], last = indptr[v + 1];
      if (first < 0 || first > last || last > num_edges) {
        valid = false;
        return;
      }
      int64_t count = 0;
      for (int64_t e = first; e < last; ++e)
        count += bytes[e] != 0;
      out_indptr[v + 1] = static_cast<indptr_t>(count);
    }
  });
  if (!valid)
    return false;
  out_indptr[0] = 0;
  for (int64_t v = 0; v < num_cols; ++v)
    out_indptr[v + 1] += out_indptr[v];
  return true;
}

template <typename indptr_t>
void select_masked(const indptr_t* indptr,
                   const bool* mask,
                   int64_t num_cols,
                   const indptr_t* out_indptr,
                   int threads,
                   int64_t* edge) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(mask);
  for_blocks(num_cols, threads, [&](int64_t begin, int64_t end) {
    int64_t* out = edge + out_indptr[begin];
    const int64_t* stop = edge + out_indptr[end];
    // Branch-free: an edge without the mask is overwritten by the next one
    // with it. There is one until the output is full.
    for (int64_t e = indptr[begin]; out < stop; ++e) {
      *out = e;
      out += bytes[e] != 0;
    }
  });
}

#define GSAMPLE_MASK_COLUMNS(indptr_t)                                       \
  template bool count_masked(const indptr_t*, const bool*, int64_t, int64_t, \
                             int, indptr_t*);                                \
  template void select_masked(const indptr_t*, const bool*, int64_t,         \
                              const indptr_t*, int, int64_t*);
GSAMPLE_MASK_COLUMNS(int32_t)
GSAMPLE_MASK_COLUMNS(int64_t)

}  // namespace gsample
