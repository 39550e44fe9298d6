// Selection of nodes on a GPU: what bind/ fills in, and what sample_nodes.cu
// reads. All pointers are to the device's memory.
#pragma once

#include "device.h"
#include "node_table.h"
#include "report.h"

namespace gsample {

struct SampleNodesCuda {
  const int64_t* cum_weight;  // core/weighted.h, or null: uniform
  int64_t num_nodes;
  // The nodes of each batch: [ptr[b], ptr[b + 1]), or all if `ptr` is null.
  const int64_t* ptr;       // [batches + 1]
  const uint64_t* streams;  // [batches] keys of the draws
  int64_t batches;
  int64_t k;  // nodes a batch
  bool replace;

  int64_t room;      // of a batch in `slot`: k, or num_nodes if there are less
  int64_t* node;     // [batches * room], of which the report tells the size
  int64_t* out_ptr;  // [batches + 1] where the nodes of a batch begin
  Report* report;
  int64_t* totals;  // [blocks] scratch
  int64_t* slot;    // [batches * room] scratch: choices
  int64_t* size;    // [batches] scratch
  // Scratch of weighted draws without replacement: with `ptr` a tree for each
  // batch, else some that batches share.
  uint64_t* tree;      // [tree_size]
  int64_t tree_size;   // in words
  int64_t tree_words;  // of a tree, without `ptr`
  int64_t trees;
  // And of uniform ones, for each slot.
  int64_t* drawn;  // by the slot
  int64_t* entry;  // where the table has it
  NodeTable table;
};

LaunchShape sample_nodes_shape(const SampleNodesCuda& args);

void sample_nodes(const SampleNodesCuda& args,
                  LaunchShape shape,
                  StreamHandle stream);

}  // namespace gsample
