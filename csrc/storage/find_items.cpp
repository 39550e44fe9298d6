// Copies items of cached blocks, see torch_gsample/storage/blocks.py. Items
// lie at random places of the cache, so a group of them is looked up and
// prefetched before its first copy.
#include <stdint.h>
#include <string.h>

#include <algorithm>

#include "crc32c.h"

namespace gsample {

// The cached blocks of a file. The layout is that of `_Blocks` in blocks.py.
struct CachedBlocks {
  const int32_t* slot;  // [num_blocks] the slot of each block + 1, or 0
  int64_t num_blocks;
  const char* data;  // [num_slots * kBlockBytes]
  uint8_t* marked;   // [num_slots] set if an item of it was found

  // The address of an item, or null if its block is missing.
  const char* find(int64_t offset) const {
    const uint64_t block = static_cast<uint64_t>(offset) / kBlockBytes;
    const bool exists = block < static_cast<uint64_t>(num_blocks);
    const int64_t at = exists ? slot[block] - 1 : -1;
    if (at < 0)
      return nullptr;
    marked[at] = 1;
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

namespace {

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
  // The first key after the chunk of the last call.
  int64_t end() const {
    return chunk_ + 1 < items_.num_chunks ? items_.key[chunk_ + 1] : INT64_MAX;
  }

 private:
  const StoredItems& items_;
  int64_t chunk_ = 0;
};

// The missing items of an output: their indices and file offsets.
struct Missing {
  int64_t* index;
  int64_t* offset;  // or null
  int64_t count = 0;

  void add(int64_t i, int64_t at) {
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

// Items that are adjacent in the file and in one block.
struct Piece {
  const char* from;
  char* to;
  int64_t size;
};

}  // namespace

}  // namespace gsample

#define GSAMPLE_EXPORT extern "C" __attribute__((visibility("default")))

// Copies the items at offsets of a file; returns the number of missing items.
GSAMPLE_EXPORT int64_t gsample_find_items(const gsample::CachedBlocks* blocks,
                                          const int64_t* offset,  // [n]
                                          int64_t n,
                                          int64_t item_bytes,  // 4, 8 or 4096
                                          char* out,
                                          int64_t* missing) {  // [n]
  gsample::Missing found{missing, nullptr};
  gsample::copy_found(
      *blocks, item_bytes, n, [&](int64_t i) { return offset[i]; }, out, found);
  return found.count;
}

// Copies the items of keys; returns the number of missing items.
GSAMPLE_EXPORT int64_t gsample_find_keyed(const gsample::CachedBlocks* blocks,
                                          const gsample::StoredItems* items,
                                          const int64_t* key,  // [n]
                                          int64_t n,
                                          char* out,
                                          int64_t* missing,   // [n]
                                          int64_t* offset) {  // [n]
  gsample::Missing found{missing, offset};
  gsample::ChunkFinder chunks(*items);
  gsample::copy_found(
      *blocks, items->item_bytes, n,
      [&](int64_t i) { return chunks.offset(key[i]); }, out, found);
  return found.count;
}

// Copies the items of keys start[i], ..., start[i] + length[i] - 1 for each i,
// concatenated; returns the number of missing items.
GSAMPLE_EXPORT int64_t gsample_find_ranges(
    const gsample::CachedBlocks* blocks,
    const gsample::StoredItems* items,
    const int64_t* start,   // [n]
    const int64_t* length,  // [n]
    int64_t n,
    char* out,
    int64_t* missing,   // [sum of lengths]
    int64_t* offset) {  // [sum of lengths]
  using gsample::kBlockBytes;
  gsample::Missing found{missing, offset};
  gsample::ChunkFinder chunks(*items);
  gsample::Piece pieces[gsample::kGroup];
  const int64_t bytes = items->item_bytes;
  int64_t num_pieces = 0, at = 0;
  const auto copy = [&] {
    for (int64_t i = 0; i < num_pieces; ++i)
      memcpy(pieces[i].to, pieces[i].from, pieces[i].size);
    num_pieces = 0;
  };
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t key = start[i], end = key + length[i]; key < end;) {
      const int64_t first = chunks.offset(key);
      const int64_t left = (kBlockBytes - first % kBlockBytes) / bytes;
      const int64_t count = std::min({end, chunks.end(), key + left}) - key;
      const char* from = blocks->find(first);
      for (int64_t k = 0; from == nullptr && k < count; ++k)
        found.add(at + k, first + k * bytes);
      if (from != nullptr) {
        if (num_pieces == gsample::kGroup)
          copy();
        __builtin_prefetch(from);
        pieces[num_pieces++] = {from, out + at * bytes, count * bytes};
      }
      key += count;
      at += count;
    }
  }
  copy();
  return found.count;
}

// Copies the stored offsets of each node and of the next one: where its edges
// start in its first chunk, and end in its last. `items` has the first node of
// each chunk, and `last_node` its last one. Returns the number of missing
// items.
GSAMPLE_EXPORT int64_t gsample_find_bounds(const gsample::CachedBlocks* blocks,
                                           const gsample::StoredItems* items,
                                           const int64_t* last_node,
                                           const int64_t* node,  // [n]
                                           int64_t n,
                                           int64_t* out,       // [2 * n]
                                           int64_t* missing,   // [2 * n]
                                           int64_t* offset) {  // [2 * n]
  gsample::Missing found{missing, offset};
  gsample::ChunkFinder chunks(*items);
  const auto offset_of = [&](int64_t i) {
    const int64_t key = node[i / 2];
    int64_t chunk = chunks.find(key);  // the last one
    if (i % 2 == 0 && chunk > 0 && last_node[chunk - 1] >= key)
      chunk = std::lower_bound(last_node, last_node + chunk, key) - last_node;
    return items->origin[chunk] + (key + i % 2) * items->item_bytes;
  };
  gsample::copy_found<8>(*blocks, 2 * n, offset_of,
                         reinterpret_cast<char*>(out), found);
  return found.count;
}

// Turns the stored offsets of nodes into positions of edges. Returns the first
// node whose offsets are malformed, or -1.
GSAMPLE_EXPORT int64_t gsample_end_bounds(
    const gsample::StoredItems* items,
    const int64_t* last_node,
    const int64_t* first_edge,  // [num_chunks]
    const int64_t* num_edges,   // [num_chunks]
    const int64_t* node,        // [n]
    int64_t n,
    const int64_t* found,  // [2 * n], of gsample_find_bounds
    int64_t* start,        // [n]
    int64_t* length) {     // [n]
  gsample::ChunkFinder chunks(*items);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t last = chunks.find(node[i]);
    int64_t first = last;
    if (first > 0 && last_node[first - 1] >= node[i])
      first = std::lower_bound(last_node, last_node + last, node[i]) - last_node;
    const int64_t begin = found[2 * i], end = found[2 * i + 1];
    if (begin < 0 || begin > num_edges[first] || end < 0 ||
        end > num_edges[last])
      return i;
    start[i] = first_edge[first] + begin;
    length[i] = first_edge[last] + end - start[i];
    if (length[i] < 0)
      return i;
  }
  return -1;
}
