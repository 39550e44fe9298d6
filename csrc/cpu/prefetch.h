// Prefetches of memory that is read next.
#pragma once

#include <cstdint>

namespace gsample {

// Prefetches data[i] for any i, even out of range: indices of a malformed graph
// are checked on use.
template <typename item_t>
inline void prefetch_item(const item_t* data, int64_t i) {
  const uintptr_t offset = static_cast<uintptr_t>(i) * sizeof(item_t);
  __builtin_prefetch(reinterpret_cast<const void*>(
      reinterpret_cast<uintptr_t>(data) + offset));
}

}  // namespace gsample
