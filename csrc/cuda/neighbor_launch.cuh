// Launches of the kernels of neighbour sampling: one file per dtype and kind,
// as each compiles slowly.
#pragma once

#include "launch.cuh"
#include "neighbor_sample.cuh"

namespace gsample {

// Blocks per SM: more would spill registers.
constexpr int blocks_of(bool weighted, bool one) {
  return !weighted && one ? 3 : 2;
}

template <bool kWeighted, bool kOne, typename indptr_t, typename index_t>
__global__ void __launch_bounds__(kSampleThreads, blocks_of(kWeighted, kOne))
    neighbor_sample_kernel(NeighborSampleCuda<indptr_t, index_t> args) {
  GSAMPLE_SHARED(SampleShared, shared);
  NeighborSampler<kWeighted, kOne, indptr_t, index_t>(args, shared).run();
}

template <bool kWeighted, bool kOne, typename indptr_t, typename index_t>
LaunchShape neighbor_kernel_shape(
    const NeighborSampleCuda<indptr_t, index_t>& args) {
  return cooperative_shape(
      neighbor_sample_kernel<kWeighted, kOne, indptr_t, index_t>,
      kSampleThreads, args.max_edges);
}

template <bool kWeighted, bool kOne, typename indptr_t, typename index_t>
void start_neighbor_kernel(const NeighborSampleCuda<indptr_t, index_t>& args,
                           LaunchShape shape,
                           StreamHandle stream) {
  launch_cooperative("neighbor_sample",
                     neighbor_sample_kernel<kWeighted, kOne, indptr_t, index_t>,
                     shape, stream, args);
}

#define GSAMPLE_INSTANTIATE_NEIGHBORS(kWeighted, kOne, indptr_t, index_t) \
  template LaunchShape neighbor_kernel_shape<kWeighted, kOne>(            \
      const NeighborSampleCuda<indptr_t, index_t>&);                      \
  template void start_neighbor_kernel<kWeighted, kOne>(                   \
      const NeighborSampleCuda<indptr_t, index_t>&, LaunchShape,          \
      StreamHandle);

}  // namespace gsample
