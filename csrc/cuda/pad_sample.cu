#include "pad_sample.cuh"

#include "launch.cuh"

namespace gsample {

void pad_sample(const PadSampleCuda& args, StreamHandle stream) {
  constexpr int kThreads = 256;
  const int64_t most = args.max_edges + args.max_nodes;
  launch("pad_sample", pad_sample_kernel, shape_for(kThreads, most), stream,
         args);
}

}  // namespace gsample
