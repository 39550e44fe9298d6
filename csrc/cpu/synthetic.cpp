#include "synthetic.h"

#include <algorithm>
#include <utility>

#include "../core/philox.h"
#include "draws.h"
#include "parallel.h"

namespace gsample {

namespace {

constexpr int kLanes = 256;  // draws made at a time

// Draw 0 of the ids [first, first + kLanes).
void draw_ids(uint64_t key, uint64_t first, int slots, uint64_t* out) {
  uint64_t root[kLanes] = {}, id[kLanes];
  for (int lane = 0; lane < kLanes; ++lane)
    id[lane] = first + lane;
  draw_lanes(key, root, id, kLanes, slots, kLanes, out);
}

}  // namespace

// Fisher-Yates from the last stub down. The partner of a swap is known early,
// so its cache line is prefetched.
template <typename indptr_t, typename index_t>
void configuration_model(const indptr_t* indptr,
                         int64_t num_nodes,
                         uint64_t seed,
                         index_t* indices) {
  parallel_ranges(num_nodes, 4096, max_threads(), [&](int64_t a, int64_t b) {
    for (int64_t v = a; v < b; ++v)
      std::fill(indices + indptr[v], indices + indptr[v + 1],
                static_cast<index_t>(v));
  });
  constexpr int kSwaps = 2 * kLanes;
  uint64_t draw[kSwaps];
  int64_t partner[kSwaps];
  const int64_t n = indptr[num_nodes];
  for (int64_t left = n; left > 1; left -= kSwaps) {
    draw_ids(seed, static_cast<uint64_t>(left), 2, draw);
    const int swaps = static_cast<int>(std::min<int64_t>(kSwaps, left - 1));
    for (int i = 0; i < swaps; ++i) {
      partner[i] = static_cast<int64_t>(bounded(draw[i], left - i));
      __builtin_prefetch(indices + partner[i], 1);
    }
    for (int i = 0; i < swaps; ++i)
      std::swap(indices[left - 1 - i], indices[partner[i]]);
  }
}

template <typename index_t>
void rmat_edges(int scale,
                int64_t num_edges,
                const uint32_t cumulative[3],
                uint64_t seed,
                index_t* row,
                index_t* col) {
  const int slots = ((scale + 3) / 4 + 1) & ~1;  // 16 bits per level
  parallel_ranges(
      num_edges, 1 << 14, max_threads(), [&](int64_t begin, int64_t end) {
        uint64_t draw[16 * kLanes];
        for (int64_t first = begin; first < end; first += kLanes) {
          draw_ids(seed, static_cast<uint64_t>(first), slots, draw);
          const int lanes =
              static_cast<int>(std::min<int64_t>(kLanes, end - first));
          for (int lane = 0; lane < lanes; ++lane) {
            index_t u = 0, v = 0;
            for (int level = 0; level < scale; ++level) {
              const uint32_t r = static_cast<uint16_t>(
                  draw[level / 4 * kLanes + lane] >> 16 * (level % 4));
              const int down = r >= cumulative[1];
              const int right =
                  (r >= cumulative[0]) - down + (r >= cumulative[2]);
              u = 2 * u + static_cast<index_t>(down);
              v = 2 * v + static_cast<index_t>(right);
            }
            row[first + lane] = u;
            col[first + lane] = v;
          }
        }
      });
}

template void configuration_model(const int32_t*, int64_t, uint64_t, int32_t*);
template void configuration_model(const int64_t*, int64_t, uint64_t, int32_t*);
template void configuration_model(const int64_t*, int64_t, uint64_t, int64_t*);
template void rmat_edges(int,
                         int64_t,
                         const uint32_t*,
                         uint64_t,
                         int32_t*,
                         int32_t*);
template void rmat_edges(int,
                         int64_t,
                         const uint32_t*,
                         uint64_t,
                         int64_t*,
                         int64_t*);

}  // namespace gsample
