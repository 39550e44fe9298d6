// Many batches of seeds in one launch: the kernels' inputs, and the sizes and
// moves of the outputs.
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
        relations_(in.num_relations()),
        types_(in.num_types()),
        count_(batches.count),
        keys_(read_keys(in.op, key, batches.count)) {
    for (const int64_t* ptr : batches.ptr)
      ptr_.insert(ptr_.end(), ptr, ptr + count_ + 1);
    count_trees();
    for (int hop = 0; hop < hops_; ++hop)
      for (int64_t r = 0; r < relations_; ++r)
        for (const Key& k : keys_)
          streams_.push_back(
              stream_key(k, options.call_id + static_cast<uint32_t>(hop),
                         static_cast<uint32_t>(r)));
  }

  bool many() const { return count_ > 1; }
  int64_t count() const { return count_; }
  // Words for the start of each batch.
  int64_t num_begins() const {
    return many() ? num_node_begins() + hops_ * relations_ * count_ : 0;
  }
  // Words for the first output of each batch.
  int64_t num_firsts() const {
    return many() && (types_ > 1 || relations_ > 1)
               ? hops_ * relations_ * count_
               : 0;
  }

  void add_words(Words* words) {
    first_ = words->add(ptr_);
    words->add(tree_ptr_);
    words->add(tree_shift_);
    words->add(keys_);
    words->add(streams_);
  }
  // The view once these words are at `to`, and the begins at `begins`.
  SampledBatches view(const int64_t* to,
                      int64_t* begins,
                      int64_t* firsts) const {
    const int64_t* ptr = to + first_;
    const int64_t* tree_ptr = ptr + ptr_.size();
    const int64_t* tree_shift = tree_ptr + tree_ptr_.size();
    const int64_t* key = tree_shift + tree_shift_.size();
    return {count_,   ptr,
            tree_ptr, tree_shift,
            key,      reinterpret_cast<const uint64_t*>(key + 3 * count_),
            begins,   begins + num_node_begins(),
            firsts};
  }

  // The position of a seed of a type in its batch.
  int64_t in_batch(int64_t type, int64_t seed) const {
    if (!many())
      return seed;
    const auto ptr = ptr_.begin() + type * (count_ + 1);
    return seed - *(std::upper_bound(ptr, ptr + count_ + 1, seed) - 1);
  }

 private:
  int64_t num_node_begins() const { return (hops_ + 1) * types_ * count_; }

  // Trees of the batches are consecutive, type by type.
  void count_trees() {
    tree_ptr_.push_back(0);
    tree_shift_.resize(types_ * count_);
    for (int64_t b = 0; b < count_; ++b) {
      int64_t next = tree_ptr_.back();
      for (int64_t t = 0; t < types_; ++t) {
        const int64_t* ptr = ptr_.data() + t * (count_ + 1) + b;
        tree_shift_[t * count_ + b] = next - ptr[0];
        next += ptr[1] - ptr[0];
      }
      tree_ptr_.push_back(next);
    }
  }

  int64_t hops_ = 0;
  int64_t relations_ = 0;
  int64_t types_ = 0;
  int64_t count_ = 1;
  Ints ptr_;         // [types, count + 1]
  Ints tree_ptr_;    // [count + 1]
  Ints tree_shift_;  // [types, count]
  std::vector<Key> keys_;
  std::vector<uint64_t> streams_;  // [hops, relations, count]
  size_t first_ = 0;               // word
};

// Moves of each batch's items, by hop and kind.
struct BatchMoves {
  Ints shift;  // [hops, kinds, count]
  Ints first;  // [kinds, count] position in the output
  int64_t size;
};

// Items are in the order (hop, kind, batch): those of a batch start at `begin`
// [hops, kinds, count], those of a hop and kind end at `end`. They move to the
// order (batch, kind, hop). Writes their sizes to `sizes` [count, stride].
inline BatchMoves move_batches(const int64_t* begin,
                               const int64_t* end,
                               int64_t hops,
                               int64_t kinds,
                               int64_t count,
                               int64_t* sizes,
                               int64_t stride) {
  BatchMoves moves{Ints(hops * kinds * count), Ints(kinds * count), 0};
  for (int64_t b = 0; b < count; ++b) {
    int64_t* size = sizes + b * stride;
    for (int64_t kind = 0; kind < kinds; ++kind) {
      moves.first[kind * count + b] = moves.size;
      for (int64_t hop = 0; hop < hops; ++hop, ++size) {
        const int64_t i = hop * kinds + kind;
        const int64_t* at = begin + i * count + b;
        *size = (b + 1 < count ? at[1] : end[i]) - at[0];
        moves.shift[i * count + b] = moves.size - at[0];
        moves.size += *size;
      }
    }
  }
  return moves;
}

// The concatenated outputs of batches. `begins` has each batch's first nodes
// and edges per hop, `node_end` and `edge_end` the end of each hop.
template <typename args_t>
NeighborOutputs split_outputs(const NeighborInputs& in,
                              const args_t& args,
                              const SeedBatchesCuda& batches,
                              const Ints& begins,
                              const Ints& node_end,
                              const Ints& edge_end,
                              const Tensor& like,
                              StreamHandle stream) {
  const int64_t hops = args.options.num_hops, types = args.num_types;
  const int64_t count = batches.count(), stride = num_counts(in);
  Tensor counts = empty_vector(count * stride);
  int64_t* sizes = counts.mutable_data_ptr<int64_t>();
  const BatchMoves nodes = move_batches(begins.data(), node_end.data() + types,
                                        hops + 1, types, count, sizes, stride);
  const BatchMoves edges = move_batches(
      begins.data() + (hops + 1) * types * count, edge_end.data() + 1, hops,
      args.num_relations, count, sizes + (hops + 1) * types, stride);
  Words words;
  const size_t node_shift = words.add(nodes.shift);
  const size_t edge_shift = words.add(edges.shift);
  const size_t first_node = words.add(nodes.first);
  const size_t ends = words.add(in.ends);
  const auto allocate = [&](const char* what, Tensor* tensor, int64_t size) {
    *tensor = device_vector(what, like, size);
    return size == 0 ? nullptr : tensor->mutable_data_ptr<int64_t>();
  };
  const int64_t num_nodes = nodes.size, num_edges = edges.size;
  const bool disjoint = args.options.disjoint;
  Tensor row, col, node, edge, batch, moves;
  SplitBatchesCuda split{
      args.row,
      args.col,
      args.edge,
      args.types,
      nullptr,
      args.node_end,
      args.edge_end,
      args.options.num_hops,
      args.num_types,
      args.num_relations,
      disjoint,
      count,
      args.batches.tree_ptr,
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
  split.ends = to + ends;
  split_batches(split, stream);
  return {row, col, node, edge, batch, counts};
}

}  // namespace gsample
