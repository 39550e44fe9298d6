// Many batches of seeds in one launch: what kernels read of them, and the
// sizes and moves of what comes back.
#pragma once

#include <algorithm>
#include <vector>

#include "../cuda/neighbor_sample.h"
#include "sample_memory_cuda.h"
#include "sample_neighbors.h"

namespace gsample {

class SeedBatchesCuda {
 public:
  SeedBatchesCuda() = default;
  SeedBatchesCuda(const NeighborInputs& in,
                  const SeedBatches& batches,
                  const Tensor& key,
                  const SampleOptions& options)
      : hops_(options.num_hops),
        count_(batches.count),
        ptr_(batches.ptr[0], batches.ptr[0] + batches.count + 1),
        keys_(read_keys(in.op, key, batches.count)) {
    for (int hop = 0; hop < hops_; ++hop)
      for (const Key& k : keys_)
        streams_.push_back(
            stream_key(k, options.call_id + static_cast<uint32_t>(hop), 0));
  }

  bool many() const { return count_ > 1; }
  int64_t count() const { return count_; }
  // Words that tell where they begin.
  int64_t num_begins() const {
    return many() ? (2 * int64_t{hops_} + 1) * count_ : 0;
  }

  void add_words(Words* words) {
    first_ = words->add(ptr_);
    words->add(keys_);
    words->add(streams_);
  }
  // Once these words go to `to`, and the begins to `begins`.
  SampledBatches view(const int64_t* to, int64_t* begins) const {
    const int64_t* ptr = to + first_;
    const int64_t* key = ptr + ptr_.size();
    return {count_, ptr,
            key,    reinterpret_cast<const uint64_t*>(key + 3 * count_),
            begins, begins + (hops_ + 1) * count_};
  }

  // The position of a seed in its batch.
  int64_t in_batch(int64_t seed) const {
    if (!many())
      return seed;
    return seed - *(std::upper_bound(ptr_.begin(), ptr_.end(), seed) - 1);
  }

 private:
  int hops_ = 0;
  int64_t count_ = 1;
  Ints ptr_;
  std::vector<Key> keys_;
  std::vector<uint64_t> streams_;  // [num_hops, count]
  size_t first_ = 0;               // word
};

// Items of each batch, at hops.
struct BatchMoves {
  Ints shift;  // [hops, count]
  Ints first;  // [count + 1] position in the output
};

// Items are in the order (hop, batch), where those of each begin at `begin`
// [hops, count], and those of a hop end at `end`. Writes their sizes to
// `sizes` [count, stride].
inline BatchMoves move_batches(const int64_t* begin,
                               const int64_t* end,
                               int hops,
                               int64_t count,
                               int64_t* sizes,
                               int64_t stride) {
  BatchMoves moves{Ints(hops * count), {0}};
  for (int64_t b = 0; b < count; ++b) {
    int64_t next = moves.first.back();
    for (int hop = 0; hop < hops; ++hop) {
      const int64_t* at = begin + hop * count + b;
      const int64_t size = (b + 1 < count ? at[1] : end[hop]) - at[0];
      sizes[b * stride + hop] = size;
      moves.shift[hop * count + b] = next - at[0];
      next += size;
    }
    moves.first.push_back(next);
  }
  return moves;
}

}  // namespace gsample
