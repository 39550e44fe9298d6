// The kernel for some arguments: weights and the queue of tasks take registers.
// Kernels are in <kind>_<weights>_<order>_<dtypes>.cu.
#include "hetero_sample_hops.h"
#include "sample_hops.h"

namespace gsample {

template <bool kWeighted, bool kQueue, typename args_t>
LaunchShape hops_kernel_shape(const args_t& args);

template <bool kWeighted, bool kQueue, typename args_t>
void start_hops_kernel(const args_t& args,
                       LaunchShape shape,
                       StreamHandle stream);

template <typename args_t>
LaunchShape sample_hops_shape(const args_t& args) {
  if (args.weighted)
    return args.takes_queue() ? hops_kernel_shape<true, true>(args)
                              : hops_kernel_shape<true, false>(args);
  return args.takes_queue() ? hops_kernel_shape<false, true>(args)
                            : hops_kernel_shape<false, false>(args);
}

template <typename args_t>
void sample_hops(const args_t& args, LaunchShape shape, StreamHandle stream) {
  if (args.weighted)
    return args.takes_queue()
               ? start_hops_kernel<true, true>(args, shape, stream)
               : start_hops_kernel<true, false>(args, shape, stream);
  return args.takes_queue()
             ? start_hops_kernel<false, true>(args, shape, stream)
             : start_hops_kernel<false, false>(args, shape, stream);
}

#define GSAMPLE_INSTANTIATE(args_t, indptr_t, index_t)                      \
  template LaunchShape sample_hops_shape(const args_t<indptr_t, index_t>&); \
  template void sample_hops(const args_t<indptr_t, index_t>&, LaunchShape,  \
                            StreamHandle);
GSAMPLE_INSTANTIATE(SampleHopsCuda, int32_t, int32_t)
GSAMPLE_INSTANTIATE(SampleHopsCuda, int64_t, int32_t)
GSAMPLE_INSTANTIATE(SampleHopsCuda, int64_t, int64_t)
GSAMPLE_INSTANTIATE(HeteroHopsCuda, int32_t, int32_t)
GSAMPLE_INSTANTIATE(HeteroHopsCuda, int64_t, int32_t)
GSAMPLE_INSTANTIATE(HeteroHopsCuda, int64_t, int64_t)

}  // namespace gsample
