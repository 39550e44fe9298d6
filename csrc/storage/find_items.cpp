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

// Pieces of cached blocks, copied when their memory has arrived. Pieces of
// kItem bytes are copied by one instruction; 0: sizes of all kinds.
template <int64_t kItem>
class Pieces {
 public:
  ~Pieces() { copy(); }

  void add(const char* from, char* to, int64_t size) {
    if (size_ == kGroup)
      copy();
    __builtin_prefetch(from);
    piece_[size_++] = {from, to, size};
  }

 private:
  void copy() {
    for (int64_t i = 0; i < size_; ++i) {
      const Piece& piece = piece_[i];
      if (piece.size == kItem)
        memcpy(piece.to, piece.from, kItem);  // one instruction
      else
        memcpy(piece.to, piece.from, piece.size);
    }
    size_ = 0;
  }

  Piece piece_[kGroup];
  int64_t size_ = 0;
};

// Copies the items of edges in cached blocks. Writes the runs of others that
// lie in one block of one chunk: file offset, index and length.
template <int64_t kItem>
int64_t copy_edges(const CachedBlocks& blocks,
                   const StoredItems& items,
                   const int64_t* key,
                   int64_t n,
                   char* out,
                   int64_t* offset,
                   int64_t* first,
                   int64_t* length) {
  ChunkFinder chunks(items);
  Pieces<kItem> pieces;
  int64_t num_runs = 0;
  for (int64_t i = 0; i < n;) {
    const int64_t at = chunks.offset(key[i]);
    const int64_t before = at % kBlockBytes;
    const int64_t end =
        std::min(chunks.end(), key[i] + (kBlockBytes - before) / kItem);
    int64_t next = i + count_adjacent(key + i, std::min(n - i, end - key[i]));
    const char* from = blocks.find(at);
    if (from != nullptr) {
      pieces.add(from, out + i * kItem, (next - i) * kItem);
    } else {
      const int64_t begin = std::max(chunks.begin(), key[i] - before / kItem);
      while (next < n && key[next] >= begin && key[next] < end)
        ++next;
      offset[num_runs] = at;
      first[num_runs] = i;
      length[num_runs++] = next - i;
    }
    i = next;
  }
  return num_runs;
}

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
  gsample::Pieces<0> pieces;
  const int64_t bytes = items->item_bytes;
  int64_t at = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t key = start[i], end = key + indptr[i + 1] - indptr[i];
         key < end;) {
      const int64_t first = chunks.offset(key);
      const int64_t left = (kBlockBytes - first % kBlockBytes) / bytes;
      const int64_t count = std::min({end, chunks.end(), key + left}) - key;
      const char* from = blocks->find(first);
      for (int64_t k = 0; from == nullptr && k < count; ++k)
        found.add(at + k, first + k * bytes);
      if (from != nullptr)
        pieces.add(from, out + at * bytes, count * bytes);
      key += count;
      at += count;
    }
  }
  return found.count;
}

// Copies the items of edges in cached blocks; returns the number of runs of
// other items that lie in one block of one chunk.
GSAMPLE_EXPORT int64_t gsample_copy_edges(const gsample::CachedBlocks* blocks,
                                          const gsample::StoredItems* items,
                                          const int64_t* key,  // [n]
                                          int64_t n,
                                          char* out,
                                          int64_t* offset,    // [n]
                                          int64_t* first,     // [n]
                                          int64_t* length) {  // [n]
  const auto copy =
      items->item_bytes == 4 ? gsample::copy_edges<4> : gsample::copy_edges<8>;
  return copy(*blocks, *items, key, n, out, offset, first, length);
}
