#include "sample_nodes.cuh"

#include "launch.cuh"

namespace gsample {

LaunchShape sample_nodes_shape(const SampleNodesCuda& args) {
  const int64_t work = args.replace ? args.room : 4 * int64_t{kNodesThreads};
  return cooperative_shape(sample_nodes_kernel, kNodesThreads,
                           args.batches * work);
}

void sample_nodes(const SampleNodesCuda& args,
                  LaunchShape shape,
                  StreamHandle stream) {
  launch_cooperative("sample_nodes", sample_nodes_kernel, shape, stream, args);
}

}  // namespace gsample
