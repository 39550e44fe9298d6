// The edges of a sample by relation, and its nodes by type.
#pragma once

#include "place_edges.cuh"

namespace gsample {

__global__ void split_sample_kernel(SplitSampleCuda args) {
  place_edges(args.edges, args.edges.num_hops);
  int64_t first = 0;
  for (int t = 0; args.node != nullptr && t < args.num_types; ++t) {
    const SampledType& type = args.types[t];
    for (int64_t i = global_rank(); i < args.node_size[t];
         i += grid_threads()) {
      args.node[first + i] = type.node[i];
      if (args.batch != nullptr)
        args.batch[first + i] = type.batch[i];
    }
    first += args.node_size[t];
  }
}

}  // namespace gsample
