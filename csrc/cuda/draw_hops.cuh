// The kernels that draw hops of layers: all hops through the queue, or one.
#pragma once

#include "sample_hops.cuh"

namespace gsample {

// Minimum number of blocks per SM: more would spill registers.
constexpr int hop_blocks(bool weighted, bool one_type) {
  return weighted ? 2 : 3 + one_type;
}

// Draws all hops, for frontiers that use the queue.
template <bool kWeighted, typename args_t>
__global__ void __launch_bounds__(kHopThreads,
                                  hop_blocks(kWeighted, args_t::kOneType))
    draw_hops_kernel(args_t args) {
  GSAMPLE_SHARED(HopShared, shared);
  HopTasks<kWeighted, args_t> tasks(args, shared);
  tasks.start();
  tasks.begin();
  grid_barrier();
  tasks.add_seeds();
  tasks.drain();
  tasks.end();
}

// Draws one hop, once the earlier hops are ordered.
template <bool kWeighted, typename args_t>
__global__ void __launch_bounds__(kHopThreads,
                                  hop_blocks(kWeighted, args_t::kOneType))
    draw_hop_kernel(args_t args, int hop) {
  GSAMPLE_SHARED(HopShared, shared);
  HopTasks<kWeighted, args_t> tasks(args, shared);
  tasks.start();
  if (hop == 0) {
    tasks.begin();
    grid_barrier();
    tasks.add_seeds();
    grid_barrier();
  } else {
    __syncthreads();  // started
  }
  // Another block may report a fault at this time: the threads of a block must
  // agree. Blocks need not, as no grid barrier follows.
  const bool failed =
      Atomic<int64_t>(args.report->fault).load(kRelaxed) != Report::kNone;
  if (__syncthreads_or(failed) || hop >= args.options.num_hops)
    return;
  tasks.draw_hop(hop);
  tasks.end();
}

}  // namespace gsample
