// Vectorised conversion of a column's weights to fixed point, see
// core/weighted.h.
#pragma once

#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <limits>

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

// Non-negative floats sort like their bits. Integer comparisons vectorise;
// comparisons of floats that may be NaN do not.
template <typename weight_t>
struct Bits;
template <>
struct Bits<float> {
  using type = int32_t;
  static constexpr type kInfinity = 0x7F800000;
};
template <>
struct Bits<double> {
  using type = int64_t;
  static constexpr type kInfinity = 0x7FF0000000000000;
};

template <typename weight_t>
inline typename Bits<weight_t>::type bits_of(weight_t weight) {
  typename Bits<weight_t>::type bits;
  memcpy(&bits, &weight, sizeof(bits));
  return bits;
}

struct WeightRange {
  double most;  // the largest weight, or 0; -1 if one is negative or not finite
  bool has_zero;
};

template <typename weight_t>
inline __attribute__((always_inline)) WeightRange
find_range(const weight_t* weight, int64_t n) {
  using bits_t = typename Bits<weight_t>::type;
  constexpr bits_t kNegativeZero = std::numeric_limits<bits_t>::min();
  bits_t max_bits = 0, invalid = 0, zero = 0;
  for (int64_t i = 0; i < n; ++i) {
    const bits_t bits = bits_of(weight[i]);
    const bits_t is_zero = -((bits == 0) | (bits == kNegativeZero));
    zero |= is_zero;
    invalid |= bits & ~is_zero;  // its sign
    max_bits = std::max(max_bits, bits);
  }
  if (invalid < 0 || max_bits >= Bits<weight_t>::kInfinity)
    return {-1, false};
  weight_t most;
  memcpy(&most, &max_bits, sizeof(most));
  return {static_cast<double>(most), zero != 0};
}

#if defined(__x86_64__)
template <typename weight_t>
__attribute__((target("avx2"))) inline WeightRange find_range_avx2(
    const weight_t* weight,
    int64_t n) {
  return find_range(weight, n);
}
#endif

template <typename weight_t>
WeightRange weight_range(const weight_t* weight, int64_t n) {
#if defined(__x86_64__)
  if (has_avx2())
    return find_range_avx2(weight, n);
#endif
  return find_range(weight, n);
}

// Sums up the weights of a column in fixed point; `zero` is whether one is
// zero. Returns false if one is negative or not finite.
template <typename weight_t>
bool cumulate_column(const weight_t* weight,
                     int64_t n,
                     int64_t* cum,
                     bool* zero) {
  const WeightRange range = weight_range(weight, n);
  *zero = range.has_zero;
  if (range.most < 0)
    return false;
  const int shift = fixed_point_shift(range.most, n);
  uint64_t fixed[kWeightBlock], sum = 0;
  for (int64_t done = 0; done < n; done += kWeightBlock) {
    const int64_t block = std::min(kWeightBlock, n - done);
    fix_weights(weight + done, block, shift, fixed);
    for (int64_t i = 0; i < block; ++i) {
      sum += fixed[i];
      cum[done + i] = static_cast<int64_t>(sum);
    }
  }
  return true;
}

}  // namespace gsample
