#include "negative_sample.cuh"

#include "launch.cuh"

namespace gsample {

void negative_sample(const NegativeSampleCuda& args, StreamHandle stream) {
  launch("negative_sample", negative_sample_kernel,
         shape_for(kNegativeThreads, args.args.n), stream, args);
}

}  // namespace gsample
