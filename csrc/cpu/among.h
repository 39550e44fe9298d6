// Linear search.
#pragma once

#include <stdint.h>

#include <algorithm>

namespace gsample {

// Whether the entries [begin, end), in any order, contain `node`.
template <typename index_t>
bool is_among(const index_t* begin, const index_t* end, index_t node) {
  constexpr int64_t kChunk = 256;
  for (; end - begin >= kChunk; begin += kChunk) {
    int found = 0;  // branch-free: the vector unit compares
    for (int64_t i = 0; i < kChunk; ++i)
      found |= begin[i] == node;
    if (found)
      return true;
  }
  return std::find(begin, end, node) != end;
}

}  // namespace gsample
