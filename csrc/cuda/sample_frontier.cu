#include "sample_frontier.cuh"

#include "launch.cuh"

namespace gsample {

LaunchShape sample_frontier_shape(const SampleFrontierCuda& args) {
  return cooperative_shape(sample_frontier_indptr_kernel, kFrontierThreads,
                           args.n);
}

void sample_frontier_indptr(const SampleFrontierCuda& args,
                            LaunchShape shape,
                            StreamHandle stream) {
  launch_cooperative("sample_frontier_indptr", sample_frontier_indptr_kernel,
                     shape, stream, args);
}

void sample_frontier_edges(const SampleFrontierCuda& args,
                           StreamHandle stream) {
  if (args.needs_trees()) {
    launch("sample_weighted_frontier", sample_weighted_frontier_kernel,
           shape_for(kFrontierThreads, 32 * args.trees), stream, args);
    return;
  }
  // As many lanes as a column has slots, if they fit in a warp; one where a
  // draw depends on those before it.
  constexpr int kWarp = 32;
  int lanes = args.needs_taken() ? 1 : 4;
  while (!args.needs_taken() && lanes < kWarp && (args.k < 0 || lanes < args.k))
    lanes *= 2;
  launch("sample_frontier_edges", sample_frontier_edges_kernel,
         shape_for(kFrontierThreads, args.n * lanes), stream, args, lanes);
  if (args.k >= 0 && args.k <= kManyFrontierSlots)
    return;
  launch("sample_long_frontier", sample_long_frontier_kernel,
         shape_for(kFrontierThreads, args.n * kFrontierThreads), stream, args);
}

}  // namespace gsample
