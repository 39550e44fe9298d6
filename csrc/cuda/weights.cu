#include "weights.cuh"

#include "launch.cuh"

namespace gsample {

template <typename args_t>
LaunchShape weights_shape(const args_t& args) {
  void (*const kernel)(args_t) = sum_weights_kernel;
  return cooperative_shape(kernel, kWeightThreads, args.n);
}

template <typename args_t>
void sum_weights(const args_t& args, LaunchShape shape, StreamHandle stream) {
  void (*const kernel)(args_t) = sum_weights_kernel;
  launch_cooperative("sum_weights", kernel, shape, stream, args);
}

#define GSAMPLE_INSTANTIATE(...)                          \
  template LaunchShape weights_shape(const __VA_ARGS__&); \
  template void sum_weights(const __VA_ARGS__&, LaunchShape, StreamHandle);
GSAMPLE_INSTANTIATE(CumulateWeightsCuda<int32_t, float>)
GSAMPLE_INSTANTIATE(CumulateWeightsCuda<int32_t, double>)
GSAMPLE_INSTANTIATE(CumulateWeightsCuda<int64_t, float>)
GSAMPLE_INSTANTIATE(CumulateWeightsCuda<int64_t, double>)
GSAMPLE_INSTANTIATE(PositiveWeightsCuda<float>)
GSAMPLE_INSTANTIATE(PositiveWeightsCuda<double>)

}  // namespace gsample
