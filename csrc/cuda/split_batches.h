// Separates the batches of a launch: see neighbor_sample.h.
#pragma once

#include "device.h"
#include "neighbor_sample.h"

namespace gsample {

// Edges are in the order (hop, relation, batch), nodes of a type in the order
// (hop, batch). They are written in the order (batch, relation or type, hop),
// with the local ids of a batch sampled alone.
struct SplitBatchesCuda {
  const int64_t* row;
  const int64_t* col;
  const int64_t* edge;       // or null
  const SampledType* types;  // [num_types] with the tree of each node
  const int64_t* ends;       // [num_relations, 2] their types, source first
  const int64_t* node_end;   // [num_hops + 2, num_types]
  const int64_t* edge_end;   // [num_hops * num_relations + 1]
  int num_hops;
  int num_types;
  int num_relations;
  bool disjoint;  // trees are those of the seeds
  int64_t count;
  const int64_t* tree_ptr;  // [count + 1]
  // Shifts of the items of each hop, type or relation, and batch.
  const int64_t* node_shift;  // [num_hops + 1, num_types, count]
  const int64_t* edge_shift;  // [num_hops, num_relations, count]
  const int64_t* first_node;  // [num_types, count] first output position
  int64_t* out_row;
  int64_t* out_col;
  int64_t* out_edge;  // or null
  int64_t* out_node;
  int64_t* out_tree;  // or null
  int64_t num_items;  // max(edges, nodes)
};

void split_batches(const SplitBatchesCuda& args, StreamHandle stream);

}  // namespace gsample
