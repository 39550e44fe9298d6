// Tables that map a sampled node to its local id, reused between calls.
//
// No table is cleared after a call: entries hold `base + local id`, every call
// has a higher base, and values below the current base count as absent.
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../core/hash.h"
#include "buffer.h"

namespace gsample {

// The base of the current call. 0 marks an entry that was never written.
class TableBase {
 public:
  // Whether the table must be cleared: the bases ran out, or the last call was
  // interrupted.
  bool begin_call() {
    const bool clear = open_ || base_ > kMaxIds;
    if (clear)
      base_ = 1;
    open_ = true;
    return clear;
  }
  void end_call(uint32_t ids_used) {
    base_ += ids_used;
    open_ = false;
  }
  uint32_t get() const { return base_; }

  static constexpr uint32_t kMaxIds = INT32_MAX;  // local ids of one call

 private:
  uint32_t base_ = 1;
  bool open_ = false;
};

// One entry for every node of the graph.
class DenseTable {
 public:
  DenseTable() = default;
  DenseTable(const DenseTable&) = delete;
  DenseTable& operator=(const DenseTable&) = delete;
  ~DenseTable() { free(entries_); }

  void begin_call(uint64_t num_nodes) {
    const bool clear = base_.begin_call();
    if (num_nodes > size_) {
      free(entries_);
      size_ = 0;
      // calloc's pages are zero without being touched, so a small batch does
      // not pay for a large graph.
      entries_ = static_cast<uint32_t*>(calloc(num_nodes, sizeof(uint32_t)));
      if (entries_ == nullptr)
        throw std::bad_alloc();
      size_ = num_nodes;
      advise_huge_pages(entries_, num_nodes * sizeof(uint32_t));
    } else if (clear) {
      memset(entries_, 0, size_ * sizeof(uint32_t));
    }
  }
  void end_call(uint32_t ids_used) { base_.end_call(ids_used); }
  void reserve(uint64_t, uint64_t) {}
  void prefetch(uint64_t key) const { __builtin_prefetch(entries_ + key, 1); }

  // The local id of `key`; a new key gets the id `next`.
  uint32_t find_or_insert(uint64_t key, uint32_t next) {
    const uint32_t base = base_.get();
    const uint32_t entry = entries_[key];
    const uint32_t id = entry < base ? next : entry - base;
    entries_[key] = base + id;
    return id;
  }

  // Lowers the id of `key`, which may be absent. Thread-safe.
  void propose(uint64_t key, uint32_t id) {
    const uint32_t base = base_.get(), wanted = base + id;
    uint32_t entry = __atomic_load_n(entries_ + key, __ATOMIC_RELAXED);
    while ((entry < base || entry > wanted) &&
           !__atomic_compare_exchange_n(entries_ + key, &entry, wanted, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
  }
  // The id of a key that is present.
  uint32_t get(uint64_t key) const { return entries_[key] - base_.get(); }
  void set(uint64_t key, uint32_t id) { entries_[key] = base_.get() + id; }

 private:
  uint32_t* entries_ = nullptr;
  uint64_t size_ = 0;
  TableBase base_;
};

// A dense table is faster once a batch may touch 1 node in kDenseRatio; below,
// a hash table fits in the cache.
inline bool prefers_dense(int64_t num_nodes, int64_t expected) {
  constexpr int64_t kDenseRatio = 32;
  constexpr int64_t kMaxDense = int64_t{1} << 26;
  return num_nodes <= kMaxDense && num_nodes / kDenseRatio <= expected;
}

// Open addressing, at most half full. A key starts at the high bits of its
// product with 2^64 / phi (Knuth, TAOCP 6.4): one multiplication, while mix64()
// takes two in each of prefetch() and find_or_insert(). This spreads
// consecutive ids, but crowds those of some strides; so a key that finds kNear
// entries taken continues with its own stride. With 32-bit keys a cache line
// has eight entries.
template <typename key_t>
class HashTable {
 public:
  void begin_call(uint64_t) {
    if (base_.begin_call() && capacity_ > 0)
      clear();
  }
  void end_call(uint32_t ids_used) { base_.end_call(ids_used); }

  // Reserves memory for `extra` keys besides the table's `size`.
  void reserve(uint64_t size, uint64_t extra) {
    uint64_t capacity = capacity_ > 0 ? capacity_ : 256;
    while (capacity < 2 * (size + extra))
      capacity *= 2;
    if (capacity == capacity_)
      return;
    const Buffer<Entry> old = std::move(entries_);
    // Empty if the allocation fails.
    const uint64_t old_capacity = std::exchange(capacity_, 0);
    entries_.reserve(capacity);
    capacity_ = capacity;
    shift_ = 64 - __builtin_ctzll(capacity);
    clear();
    for (uint64_t i = 0; size > 0 && i < old_capacity; ++i)
      if (old[i].value >= base_.get())
        slot(old[i].key) = old[i];
  }

  void prefetch(uint64_t key) const {
    __builtin_prefetch(&entries_[start(key)], 1);
  }

  // Whether the table contains `key`. Thread-safe.
  bool find(uint64_t key, uint32_t* id) {
    const Entry& entry = slot(key);
    *id = entry.value - base_.get();
    return entry.value >= base_.get();
  }

  uint32_t find_or_insert(uint64_t key, uint32_t next) {
    const uint32_t base = base_.get();
    Entry& entry = slot(key);
    const uint32_t id = entry.value < base ? next : entry.value - base;
    entry = Entry{static_cast<key_t>(key), base + id};
    return id;
  }

 private:
  static constexpr int kNear = 8;
  struct Entry {
    key_t key;
    uint32_t value;
  };

  void clear() { memset(entries_.data(), 0, capacity_ * sizeof(Entry)); }

  uint64_t start(uint64_t key) const {
    return key * 0x9E3779B97F4A7C15ull >> shift_;
  }

  // The entry of `key`, or the free entry for it.
  Entry& slot(uint64_t key) {
    const uint64_t mask = capacity_ - 1;
    const uint32_t base = base_.get();
    uint64_t i = start(key);
    for (int n = 1; entries_[i].value >= base && entries_[i].key != key; ++n) {
      const uint64_t stride = n <= kNear ? 1 : mix64(key) | 1;  // odd: a cycle
      i = (i + stride) & mask;
    }
    return entries_[i];
  }

  Buffer<Entry> entries_;
  uint64_t capacity_ = 0;  // a power of two
  int shift_ = 0;          // 64 - log2(capacity)
  TableBase base_;
};

}  // namespace gsample
