// Radix sort.
#pragma once

#include <stdint.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace gsample {

// Sorts by bits [low, low + count) of the items, from the lowest digit up;
// stable. `other` has the same size. The result is swapped into `items`.
inline void radix_sort(std::vector<uint64_t>& items,
                       std::vector<uint64_t>& other,
                       int low,
                       int count) {
  constexpr int kDigit = 11;  // its counts fit in the L1 cache
  constexpr uint64_t kMask = (uint64_t{1} << kDigit) - 1;
  other.resize(items.size());
  for (int shift = low; shift < low + count; shift += kDigit) {
    std::array<uint32_t, kMask + 1> place{};
    for (const uint64_t item : items)
      ++place[item >> shift & kMask];
    uint32_t before = 0;
    for (uint32_t& digit : place)
      before += std::exchange(digit, before);
    for (const uint64_t item : items)
      other[place[item >> shift & kMask]++] = item;
    items.swap(other);
  }
}

// Sorts nodes, which are non-negative.
template <typename index_t>
void sort_nodes(index_t* begin, index_t* end) {
  constexpr int64_t kFew = 1024;  // below, digit counts do not pay
  if (end - begin < kFew)
    return std::sort(begin, end);
  static thread_local std::vector<uint64_t> items, other;
  items.assign(begin, end);
  uint64_t bits = 1;
  for (const uint64_t item : items)
    bits |= item;
  radix_sort(items, other, 0, 64 - __builtin_clzll(bits));
  std::copy(items.begin(), items.end(), begin);
}

}  // namespace gsample
