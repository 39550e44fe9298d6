// The edges of a heterogeneous sample by relation.
#pragma once

#include "place_edges.cuh"

namespace gsample {

__global__ void split_edges_kernel(SplitEdgesCuda args) {
  place_edges(args, args.num_hops);
}

}  // namespace gsample
