// Distinct nodes on a GPU: bind/ fills this in, unique_nodes.cuh reads it. All
// pointers are to device memory.
#pragma once

#include "device.h"
#include "node_table.h"
#include "report.h"

namespace gsample {

template <typename id_t>
struct UniqueNodesCuda {
  const id_t* id;  // [n]
  int64_t n;
  int64_t num_nodes;
  // The start of each batch's ids, or null: one batch. A node in two batches
  // counts twice; batches * num_nodes is below 2^63.
  const int64_t* ptr;  // [batches + 1]
  int64_t batches;

  int64_t* node;     // [n]; the report has the number of used entries
  id_t* local;       // [n]
  int64_t* out_ptr;  // [batches + 1] start of each batch's nodes
  Report* report;

  int64_t* totals;  // [blocks] scratch
  // Scratch for the order of first occurrence.
  NodeTable table;
  int64_t* entry;  // [n]
  // Scratch for ascending order.
  uint64_t* bits;   // [num_words()]
  int64_t* before;  // [num_words()]

  int64_t num_words() const { return batches * num_nodes / 64 + 1; }
};

template <typename id_t>
LaunchShape unique_nodes_shape(const UniqueNodesCuda<id_t>& args, bool sorted);

// Numbers distinct ids by first occurrence, or in ascending order.
template <typename id_t>
void unique_nodes(const UniqueNodesCuda<id_t>& args,
                  bool sorted,
                  LaunchShape shape,
                  StreamHandle stream);

}  // namespace gsample
