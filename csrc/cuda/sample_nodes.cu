#include "sample_nodes.cuh"

#include "launch.cuh"

namespace gsample {

LaunchShape sample_nodes_shape(const SampleNodesCuda& args) {
  const bool alone = !args.replace && args.cum_weight != nullptr;
  const int64_t work = alone ? 4 * int64_t{kNodesThreads} : args.room;
  return cooperative_shape(sample_nodes_kernel, kNodesThreads,
                           args.batches * work);
}

void sample_nodes(const SampleNodesCuda& args,
                  LaunchShape shape,
                  StreamHandle stream) {
  launch_cooperative("sample_nodes", sample_nodes_kernel, shape, stream, args);
}

}  // namespace gsample
