// Copies items of cached blocks for torch_gsample/storage/blocks.py.
#include "cached_items.h"

namespace gsample {

namespace {

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
  gsample::Missing found{missing};
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

// Copies indptr[i + 1] - indptr[i] items from key start[i] on for each i,
// concatenated; returns the number of missing items.
GSAMPLE_EXPORT int64_t
gsample_find_ranges(const gsample::CachedBlocks* blocks,
                    const gsample::StoredItems* items,
                    const int64_t* start,   // [n]
                    const int64_t* indptr,  // [n + 1] from 0
                    int64_t n,
                    char* out,
                    int64_t* missing,   // [indptr[n]]
                    int64_t* offset) {  // [indptr[n]]
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
    for (int64_t key = start[i], end = key + indptr[i + 1] - indptr[i];
         key < end;) {
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
