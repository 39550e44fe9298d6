// Buffers that every sampling thread reuses between calls; they grow to the
// size of its batches.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "../args.h"
#include "node_set.h"
#include "relation_edges.h"

namespace gsample {

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

template <typename indptr_t, typename index_t>
struct HopWorkspace {
  std::vector<std::unique_ptr<NodeSet<index_t>>> sets;
  std::vector<std::unique_ptr<RelationEdges<indptr_t, index_t>>> edges;
  Buffer<int64_t> tree_time;  // [trees]

  static HopWorkspace& get(int num_types, int num_relations) {
    static thread_local HopWorkspace workspace;
    while (static_cast<int>(workspace.sets.size()) < num_types)
      workspace.sets.push_back(std::make_unique<NodeSet<index_t>>());
    while (static_cast<int>(workspace.edges.size()) < num_relations)
      workspace.edges.push_back(
          std::make_unique<RelationEdges<indptr_t, index_t>>());
    return workspace;
  }
};

}  // namespace gsample
