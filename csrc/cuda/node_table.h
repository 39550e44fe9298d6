// A table from nodes to their local ids, in device memory: see node_table.cuh.
#pragma once

#include <stdint.h>

namespace gsample {

// Open addressing, at most half full. Two entries fill a sector of the L2
// cache, the smallest read of a GPU: a probe checks both before it moves to the
// next two.
struct NodeTable {
  struct alignas(16) Entry {
    uint64_t key;
    uint32_t value;  // local id, or kNew + position
  };
  Entry* entry;       // [capacity], aligned to a sector
  uint64_t capacity;  // a power of two

  // Values from here on are positions; any local id is smaller.
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
