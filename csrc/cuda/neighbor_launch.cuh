// How the kernels of neighbour sampling are started: a file for each dtype and
// kind, as each takes a compiler long.
#pragma once

#include "launch.cuh"
#include "neighbor_sample.cuh"

namespace gsample {

template <bool kWeighted, typename indptr_t, typename index_t>
auto* neighbor_kernel_for(const NeighborSampleCuda<indptr_t, index_t>& args) {
  const bool one = args.num_types == 1 && args.num_relations == 1;
  return one ? neighbor_sample_kernel<kWeighted, true, indptr_t, index_t>
             : neighbor_sample_kernel<kWeighted, false, indptr_t, index_t>;
}

template <bool kWeighted, typename indptr_t, typename index_t>
LaunchShape neighbor_kernel_shape(
    const NeighborSampleCuda<indptr_t, index_t>& args) {
  return cooperative_shape(neighbor_kernel_for<kWeighted>(args), kSampleThreads,
                           args.max_edges);
}

template <bool kWeighted, typename indptr_t, typename index_t>
void start_neighbor_kernel(const NeighborSampleCuda<indptr_t, index_t>& args,
                           LaunchShape shape,
                           StreamHandle stream) {
  launch_cooperative("neighbor_sample", neighbor_kernel_for<kWeighted>(args),
                     shape, stream, args);
}

#define GSAMPLE_INSTANTIATE_NEIGHBORS(kWeighted, indptr_t, index_t) \
  template LaunchShape neighbor_kernel_shape<kWeighted>(            \
      const NeighborSampleCuda<indptr_t, index_t>&);                \
  template void start_neighbor_kernel<kWeighted>(                   \
      const NeighborSampleCuda<indptr_t, index_t>&, LaunchShape,    \
      StreamHandle);

}  // namespace gsample
