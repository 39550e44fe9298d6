// A thread for each place that may be left over.
#pragma once

#include "pad_sample.h"
#include "portable.h"
#include "report.cuh"

namespace gsample {

__device__ inline void pad(int64_t* items, int64_t size, int64_t max) {
  for (int64_t i = size + global_rank(); items != nullptr && i < max;
       i += grid_threads())
    items[i] = -1;
}

__global__ void pad_sample_kernel(PadSampleCuda args) {
  const bool good = args.report->fault == Report::kNone;
  const int64_t nodes = good ? args.node_end[args.num_hops + 1] : 0;
  const int64_t edges = good ? args.edge_end[args.num_hops] : 0;
  pad(args.row, edges, args.max_edges);
  pad(args.col, edges, args.max_edges);
  pad(args.edge, edges, args.max_edges);
  pad(args.node, nodes, args.max_nodes);
  pad(args.batch, nodes, args.max_nodes);
  for (int64_t hop = global_rank(); hop <= args.num_hops;
       hop += grid_threads()) {
    args.num_nodes[hop] =
        good ? args.node_end[hop + 1] - args.node_end[hop] : 0;
    if (hop < args.num_hops)
      args.num_edges[hop] =
          good ? args.edge_end[hop + 1] - args.edge_end[hop] : 0;
  }
  if (global_rank() != 0)
    return;
  args.fault[0] = args.report->fault;
  args.fault[1] = good ? 0 : args.report->where;
  args.fault[2] = good ? 0 : args.report->value;
}

}  // namespace gsample
