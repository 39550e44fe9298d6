// Selects the kernel for the arguments: weights take registers, and so do loops
// over types and relations. Kernels are in neighbor_<kind>_<dtypes>.cu.
#include "neighbor_sample.h"

namespace gsample {

template <bool kWeighted, bool kOne, typename indptr_t, typename index_t>
LaunchShape neighbor_kernel_shape(
    const NeighborSampleCuda<indptr_t, index_t>& args);

template <bool kWeighted, bool kOne, typename indptr_t, typename index_t>
void start_neighbor_kernel(const NeighborSampleCuda<indptr_t, index_t>& args,
                           LaunchShape shape,
                           StreamHandle stream);

template <typename indptr_t, typename index_t>
LaunchShape neighbor_sample_shape(
    const NeighborSampleCuda<indptr_t, index_t>& args) {
  const bool one = args.num_types == 1 && args.num_relations == 1;
  if (args.weighted)
    return one ? neighbor_kernel_shape<true, true>(args)
               : neighbor_kernel_shape<true, false>(args);
  return one ? neighbor_kernel_shape<false, true>(args)
             : neighbor_kernel_shape<false, false>(args);
}

template <typename indptr_t, typename index_t>
void neighbor_sample(const NeighborSampleCuda<indptr_t, index_t>& args,
                     LaunchShape shape,
                     StreamHandle stream) {
  const bool one = args.num_types == 1 && args.num_relations == 1;
  if (args.weighted)
    return one ? start_neighbor_kernel<true, true>(args, shape, stream)
               : start_neighbor_kernel<true, false>(args, shape, stream);
  return one ? start_neighbor_kernel<false, true>(args, shape, stream)
             : start_neighbor_kernel<false, false>(args, shape, stream);
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
