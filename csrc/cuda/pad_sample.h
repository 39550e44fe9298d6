// Makes the rest of a sample's tensors tell that nothing is there.
#pragma once

#include "device.h"
#include "report.h"

namespace gsample {

struct PadSampleCuda {
  const Report* report;
  const int64_t* node_end;  // [num_hops + 2]
  const int64_t* edge_end;  // [num_hops + 1]
  int num_hops;

  int64_t* row;  // [max_edges]
  int64_t* col;
  int64_t* edge;  // or null
  int64_t max_edges;
  int64_t* node;   // [max_nodes]
  int64_t* batch;  // or null
  int64_t max_nodes;
  int64_t* num_nodes;  // [num_hops + 1] new nodes a hop
  int64_t* num_edges;  // [num_hops]
  int64_t* fault;      // [3] kind, where, value
};

// A sample with a fault has neither nodes nor edges.
void pad_sample(const PadSampleCuda& args, StreamHandle stream);

}  // namespace gsample
