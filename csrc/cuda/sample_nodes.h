// Selection of nodes on a GPU: bind/ fills this in, sample_nodes.cu reads it.
// All pointers are to device memory.
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
  int64_t k;  // nodes per batch
  bool replace;

  int64_t room;      // per batch in `slot`: k, or num_nodes if smaller
  int64_t* node;     // [batches * room]; the report has the size
  int64_t* out_ptr;  // [batches + 1] start of each batch's nodes
  Report* report;
  int64_t* totals;  // [blocks] scratch
  int64_t* slot;    // [batches * room] scratch: selected nodes
  int64_t* size;    // [batches] scratch
  // Scratch of weighted draws without replacement: with `ptr` one tree per
  // batch, else several trees that batches share.
  uint64_t* tree;      // [tree_size]
  int64_t tree_size;   // in words
  int64_t tree_words;  // per tree, without `ptr`
  int64_t trees;
  // And of uniform ones, per slot.
  int64_t* drawn;  // candidate that the slot drew
  int64_t* entry;  // its entry in the table
  NodeTable table;
};

LaunchShape sample_nodes_shape(const SampleNodesCuda& args);

void sample_nodes(const SampleNodesCuda& args,
                  LaunchShape shape,
                  StreamHandle stream);

}  // namespace gsample
