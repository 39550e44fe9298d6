// One thread per edge slot, and per unused node slot.
#pragma once

#include "pad_sample.h"
#include "place_edges.cuh"
#include "portable.h"
#include "report.cuh"

namespace gsample {

__device__ inline void pad(int64_t* items, int64_t size, int64_t max) {
  for (int64_t i = size + global_rank(); items != nullptr && i < max;
       i += grid_threads())
    items[i] = -1;
}

// Turns the ends of each kind's items at each hop, [num_hops, num_kinds], into
// counts, [num_kinds, num_hops]. The ends start `before` entries earlier.
__device__ inline void count_hops(const int64_t* end,
                                  int before,
                                  int num_hops,
                                  int num_kinds,
                                  bool good,
                                  int64_t* counts) {
  const int64_t size = int64_t{num_hops} * num_kinds;
  for (int64_t i = global_rank(); i < size; i += grid_threads()) {
    const int64_t at = i % num_hops * num_kinds + i / num_hops;
    counts[i] = good ? end[at] - end[at - before] : 0;
  }
}

__global__ void pad_sample_kernel(PadSampleCuda args) {
  const Report& report = *args.report;
  const bool good = report.fault == Report::kNone;
  const int hops = args.edges.num_hops, types = args.num_types;
  place_edges(args.edges, good ? hops : 0);
  const int64_t* sizes = args.node_end + int64_t{hops + 1} * types;
  for (int t = 0; t < types; ++t) {
    const SampledType& type = args.types[t];
    const int64_t size = good ? sizes[t] : 0;
    pad(type.node, size, type.max_nodes);
    pad(type.batch, size, type.max_nodes);
  }
  count_hops(args.node_end + types, types, hops + 1, types, good,
             args.num_nodes);
  count_hops(args.edges.edge_end + 1, 1, hops, args.edges.num_relations, good,
             args.num_edges);
  if (global_rank() != 0)
    return;
  args.fault[0] = report.fault;
  args.fault[1] = good ? 0 : report.where;
  args.fault[2] = good ? 0 : report.value;
  args.fault[3] = good ? 0 : report.relation;
}

}  // namespace gsample
