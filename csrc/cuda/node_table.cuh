// Local ids by first occurrence, independent of the order of execution: threads
// insert the positions of a node's occurrences, and the table keeps the
// smallest.
#pragma once

#include "../core/hash.h"
#include "node_table.h"
#include "portable.h"

namespace gsample {

// Called by all threads of the grid; a grid barrier must follow.
__device__ inline void clear_table(const NodeTable& table) {
  const uint64_t stride = uint64_t{gridDim.x} * blockDim.x;
  uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i < table.capacity; i += stride) {
    table.entry[i] = {NodeTable::kEmpty, ~uint32_t{0}};
  }
}

// The entry of a node; `*added` if this call added it. NodeTable::kNoEntry if
// it is not among the first `most` possible entries.
__device__ inline uint64_t find_or_insert(const NodeTable& table,
                                          uint64_t node,
                                          uint64_t most,
                                          bool* added) {
  const uint64_t mask = table.capacity - 1;
  uint64_t i = mix64(node) & mask;
  *added = false;
  for (uint64_t step = 0; step < most; ++step) {
    const Atomic<uint64_t> key(table.entry[i].key);
    uint64_t found = key.load(kRelaxed);
    if (found == NodeTable::kEmpty &&
        key.compare_exchange_strong(found, node, kRelaxed)) {
      *added = true;
      return i;
    }
    if (found == node)
      return i;
    i ^= 1;  // the other entry of the sector
    if (step % 2 == 1)
      i = (i + 2) & mask;
  }
  return NodeTable::kNoEntry;
}

// Lowers an entry's value to at most `value`.
__device__ inline void bring_min(const NodeTable& table,
                                 uint64_t entry,
                                 uint32_t value) {
  // Most occurrences of a hub come too late: they need no atomic operation.
  const Atomic<uint32_t> least(table.entry[entry].value);
  if (least.load(kRelaxed) > value)
    least.fetch_min(value, kRelaxed);
}

// Inserts a node with a value, and returns its entry. The table has room.
__device__ inline uint64_t insert_min(const NodeTable& table,
                                      uint64_t node,
                                      uint32_t value) {
  bool added;
  const uint64_t entry = find_or_insert(table, node, table.capacity, &added);
  bring_min(table, entry, value);
  return entry;
}

// The smallest value of a node, which is in the table.
__device__ inline uint32_t least_of(const NodeTable& table, uint64_t node) {
  bool added;
  const uint64_t entry = find_or_insert(table, node, table.capacity, &added);
  return Atomic<uint32_t>(table.entry[entry].value).load(kRelaxed);
}

}  // namespace gsample
