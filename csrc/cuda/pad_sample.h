// Copies a sample to tensors of fixed sizes.
#pragma once

#include "neighbor_sample.h"

namespace gsample {

struct PadSampleCuda {
  const Report* report;
  SplitEdgesCuda edges;
  const int64_t* node_end;   // [(num_hops + 2) * num_types]
  const SampledType* types;  // [num_types] unused slots hold -1
  int num_types;
  int64_t* num_nodes;  // [num_types, num_hops + 1] new nodes per hop
  int64_t* num_edges;  // [num_relations, num_hops]
  int64_t* fault;      // [4] kind, position, value, relation or node type
};

// A sample with a fault has neither nodes nor edges.
void pad_sample(const PadSampleCuda& args, StreamHandle stream);

}  // namespace gsample
