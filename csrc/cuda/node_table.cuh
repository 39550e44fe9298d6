// Local ids by first occurrence, whatever the order of execution: threads
// bring the positions of the occurrences of a node, and the table keeps the
// least.
#pragma once

#include "../core/hash.h"
#include "node_table.h"
#include "portable.h"

namespace gsample {

// By all threads of the grid; a grid barrier must follow.
__device__ inline void clear_table(const NodeTable& table) {
  const uint64_t stride = uint64_t{gridDim.x} * blockDim.x;
  uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i < table.capacity; i += stride) {
    table.key[i] = NodeTable::kEmpty;
    table.value[i] = ~uint32_t{0};
  }
}

// Brings a value for a node, and returns its entry. The least value stays.
__device__ inline uint64_t insert_min(const NodeTable& table,
                                      uint64_t node,
                                      uint32_t value) {
  const uint64_t mask = table.capacity - 1;
  uint64_t i = mix64(node) & mask;
  for (;; i = (i + 1) & mask) {
    const Atomic<uint64_t> key(table.key[i]);
    uint64_t found = key.load(kRelaxed);
    if (found == NodeTable::kEmpty &&
        key.compare_exchange_strong(found, node, kRelaxed))
      break;
    if (found == node)
      break;
  }
  // Most occurrences of a hub come too late: they need no exclusive access.
  const Atomic<uint32_t> least(table.value[i]);
  if (least.load(kRelaxed) > value)
    least.fetch_min(value, kRelaxed);
  return i;
}

}  // namespace gsample
