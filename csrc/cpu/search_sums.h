// Vectorised weighted draws from one column.
#pragma once

#include <algorithm>

#include "../core/weighted.h"

namespace gsample {

constexpr int kSearches = 32;  // interleaved searches

// position[i] = the selection of select_weighted_with_replacement() for draw
// begin + i, for i in [0, size), size <= kSearches: `begin` is even. The misses
// of all searches overlap. No branch depends on a read.
void search_sums(const Stream& draw,
                 const CumulativeWeights& w,
                 int64_t begin,
                 int size,
                 int64_t* position);

// select_weighted_with_replacement() for many draws.
template <typename pos_t>
int64_t select_many_weighted(const Stream& draw,
                             const CumulativeWeights& w,
                             int64_t k,
                             pos_t* out) {
  if (w.total() == 0)
    return 0;
  int64_t position[kSearches];
  for (int64_t begin = 0; begin < k; begin += kSearches) {
    const int size = static_cast<int>(std::min<int64_t>(kSearches, k - begin));
    search_sums(draw, w, begin, size, position);
    for (int i = 0; i < size; ++i)
      out[begin + i] = static_cast<pos_t>(position[i]);
  }
  return k;
}

}  // namespace gsample
