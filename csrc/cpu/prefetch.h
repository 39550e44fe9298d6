// Reads of what comes next, which are announced to the processor.
#pragma once

#include <cstdint>

namespace gsample {

// Prefetches data[i], where i may be anything: what a malformed graph holds is
// checked when it is used.
template <typename item_t>
inline void prefetch_item(const item_t* data, int64_t i) {
  const uintptr_t offset = static_cast<uintptr_t>(i) * sizeof(item_t);
  __builtin_prefetch(reinterpret_cast<const void*>(
      reinterpret_cast<uintptr_t>(data) + offset));
}

}  // namespace gsample
