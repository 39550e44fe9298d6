#include "pad_sample.cuh"

#include "launch.cuh"

namespace gsample {

void pad_sample(const PadSampleCuda& args, StreamHandle stream) {
  constexpr int kThreads = 256;
  launch("pad_sample", pad_sample_kernel,
         shape_for(kThreads, args.edges.num_slots), stream, args);
}

}  // namespace gsample
