// How the kernels of layers are started, for any kind of graph: a file for each
// dtype and kind, as each takes a compiler long.
#pragma once

#include "launch.cuh"
#include "order_hops.cuh"

namespace gsample {

template <bool kWeighted, bool kQueue, typename args_t>
LaunchShape hops_kernel_shape(const args_t& args) {
  return cooperative_shape(sample_hops_kernel<kWeighted, kQueue, args_t>,
                           kHopThreads, args.max_edges);
}

template <bool kWeighted, bool kQueue, typename args_t>
void start_hops_kernel(const args_t& args,
                       LaunchShape shape,
                       StreamHandle stream) {
  launch_cooperative("sample_hops",
                     sample_hops_kernel<kWeighted, kQueue, args_t>, shape,
                     stream, args);
}

#define GSAMPLE_INSTANTIATE_HOPS(kWeighted, kQueue, args_t, indptr_t, index_t) \
  template LaunchShape hops_kernel_shape<kWeighted, kQueue>(                   \
      const args_t<indptr_t, index_t>&);                                       \
  template void start_hops_kernel<kWeighted, kQueue>(                          \
      const args_t<indptr_t, index_t>&, LaunchShape, StreamHandle);

}  // namespace gsample
