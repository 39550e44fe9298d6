// Sorts the edges of a sample by relation: one thread per edge slot.
#pragma once

#include "neighbor_sample.h"
#include "portable.h"
#include "report.cuh"

namespace gsample {

// Places the edges of the first hops. Other slots hold -1.
__device__ inline void place_edges(const SplitEdgesCuda& args, int num_hops) {
  for (int64_t slot = global_rank(); slot < args.num_slots;
       slot += grid_threads()) {
    int r = 0, after = args.num_relations;  // the relation is in [r, after)
    while (after - r > 1) {
      const int middle = r + (after - r) / 2;
      (args.first[middle] <= slot ? r : after) = middle;
    }
    const int64_t* end = args.edge_end + r;
    int64_t of_hop = slot - args.first[r];  // position of the edge in a hop
    int hop = 0;
    for (; hop < num_hops && of_hop >= end[1] - end[0]; ++hop) {
      of_hop -= end[1] - end[0];
      end += args.num_relations;
    }
    const int64_t from = hop < num_hops ? end[0] + of_hop : -1;
    if (from >= 0 && args.out_row == args.row)
      continue;
    args.out_row[slot] = from < 0 ? -1 : args.row[from];
    args.out_col[slot] = from < 0 ? -1 : args.col[from];
    if (args.out_edge != nullptr)
      args.out_edge[slot] = from < 0 ? -1 : args.edge[from];
  }
}

}  // namespace gsample
