#include "neighbor_sample.cuh"

#include "launch.cuh"

namespace gsample {

// The kernel for these arguments: weights take registers, so that uniform
// sampling has a kernel of its own.
template <typename indptr_t, typename index_t>
auto* kernel_for(const NeighborSampleCuda<indptr_t, index_t>& args) {
  return args.weighted ? neighbor_sample_kernel<true, indptr_t, index_t>
                       : neighbor_sample_kernel<false, indptr_t, index_t>;
}

template <typename indptr_t, typename index_t>
LaunchShape neighbor_sample_shape(
    const NeighborSampleCuda<indptr_t, index_t>& args) {
  return cooperative_shape(kernel_for(args), kSampleThreads, args.max_edges);
}

template <typename indptr_t, typename index_t>
void neighbor_sample(const NeighborSampleCuda<indptr_t, index_t>& args,
                     LaunchShape shape,
                     StreamHandle stream) {
  launch_cooperative("neighbor_sample", kernel_for(args), shape, stream, args);
}

#define GSAMPLE_INSTANTIATE(indptr_t, index_t)                                \
  template LaunchShape neighbor_sample_shape(                                 \
      const NeighborSampleCuda<indptr_t, index_t>&);                          \
  template void neighbor_sample(const NeighborSampleCuda<indptr_t, index_t>&, \
                                LaunchShape, StreamHandle);
GSAMPLE_INSTANTIATE(int32_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int64_t)

}  // namespace gsample
