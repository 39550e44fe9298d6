#include "split_sample.cuh"

#include "launch.cuh"

namespace gsample {

void split_sample(const SplitSampleCuda& args, StreamHandle stream) {
  constexpr int kThreads = 256;
  launch("split_sample", split_sample_kernel,
         shape_for(kThreads, args.edges.num_slots), stream, args);
}

}  // namespace gsample
