#include "order_hops.cuh"

#include "launch.cuh"

namespace gsample {

namespace {

// The kernel for these arguments: weights take registers, so that uniform
// sampling has a kernel of its own.
template <typename indptr_t, typename index_t>
auto* kernel_for(const SampleHopsCuda<indptr_t, index_t>& args) {
  return args.graph.cum_weight != nullptr
             ? sample_hops_kernel<true, indptr_t, index_t>
             : sample_hops_kernel<false, indptr_t, index_t>;
}

}  // namespace

template <typename indptr_t, typename index_t>
LaunchShape sample_hops_shape(const SampleHopsCuda<indptr_t, index_t>& args) {
  return cooperative_shape(kernel_for(args), kHopThreads, args.max_edges);
}

template <typename indptr_t, typename index_t>
void sample_hops(const SampleHopsCuda<indptr_t, index_t>& args,
                 LaunchShape shape,
                 StreamHandle stream) {
  launch_cooperative("sample_hops", kernel_for(args), shape, stream, args);
}

template <typename indptr_t, typename index_t>
void write_hop(const SampleHopsCuda<indptr_t, index_t>& args,
               const HopOutput<indptr_t, index_t>& out,
               StreamHandle stream) {
  launch("write_hop", write_hop_kernel<indptr_t, index_t>,
         shape_for(kHopThreads, out.num_edges + out.num_columns), stream, args,
         out);
}

#define GSAMPLE_INSTANTIATE(indptr_t, index_t)                        \
  template LaunchShape sample_hops_shape(                             \
      const SampleHopsCuda<indptr_t, index_t>&);                      \
  template void sample_hops(const SampleHopsCuda<indptr_t, index_t>&, \
                            LaunchShape, StreamHandle);               \
  template void write_hop(const SampleHopsCuda<indptr_t, index_t>&,   \
                          const HopOutput<indptr_t, index_t>&, StreamHandle);
GSAMPLE_INSTANTIATE(int32_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int64_t)

}  // namespace gsample
