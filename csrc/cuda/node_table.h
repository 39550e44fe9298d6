// A table from nodes to their local ids, in the device's memory: see
// node_table.cuh.
#pragma once

#include <stdint.h>

namespace gsample {

// Open addressing with linear probing, at most half full.
struct NodeTable {
  uint64_t* key;      // [capacity]
  uint32_t* value;    // [capacity] local id, or kNew + position
  uint64_t capacity;  // a power of two

  // Values from here on are positions; they lose against any local id.
  static constexpr uint32_t kNew = uint32_t{1} << 31;
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  static constexpr uint64_t kNoEntry = ~uint64_t{0};

  // The capacity for `size` nodes.
  static uint64_t capacity_for(uint64_t size) {
    uint64_t capacity = 256;
    while (capacity < 2 * size)
      capacity *= 2;
    return capacity;
  }
};

}  // namespace gsample
