// Items of cached blocks, see torch_gsample/storage/blocks.py. They lie at
// random places of the cache, so a group of them is looked up and prefetched
// before its first copy.
#pragma once

#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <shared_mutex>

#include "crc32c.h"

namespace gsample {

// The cached blocks of a file. The layout is that of `_Blocks` in
// block_cache.py.
struct CachedBlocks {
  const int32_t* slot;  // [num_blocks] the slot of each block + 1, or 0
  int64_t num_blocks;
  const char* data;          // [num_slots * kBlockBytes]
  uint8_t* marked;           // [num_slots] set if an item of it was found
  std::shared_mutex* guard;  // held by who inserts blocks, or reads in place

  // The address of an item, or null if its block is missing.
  const char* find(int64_t offset) const {
    const uint64_t block = static_cast<uint64_t>(offset) / kBlockBytes;
    const bool exists = block < static_cast<uint64_t>(num_blocks);
    const int64_t at = exists ? slot[block] - 1 : -1;
    if (at < 0)
      return nullptr;
    __atomic_store_n(marked + at, 1, __ATOMIC_RELAXED);
    return data + at * kBlockBytes + offset % kBlockBytes;
  }
};

// The items of one array of a relation: chunk c has those of keys from key[c]
// on, and the item of key k is at origin[c] + k * item_bytes in the file. The
// layout is that of `Items` in blocks.py.
struct StoredItems {
  const int64_t* key;  // [num_chunks] ascending
  const int64_t* origin;
  int64_t num_chunks;
  int64_t item_bytes;  // 4 or 8
};

// The columns of a relation in chunks. A column may continue in later chunks.
// The layout is that of `Columns` in columns.py.
struct StoredColumns {
  StoredItems offset;         // its keys are nodes: the first of each chunk
  const int64_t* last_node;   // [num_chunks]
  const int64_t* first_edge;  // [num_chunks]
  const int64_t* num_edges;   // [num_chunks]

  // The first chunk of a node, from its last one.
  int64_t first_chunk(int64_t node, int64_t last) const {
    if (last == 0 || last_node[last - 1] < node)
      return last;
    return std::lower_bound(last_node, last_node + last, node) - last_node;
  }

  // The edges of a column, from where they begin in its first chunk and end in
  // its last. Returns false if these are malformed.
  bool edges(int64_t first,
             int64_t last,
             int64_t begin,
             int64_t end,
             int64_t* start,
             int64_t* length) const {
    if (begin < 0 || begin > num_edges[first] || end < 0 ||
        end > num_edges[last])
      return false;
    *start = first_edge[first] + begin;
    *length = first_edge[last] + end - *start;
    return *length >= 0;
  }
};

constexpr int64_t kGroup = 32;  // items looked up before the first copy

// The last chunk whose first key is at most `key`. Items come in runs, so the
// chunk of the previous one is tried first.
class ChunkFinder {
 public:
  explicit ChunkFinder(const StoredItems& items) : items_(items) {}

  int64_t find(int64_t key) {
    const int64_t n = items_.num_chunks;
    if (key < items_.key[chunk_] ||
        (chunk_ + 1 < n && key >= items_.key[chunk_ + 1])) {
      const int64_t* end = items_.key + n;
      chunk_ = std::max<int64_t>(
          std::upper_bound(items_.key, end, key) - items_.key - 1, 0);
    }
    return chunk_;
  }
  int64_t offset(int64_t key) {
    return items_.origin[find(key)] + key * items_.item_bytes;
  }
  // The first key of the chunk of the last call.
  int64_t begin() const { return items_.key[chunk_]; }
  // The first key after the chunk of the last call.
  int64_t end() const {
    return chunk_ + 1 < items_.num_chunks ? items_.key[chunk_ + 1] : INT64_MAX;
  }

 private:
  const StoredItems& items_;
  int64_t chunk_ = 0;
};

// The number of keys until one is not the previous one + 1, at most `most`.
inline int64_t count_adjacent(const int64_t* key, int64_t most) {
  constexpr int64_t kStep = 8;
  int64_t n = 1;
  for (; n + kStep <= most; n += kStep) {
    int64_t wrong = 0;
    for (int64_t k = n; k < n + kStep; ++k)
      wrong |= key[k] ^ (key[0] + k);
    if (wrong != 0)
      break;
  }
  while (n < most && key[n] == key[0] + n)
    ++n;
  return n;
}

// The missing items of an output: their indices and file offsets, unless null.
struct Missing {
  int64_t* index = nullptr;
  int64_t* offset = nullptr;
  int64_t count = 0;

  void add(int64_t i, int64_t at) {
    if (index != nullptr)
      index[count] = i;
    if (offset != nullptr)
      offset[count] = at;
    ++count;
  }
};

// Copies the items at offset_of(0), ..., offset_of(n - 1).
template <int64_t kItem, typename offset_t>
void copy_found(const CachedBlocks& blocks,
                int64_t n,
                offset_t&& offset_of,
                char* out,
                Missing& missing) {
  const char* address[kGroup];
  for (int64_t begin = 0; begin < n; begin += kGroup) {
    const int64_t size = std::min(kGroup, n - begin);
    for (int64_t i = 0; i < size; ++i) {
      const int64_t offset = offset_of(begin + i);
      address[i] = blocks.find(offset);
      if (address[i] == nullptr)
        missing.add(begin + i, offset);
      __builtin_prefetch(address[i]);
    }
    for (int64_t i = 0; i < size; ++i)
      if (address[i] != nullptr)
        memcpy(out + (begin + i) * kItem, address[i], kItem);
  }
}

template <typename offset_t>
void copy_found(const CachedBlocks& blocks,
                int64_t item_bytes,
                int64_t n,
                offset_t&& offset_of,
                char* out,
                Missing& missing) {
  if (item_bytes == 4)
    copy_found<4>(blocks, n, offset_of, out, missing);
  else if (item_bytes == 8)
    copy_found<8>(blocks, n, offset_of, out, missing);
  else
    copy_found<kBlockBytes>(blocks, n, offset_of, out, missing);
}

}  // namespace gsample
