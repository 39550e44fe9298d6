// Negatives, one thread per item.
#include "negative_sample.h"

#include "launch.cuh"
#include "report.cuh"

namespace gsample {

constexpr int kNegativeThreads = 256;  // per block

inline __global__ void __launch_bounds__(kNegativeThreads)
    negative_sample_kernel(NegativeSampleCuda given) {
  const NegativeArgs& args = given.args;
  const int64_t step = grid_threads();
  for (int64_t i = global_rank(); i < args.n; i += step) {
    const NegativeCandidates candidates(args, i);
    given.out[i] = -1;
    if (candidates.has_neighbors())
      given.out[i] = draw_negative(candidates);
    else
      note_fault(given.report, Report::kId, i, args.anchor[i]);
  }
}

void negative_sample(const NegativeSampleCuda& args, StreamHandle stream) {
  launch("negative_sample", negative_sample_kernel,
         shape_for(kNegativeThreads, args.args.n), stream, args);
}

}  // namespace gsample
