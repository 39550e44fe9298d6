// How the kernels of layers are started, for any kind of graph.
#pragma once

#include "launch.cuh"
#include "order_hops.cuh"

namespace gsample {

// The kernel for these arguments: each of these takes registers.
template <typename args_t>
auto* hops_kernel_for(const args_t& args) {
  if (args.weighted)
    return args.takes_queue() ? sample_hops_kernel<true, true, args_t>
                              : sample_hops_kernel<true, false, args_t>;
  return args.takes_queue() ? sample_hops_kernel<false, true, args_t>
                            : sample_hops_kernel<false, false, args_t>;
}

template <typename args_t>
LaunchShape sample_hops_shape(const args_t& args) {
  return cooperative_shape(hops_kernel_for(args), kHopThreads, args.max_edges);
}

template <typename args_t>
void sample_hops(const args_t& args, LaunchShape shape, StreamHandle stream) {
  launch_cooperative("sample_hops", hops_kernel_for(args), shape, stream, args);
}

template <typename args_t>
void write_hops(
    const args_t& args,
    const HopOutputs<typename args_t::Indptr, typename args_t::Index>& out,
    StreamHandle stream) {
  launch("write_hops", write_hops_kernel<args_t>,
         shape_for(kHopThreads, out.items), stream, args, out);
}

#define GSAMPLE_INSTANTIATE_HOPS(args_t, indptr_t, index_t)                 \
  template LaunchShape sample_hops_shape(const args_t<indptr_t, index_t>&); \
  template void sample_hops(const args_t<indptr_t, index_t>&, LaunchShape,  \
                            StreamHandle);                                  \
  template void write_hops(const args_t<indptr_t, index_t>&,                \
                           const HopOutputs<indptr_t, index_t>&,            \
                           StreamHandle);

}  // namespace gsample
