#include "sample_nodes.cuh"

#include "launch.cuh"

namespace gsample {

LaunchShape sample_nodes_shape(const SampleNodesCuda& args) {
  // A warp for each batch, where trees take turns.
  const bool in_turn = !args.replace && args.cum_weight != nullptr;
  const int64_t work = in_turn ? args.tree_size + args.batches * 4 * 32
                               : args.batches * args.room;
  return cooperative_shape(sample_nodes_kernel, kNodesThreads, work);
}

void sample_nodes(const SampleNodesCuda& args,
                  LaunchShape shape,
                  StreamHandle stream) {
  launch_cooperative("sample_nodes", sample_nodes_kernel, shape, stream, args);
}

}  // namespace gsample
