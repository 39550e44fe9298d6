// Binary search in sorted numbers.
#pragma once

#include "hd.h"

namespace gsample {

// The first position in [first, last) whose value is greater than x; `last` if
// none is.
template <typename value_t>
GSAMPLE_HD int64_t
first_above(const value_t* values, int64_t first, int64_t last, int64_t x) {
  while (first < last) {
    const int64_t middle = first + (last - first) / 2;
    if (values[middle] <= x)
      first = middle + 1;
    else
      last = middle;
  }
  return first;
}

// The first position whose value is not less than x.
template <typename value_t>
GSAMPLE_HD int64_t
first_not_below(const value_t* values, int64_t first, int64_t last, int64_t x) {
  while (first < last) {
    const int64_t middle = first + (last - first) / 2;
    if (values[middle] < x)
      first = middle + 1;
    else
      last = middle;
  }
  return first;
}

}  // namespace gsample
