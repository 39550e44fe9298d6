// The last phase of sampling: local ids by first occurrence.
#pragma once

#include "neighbor_state.h"

namespace gsample {

constexpr int64_t kPrefetch = 16;  // table accesses in flight

// Gives the rows `neighbor[begin .. end)` of one tree their local ids; what is
// prefetched beyond `end` belongs to the same tree, or is a wasted hint. New
// nodes are appended to `rows`, which has room for one more than there can be:
// a node is written before it is known to be new, so that nothing branches.
template <bool kDisjoint, typename index_t, typename table_t>
void relabel(const index_t* neighbor,
             int64_t begin,
             int64_t end,
             int64_t prefetch_end,
             uint64_t key_offset,
             uint32_t tree,
             table_t& table,
             TypeState<index_t>& rows,
             uint32_t* row) {
  index_t* node = rows.node.data();
  uint32_t* root = rows.root.data();
  uint32_t size = static_cast<uint32_t>(rows.size);
  for (int64_t i = begin; i < end; ++i) {
    if (i + kPrefetch < prefetch_end)
      table.prefetch(key_offset +
                     static_cast<uint64_t>(neighbor[i + kPrefetch]));
    const uint64_t key = key_offset + static_cast<uint64_t>(neighbor[i]);
    const uint32_t id = table.find_or_insert(key, size);
    row[i] = id;
    node[size] = neighbor[i];
    if (kDisjoint)
      root[size] = tree;
    size += id == size;
  }
  rows.size = size;
}

}  // namespace gsample
