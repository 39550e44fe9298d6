#include "hetero_sample_hops.h"
#include "launch.cuh"
#include "order_hops.cuh"

namespace gsample {

template <typename args_t>
void write_hops(
    const args_t& args,
    const HopOutputs<typename args_t::Indptr, typename args_t::Index>& out,
    StreamHandle stream) {
  launch("write_hops", write_hops_kernel<args_t>,
         shape_for(kHopThreads, out.items), stream, args, out);
}

#define GSAMPLE_INSTANTIATE(args_t, indptr_t, index_t)           \
  template void write_hops(const args_t<indptr_t, index_t>&,     \
                           const HopOutputs<indptr_t, index_t>&, \
                           StreamHandle);
GSAMPLE_INSTANTIATE(SampleHopsCuda, int32_t, int32_t)
GSAMPLE_INSTANTIATE(SampleHopsCuda, int64_t, int32_t)
GSAMPLE_INSTANTIATE(SampleHopsCuda, int64_t, int64_t)
GSAMPLE_INSTANTIATE(HeteroHopsCuda, int32_t, int32_t)
GSAMPLE_INSTANTIATE(HeteroHopsCuda, int64_t, int32_t)
GSAMPLE_INSTANTIATE(HeteroHopsCuda, int64_t, int64_t)

}  // namespace gsample
