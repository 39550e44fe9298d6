// What neighbour sampling keeps while it runs, and between calls.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "../args.h"
#include "buffer.h"
#include "tables.h"

namespace gsample {

// The edges of one relation at one hop.
struct Span {
  int64_t frontier;  // local id of the first column
  int64_t columns;
  int64_t edges;    // where the span starts in the relation's edge buffers
  int64_t offsets;  // where its offsets start
};

// The sampled nodes of one type; a local id is a position in `node`.
template <typename index_t>
struct TypeState {
  int64_t size;
  int64_t frontier_begin;
  int64_t frontier_end;
  std::vector<int64_t> hop_nodes;
  Buffer<index_t> node;   // [size] local id -> node
  Buffer<uint32_t> root;  // [size] local id -> tree, if disjoint
  bool dense;             // which of the tables is in use
  DenseTable dense_table;
  HashTable hash_table;

  template <typename function_t>
  auto with_table(const function_t& function) {
    return dense ? function(dense_table) : function(hash_table);
  }
};

template <typename indptr_t, typename index_t>
struct RelationState {
  int64_t size;
  int64_t num_offsets;
  std::vector<Span> spans;
  std::vector<int64_t> hop_edges;
  Buffer<indptr_t> edge;     // [size] selected edge
  Buffer<uint32_t> row;      // [size] local id of its row
  Buffer<int64_t> offsets;   // [num_offsets] of all spans
  Buffer<index_t> neighbor;  // [edges of this hop] its row
  Buffer<indptr_t> start;    // [columns of this hop] first candidate
  Buffer<indptr_t> length;   // [columns of this hop] ~length: take all
};

// Kept by every thread that samples; grows to what its batches need.
template <typename indptr_t, typename index_t>
struct Workspace {
  using Type = TypeState<index_t>;
  using Edges = RelationState<indptr_t, index_t>;

  std::vector<std::unique_ptr<Type>> types;
  std::vector<std::unique_ptr<Edges>> relations;
  Buffer<int64_t> root_time;  // [trees]

  static Workspace& get(int num_types, int num_relations) {
    static thread_local Workspace workspace;
    while (static_cast<int>(workspace.types.size()) < num_types)
      workspace.types.push_back(std::make_unique<Type>());
    while (static_cast<int>(workspace.relations.size()) < num_relations)
      workspace.relations.push_back(std::make_unique<Edges>());
    return workspace;
  }
};

// Calls function(begin, end) for runs of columns of about `size` edges.
template <typename indptr_t, typename index_t, typename function_t>
void for_each_range(const RelationState<indptr_t, index_t>& edges,
                    const Span& span,
                    int64_t size,
                    const function_t& function) {
  const int64_t* offset = edges.offsets.data() + span.offsets;
  const int64_t* last = offset + span.columns;
  if (*last == 0)
    return;
  for (const int64_t* begin = offset; begin < last;) {
    const int64_t* end = std::lower_bound(begin + 1, last, *begin + size);
    function(begin - offset, end - offset);
    begin = end;
  }
}

// An upper bound on the nodes of a sample, itself bounded by kMany.
template <typename indptr_t, typename index_t>
int64_t expected_nodes(const NeighborSampleArgs<indptr_t, index_t>& args) {
  constexpr int64_t kMany = int64_t{1} << 40;
  int64_t frontier = 0;
  for (int t = 0; t < args.num_types; ++t)
    frontier += args.types[t].num_seeds;
  int64_t total = frontier;
  for (int hop = 0; hop < args.options.num_hops; ++hop) {
    int64_t fanout = 0;
    for (int r = 0; r < args.num_relations && fanout < kMany; ++r) {
      const int64_t k = args.relations[r].fanouts[hop];
      fanout += k < 0 ? kMany : std::min(k, kMany);
    }
    if (fanout > 0 && frontier > kMany / fanout)
      return kMany;
    frontier *= fanout;
    total += frontier;
  }
  return total;
}

}  // namespace gsample
