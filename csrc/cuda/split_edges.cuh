// The edges of a heterogeneous sample by relation: a thread for each edge.
#pragma once

#include "neighbor_sample.h"
#include "portable.h"
#include "report.cuh"

namespace gsample {

__global__ void split_edges_kernel(SplitEdgesCuda args) {
  for (int64_t p = global_rank(); p < args.num_edges; p += grid_threads()) {
    int64_t part = 0, after = args.num_parts;  // the part is in [part, after)
    while (after - part > 1) {
      const int64_t middle = part + (after - part) / 2;
      (args.edge_end[middle] <= p ? part : after) = middle;
    }
    const RelationEdges out = args.out[part % args.num_relations];
    const int64_t to = args.before[part] + p - args.edge_end[part];
    out.row[to] = args.row[p];
    out.col[to] = args.col[p];
    if (out.edge != nullptr)
      out.edge[to] = args.edge[p];
  }
}

}  // namespace gsample
