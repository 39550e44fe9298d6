// A table from nodes to their local ids, in the device's memory: see
// node_table.cuh.
#pragma once

#include <stdint.h>

namespace gsample {

// Open addressing, at most half full. Two entries are a sector of the L2
// cache, which is what a GPU reads at least: a probe looks at both before it
// goes on to the next two.
struct NodeTable {
  struct alignas(16) Entry {
    uint64_t key;
    uint32_t value;  // local id, or kNew + position
  };
  Entry* entry;       // [capacity], where a sector begins
  uint64_t capacity;  // a power of two

  // Values from here on are positions; they lose against any local id.
  static constexpr uint32_t kNew = uint32_t{1} << 31;
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  static constexpr uint64_t kNoEntry = ~uint64_t{0};

  static constexpr int64_t kEntryWords = sizeof(Entry) / sizeof(int64_t);

  // The capacity for `size` nodes.
  static uint64_t capacity_for(uint64_t size) {
    uint64_t capacity = 256;
    while (capacity < 2 * size)
      capacity *= 2;
    return capacity;
  }
};

}  // namespace gsample
