// Many batches of seeds in one launch: what kernels read of them, and the
// sizes and moves of what comes back.
#pragma once

#include <algorithm>
#include <vector>

#include "../cuda/neighbor_sample.h"
#include "../cuda/split_batches.h"
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

// The outputs of batches, which follow one another. `begins` are the first
// nodes and edges of each at each hop, `node_end` and `edge_end` where hops
// end.
template <typename args_t>
NeighborOutputs split_outputs(const NeighborInputs& in,
                              const args_t& args,
                              const SeedBatchesCuda& batches,
                              const Ints& begins,
                              const Ints& node_end,
                              const Ints& edge_end,
                              const Tensor& like,
                              StreamHandle stream) {
  const int hops = args.options.num_hops;
  const int64_t count = batches.count(), stride = num_counts(in);
  Tensor counts = empty_vector(count * stride);
  int64_t* sizes = counts.mutable_data_ptr<int64_t>();
  const BatchMoves nodes = move_batches(begins.data(), node_end.data() + 1,
                                        hops + 1, count, sizes, stride);
  const BatchMoves edges =
      move_batches(begins.data() + (hops + 1) * count, edge_end.data() + 1,
                   hops, count, sizes + hops + 1, stride);
  Words words;
  const size_t node_shift = words.add(nodes.shift);
  const size_t edge_shift = words.add(edges.shift);
  const size_t first_node = words.add(nodes.first);
  const auto allocate = [&](const char* what, Tensor* tensor, int64_t size) {
    *tensor = device_vector(what, like, size);
    return size == 0 ? nullptr : tensor->mutable_data_ptr<int64_t>();
  };
  const int64_t num_nodes = nodes.first.back();
  const int64_t num_edges = edges.first.back();
  const bool disjoint = args.options.disjoint;
  Tensor row, col, node, edge, batch, moves;
  SplitBatchesCuda split{
      args.row,
      args.col,
      args.edge,
      args.type.node,
      args.type.batch,
      args.node_end,
      args.edge_end,
      hops,
      disjoint,
      count,
      args.batches.ptr,
      nullptr,
      nullptr,
      nullptr,
      allocate("row", &row, num_edges),
      allocate("col", &col, num_edges),
      allocate("edge", &edge, in.return_edge_id ? num_edges : 0),
      allocate("node", &node, num_nodes),
      allocate("batch", &batch, disjoint ? num_nodes : 0),
      std::max(num_nodes, num_edges)};
  int64_t* to = allocate("moves", &moves, words.size());
  words.store(to, stream);
  split.node_shift = to + node_shift;
  split.edge_shift = to + edge_shift;
  split.first_node = to + first_node;
  split_batches(split, stream);
  return {row, col, node, edge, batch, counts};
}

}  // namespace gsample
