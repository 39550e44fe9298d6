// Uniform numbers, one thread per number.
#include "random_uniform.h"

#include "../core/philox.h"
#include "launch.cuh"
#include "report.cuh"

namespace gsample {

constexpr int kUniformThreads = 256;  // per block

inline __global__ void __launch_bounds__(kUniformThreads)
    random_uniform_kernel(RandomUniformCuda args) {
  const int64_t step = grid_threads();
  for (int64_t i = global_rank(); i < args.n; i += step) {
    const Stream draw{args.stream, 0, static_cast<uint64_t>(args.id[i])};
    args.out[i] = unit_interval(draw(0));
  }
}

void random_uniform(const RandomUniformCuda& args, StreamHandle stream) {
  launch("random_uniform", random_uniform_kernel,
         shape_for(kUniformThreads, args.n), stream, args);
}

}  // namespace gsample
