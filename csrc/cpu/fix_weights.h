// Vectorised conversion of a column's weights to fixed point, see
// core/weighted.h.
#pragma once

#include <stdint.h>

#include <algorithm>
#include <cmath>

#include "../core/weighted.h"
#include "draws.h"

namespace gsample {

constexpr int64_t kWeightBlock = 256;  // weights per call

template <typename weight_t>
inline __attribute__((always_inline)) void fix_block(const weight_t* weight,
                                                     int64_t n,
                                                     int shift,
                                                     uint64_t* fixed) {
  for (int64_t i = 0; i < n; ++i)
    fixed[i] = fixed_point(static_cast<double>(weight[i]), shift);
}

#if defined(__x86_64__)
// Only AVX2 shifts numbers by different amounts at once.
template <typename weight_t>
__attribute__((target("avx2"))) inline void
fix_block_avx2(const weight_t* weight, int64_t n, int shift, uint64_t* fixed) {
  fix_block(weight, n, shift, fixed);
}
#endif

// Converts weights to fixed point.
template <typename weight_t>
void fix_weights(const weight_t* weight,
                 int64_t n,
                 int shift,
                 uint64_t* fixed) {
#if defined(__x86_64__)
  if (has_avx2())
    return fix_block_avx2(weight, n, shift, fixed);
#endif
  fix_block(weight, n, shift, fixed);
}

// The largest of the weights and 0; -1 if one is negative or not finite.
template <typename weight_t>
inline __attribute__((always_inline)) double find_max(const weight_t* weight,
                                                      int64_t n) {
  constexpr int64_t kChains = 4;  // independent, so that none waits for another
  double most[kChains] = {};
  bool valid = true;
  int64_t i = 0;
  for (; i + kChains <= n; i += kChains)
    for (int64_t j = 0; j < kChains; ++j) {
      most[j] = std::max(most[j], static_cast<double>(weight[i + j]));
      valid &= weight[i + j] >= 0;  // false for NaN
    }
  for (; i < n; ++i) {
    most[0] = std::max(most[0], static_cast<double>(weight[i]));
    valid &= weight[i] >= 0;
  }
  const double found =
      std::max(std::max(most[0], most[1]), std::max(most[2], most[3]));
  return valid && std::isfinite(found) ? found : -1;
}

}  // namespace gsample
