// The edges of a sample by relation: a thread for each place of an edge.
#pragma once

#include "neighbor_sample.h"
#include "portable.h"
#include "report.cuh"

namespace gsample {

// Those of the first hops. Other places hold -1.
__device__ inline void place_edges(const SplitEdgesCuda& args, int num_hops) {
  for (int64_t place = global_rank(); place < args.num_places;
       place += grid_threads()) {
    int r = 0, after = args.num_relations;  // the relation is in [r, after)
    while (after - r > 1) {
      const int middle = r + (after - r) / 2;
      (args.out[middle].first <= place ? r : after) = middle;
    }
    const RelationEdges out = args.out[r];
    const int64_t to = place - out.first;
    const int64_t* end = args.edge_end + r;
    int64_t of_hop = to;  // the number of the edge in a hop
    int hop = 0;
    for (; hop < num_hops && of_hop >= end[1] - end[0]; ++hop) {
      of_hop -= end[1] - end[0];
      end += args.num_relations;
    }
    const int64_t from = hop < num_hops ? end[0] + of_hop : -1;
    if (from >= 0 && out.row == args.row)
      continue;
    out.row[to] = from < 0 ? -1 : args.row[from];
    out.col[to] = from < 0 ? -1 : args.col[from];
    if (out.edge != nullptr)
      out.edge[to] = from < 0 ? -1 : args.edge[from];
  }
}

}  // namespace gsample
