// What every thread that samples hops keeps between calls; it grows to what
// their batches need.
#pragma once

#include <memory>
#include <vector>

#include "node_set.h"
#include "relation_edges.h"

namespace gsample {

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
