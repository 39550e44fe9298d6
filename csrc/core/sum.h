// Sums of a column's edges in their order: the same bits on every device.
#pragma once

#include "hd.h"

namespace gsample {

// The sum of feature `f` of `width`; edge e is stored at perm[e], or at e.
template <typename value_t>
GSAMPLE_HD value_t sum_column(const value_t* value,
                              const int64_t* perm,
                              int64_t begin,
                              int64_t end,
                              int64_t width,
                              int64_t f) {
  value_t sum = 0;
  for (int64_t e = begin; e < end; ++e)
    sum += value[(perm == nullptr ? e : perm[e]) * width + f];
  return sum;
}

}  // namespace gsample
