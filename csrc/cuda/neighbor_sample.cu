// The kernel for some arguments: weights take registers, and so do loops over
// types and relations. Kernels are in neighbor_<kind>_<dtypes>.cu.
#include "neighbor_sample.h"

namespace gsample {

template <bool kWeighted, typename indptr_t, typename index_t>
LaunchShape neighbor_kernel_shape(
    const NeighborSampleCuda<indptr_t, index_t>& args);

template <bool kWeighted, typename indptr_t, typename index_t>
void start_neighbor_kernel(const NeighborSampleCuda<indptr_t, index_t>& args,
                           LaunchShape shape,
                           StreamHandle stream);

template <typename indptr_t, typename index_t>
LaunchShape neighbor_sample_shape(
    const NeighborSampleCuda<indptr_t, index_t>& args) {
  return args.weighted ? neighbor_kernel_shape<true>(args)
                       : neighbor_kernel_shape<false>(args);
}

template <typename indptr_t, typename index_t>
void neighbor_sample(const NeighborSampleCuda<indptr_t, index_t>& args,
                     LaunchShape shape,
                     StreamHandle stream) {
  return args.weighted ? start_neighbor_kernel<true>(args, shape, stream)
                       : start_neighbor_kernel<false>(args, shape, stream);
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
