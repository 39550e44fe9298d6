// The edges of a relation in cached blocks, read in place.
#pragma once

#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <type_traits>

#include "../cpu/buffer.h"
#include "../cpu/edge_source.h"
#include "../cpu/fix_weights.h"
#include "cached_items.h"

namespace gsample {

// A relation of a batch. The layout is that of `_Relation` in sample_cached.py.
struct CachedRelation {
  const CachedBlocks* blocks;
  const StoredColumns* columns;
  const StoredItems* neighbor;
  const StoredItems* edge_id;  // or null: positions
  const StoredItems* weight;   // or null
  const StoredItems* time;     // or null
  const int64_t* fanouts;      // [num_hops]
  int64_t src;
  int64_t dst;
};

template <typename item_t>
inline item_t load(const char* from) {
  item_t item;
  memcpy(&item, from, sizeof(item));
  return item;
}

// The items of one array of a relation.
class CachedArray {
 public:
  CachedArray(const CachedBlocks& blocks, const StoredItems& items)
      : blocks_(blocks), items_(items), chunks_(items) {}

  // The address of an item, or null.
  const char* find(int64_t key) { return blocks_.find(chunks_.offset(key)); }

  int64_t item_bytes() const { return items_.item_bytes; }

  // The address of an item, and the number of items from there on.
  const char* run(int64_t key, int64_t end, int64_t* count) {
    const int64_t offset = chunks_.offset(key);
    const int64_t left =
        (kBlockBytes - offset % kBlockBytes) / items_.item_bytes;
    *count = std::min({end, chunks_.end(), key + left}) - key;
    return blocks_.find(offset);
  }

 private:
  const CachedBlocks& blocks_;
  const StoredItems& items_;
  ChunkFinder chunks_;
};

template <typename index_t>
class CachedSource final : public EdgeSource<int64_t, index_t> {
 public:
  explicit CachedSource(const CachedRelation& relation) : r_(relation) {}

  int64_t num_found() const { return num_found_; }
  bool is_weighted() const override { return r_.weight != nullptr; }
  bool is_timed() const override { return r_.time != nullptr; }

  bool find(const index_t* node,
            int64_t n,
            int64_t* start,
            int64_t* length) const override {
    const StoredColumns& columns = *r_.columns;
    ChunkFinder chunks(columns.offset);
    struct {
      int64_t first, last;
      const char *begin, *end;
    } found[kGroup];
    for (int64_t done = 0; done < n; done += kGroup) {
      const int64_t size = std::min(kGroup, n - done);
      for (int64_t i = 0; i < size; ++i) {
        const int64_t key = node[done + i];
        auto& f = found[i];
        f.last = chunks.find(key);
        f.first = columns.first_chunk(key, f.last);
        f.begin = r_.blocks->find(columns.offset.origin[f.first] + 8 * key);
        f.end = r_.blocks->find(columns.offset.origin[f.last] + 8 * (key + 1));
        if (f.begin == nullptr || f.end == nullptr)
          return false;
        __builtin_prefetch(f.begin);
        __builtin_prefetch(f.end);
      }
      for (int64_t i = 0; i < size; ++i) {
        const auto& f = found[i];
        if (!columns.edges(f.first, f.last, load<int64_t>(f.begin),
                           load<int64_t>(f.end), start + done + i,
                           length + done + i))
          return false;
      }
    }
    if (is_timed() && !is_weighted())
      prefetch_times(start, length, n);
    num_found_ += 2 * n;
    return true;
  }

  bool search(int64_t time,
              bool lower,
              int64_t start,
              int64_t length,
              int64_t* found) const override {
    CachedArray times(*r_.blocks, *r_.time);
    int64_t probes = 0;
    for (; length > 0; ++probes) {
      const int64_t half = length / 2;
      const char* at = times.find(start + half);
      if (at == nullptr)
        return false;
      const int64_t middle = load<int64_t>(at);
      if (lower ? middle >= time : middle > time) {
        length = half;
      } else {
        start += half + 1;
        length -= half + 1;
      }
    }
    *found = start;
    num_found_ += probes;
    return true;
  }

  bool cumulate(const int64_t* start,
                const int64_t* length,
                int64_t n,
                Buffer<int64_t>& cum,
                ColumnWeights<int64_t>* weights) const override {
    int64_t total = 0;
    for (int64_t i = 0; i < n; ++i)
      total += length[i];
    cum.reserve(total);
    num_found_ += total;
    if (r_.weight->item_bytes == 4)
      return cumulate_items<float>(start, length, n, cum.data(), weights);
    return cumulate_items<double>(start, length, n, cum.data(), weights);
  }

  bool read(int64_t* edge, int64_t n, index_t* row) const override {
    const bool has_ids = r_.edge_id != nullptr;
    num_found_ += has_ids ? 2 * n : n;
    if (r_.neighbor->item_bytes == 4)
      return !has_ids ? read_items<int32_t, void>(edge, n, row)
             : r_.edge_id->item_bytes == 4
                 ? read_items<int32_t, int32_t>(edge, n, row)
                 : read_items<int32_t, int64_t>(edge, n, row);
    return !has_ids ? read_items<int64_t, void>(edge, n, row)
           : r_.edge_id->item_bytes == 4
               ? read_items<int64_t, int32_t>(edge, n, row)
               : read_items<int64_t, int64_t>(edge, n, row);
  }

 private:
  static constexpr int64_t kAhead = 32;  // edges between a prefetch and its use

  // Prefetches the edges where search() starts.
  void prefetch_times(const int64_t* start,
                      const int64_t* length,
                      int64_t n) const {
    CachedArray times(*r_.blocks, *r_.time);
    for (int64_t i = 0; i < n; ++i)
      if (length[i] > 0)
        __builtin_prefetch(times.find(start[i] + length[i] / 2));
  }

  template <typename weight_t>
  bool cumulate_items(const int64_t* start,
                      const int64_t* length,
                      int64_t n,
                      int64_t* cum,
                      ColumnWeights<int64_t>* out) const {
    constexpr int64_t kColumns = 4;  // between a prefetch and its use
    CachedArray next(*r_.blocks, *r_.weight), weights(*r_.blocks, *r_.weight);
    for (int64_t i = 0; i < n + kColumns; ++i) {
      if (i < n && length[i] > 0)
        prefetch_run(next, start[i], length[i]);
      const int64_t at = i - kColumns;
      if (at < 0)
        continue;
      const weight_t* from = joined<weight_t>(weights, start[at], length[at]);
      out[at] = {cum, start[at], false};
      if ((from == nullptr && length[at] > 0) ||
          !cumulate_column(from, length[at], cum, &out[at].has_zero))
        return false;
      cum += length[at];
    }
    return true;
  }

  // Prefetches the first items of a column; the processor recognises a long
  // one.
  static void prefetch_run(CachedArray& items, int64_t start, int64_t length) {
    constexpr int64_t kMost = 1024, kLine = 64;  // bytes
    int64_t count;
    const char* from = items.run(start, start + length, &count);
    const int64_t bytes = std::min(kMost, count * items.item_bytes());
    for (int64_t i = 0; from != nullptr && i < bytes; i += kLine)
      __builtin_prefetch(from + i);
  }

  // The weights of a column, or null. They are copied unless their blocks are
  // adjacent in the cache.
  template <typename weight_t>
  static const weight_t* joined(CachedArray& weights,
                                int64_t start,
                                int64_t length) {
    constexpr int64_t kSize = sizeof(weight_t);
    static thread_local Buffer<weight_t> buffer;
    const int64_t end = start + length;
    const char* from = nullptr;
    for (int64_t key = start, count; key < end; key += count) {
      const int64_t done = key - start;
      const char* run = weights.run(key, end, &count);
      if (run == nullptr)
        return nullptr;
      if (done == 0)
        from = run;
      if (from + done * kSize == run)
        continue;
      char* to = reinterpret_cast<char*>(buffer.data());
      if (from != to) {
        buffer.reserve(length);
        to = reinterpret_cast<char*>(buffer.data());
        memcpy(to, from, done * kSize);
        from = to;
      }
      memcpy(to + done * kSize, run, count * kSize);
    }
    return reinterpret_cast<const weight_t*>(from);
  }

  template <typename row_t, typename id_t>
  bool read_items(int64_t* edge, int64_t n, index_t* row) const {
    constexpr bool kHasIds = !std::is_void_v<id_t>;
    const CachedBlocks& blocks = *r_.blocks;
    ChunkFinder chunks(*r_.neighbor);
    const char *rows[kAhead], *ids[kAhead];
    for (int64_t i = 0; i < n + kAhead; ++i) {
      const int64_t slot = i % kAhead;
      if (i >= kAhead) {
        row[i - kAhead] = static_cast<index_t>(load<row_t>(rows[slot]));
        if constexpr (kHasIds)
          edge[i - kAhead] = load<id_t>(ids[slot]);
      }
      if (i >= n)
        continue;
      const int64_t key = edge[i], chunk = chunks.find(key);
      rows[slot] = blocks.find(r_.neighbor->origin[chunk] +
                               key * static_cast<int64_t>(sizeof(row_t)));
      if (rows[slot] == nullptr)
        return false;
      __builtin_prefetch(rows[slot]);
      if constexpr (kHasIds) {
        ids[slot] = blocks.find(r_.edge_id->origin[chunk] +
                                key * static_cast<int64_t>(sizeof(id_t)));
        if (ids[slot] == nullptr)
          return false;
        __builtin_prefetch(ids[slot]);
      }
    }
    return true;
  }

  const CachedRelation& r_;
  mutable std::atomic<int64_t> num_found_{0};
};

}  // namespace gsample
