// Sums and products of sizes from arguments. They saturate on overflow: no
// tensor has that many elements.
#pragma once

#include <stdint.h>

namespace gsample {

inline int64_t add_sizes(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

inline int64_t multiply_sizes(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

}  // namespace gsample
