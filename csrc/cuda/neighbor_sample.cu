#include "neighbor_sample.cuh"

#include "launch.cuh"

namespace gsample {

template <typename indptr_t, typename index_t>
LaunchShape neighbor_sample_shape(
    const NeighborSampleCuda<indptr_t, index_t>& args) {
  return cooperative_shape(neighbor_sample_kernel<indptr_t, index_t>,
                           kSampleThreads, args.max_edges);
}

template <typename indptr_t, typename index_t>
void neighbor_sample(const NeighborSampleCuda<indptr_t, index_t>& args,
                     LaunchShape shape,
                     StreamHandle stream) {
  launch_cooperative("neighbor_sample", neighbor_sample_kernel<indptr_t, index_t>,
                     shape, stream, args);
}

#define GSAMPLE_INSTANTIATE(indptr_t, index_t)                              \
  template LaunchShape neighbor_sample_shape(                                      \
      const NeighborSampleCuda<indptr_t, index_t>&);                        \
  template void neighbor_sample(const NeighborSampleCuda<indptr_t, index_t>&, \
                                LaunchShape, StreamHandle);
GSAMPLE_INSTANTIATE(int32_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int64_t)

}  // namespace gsample
