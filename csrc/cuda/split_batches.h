// Takes the batches of a launch apart: see neighbor_sample.h.
#pragma once

#include "device.h"

namespace gsample {

// Edges and nodes come in the order (hop, batch), and go out in the order
// (batch, hop), with the local ids that a batch has alone.
struct SplitBatchesCuda {
  const int64_t* row;
  const int64_t* col;
  const int64_t* edge;  // or null
  const int64_t* node;
  const int64_t* tree;      // of each node
  const int64_t* node_end;  // [num_hops + 2]
  const int64_t* edge_end;  // [num_hops + 1]
  int num_hops;
  bool disjoint;  // trees are those of the seeds
  int64_t count;
  const int64_t* ptr;  // [count + 1]
  // By which items of each hop and batch are moved.
  const int64_t* node_shift;  // [num_hops + 1, count]
  const int64_t* edge_shift;  // [num_hops, count]
  const int64_t* first_node;  // [count] of each batch, where they go
  int64_t* out_row;
  int64_t* out_col;
  int64_t* out_edge;  // or null
  int64_t* out_node;
  int64_t* out_tree;  // or null
  int64_t num_items;  // edges or nodes, whichever are more
};

void split_batches(const SplitBatchesCuda& args, StreamHandle stream);

}  // namespace gsample
