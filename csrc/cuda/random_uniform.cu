#include "random_uniform.cuh"

#include "launch.cuh"

namespace gsample {

void random_uniform(const RandomUniformCuda& args, StreamHandle stream) {
  launch("random_uniform", random_uniform_kernel,
         shape_for(kUniformThreads, args.n), stream, args);
}

}  // namespace gsample
