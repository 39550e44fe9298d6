// Launches of the layer kernels, for any kind of graph: one file per dtype and
// kernel, as each compiles slowly.
#pragma once

#include "draw_hops.cuh"
#include "launch.cuh"
#include "order_hops.cuh"

namespace gsample {

template <bool kWeighted, typename args_t>
void draw_hops(const args_t& args, StreamHandle stream) {
  const auto kernel = draw_hops_kernel<kWeighted, args_t>;
  launch_cooperative("draw_hops", kernel,
                     cooperative_shape(kernel, kHopThreads, args.max_edges),
                     stream, args);
}

template <bool kWeighted, typename args_t>
void draw_hop(const args_t& args, int hop, StreamHandle stream) {
  const auto kernel = draw_hop_kernel<kWeighted, args_t>;
  launch_cooperative("draw_hop", kernel,
                     cooperative_shape(kernel, kHopThreads, args.max_edges),
                     stream, args, hop);
}

template <typename args_t>
LaunchShape order_hops_shape(const args_t& args) {
  return cooperative_shape(order_hops_kernel<args_t>, kHopThreads,
                           args.max_edges);
}

template <typename args_t>
void order_hops(const args_t& args,
                int first,
                int last,
                LaunchShape shape,
                StreamHandle stream) {
  launch_cooperative("order_hops", order_hops_kernel<args_t>, shape, stream,
                     args, first, last);
}

#define GSAMPLE_INSTANTIATE_DRAW_HOPS(kWeighted, args_t, indptr_t, index_t) \
  template void draw_hops<kWeighted>(const args_t<indptr_t, index_t>&,      \
                                     StreamHandle);
#define GSAMPLE_INSTANTIATE_DRAW_HOP(kWeighted, args_t, indptr_t, index_t) \
  template void draw_hop<kWeighted>(const args_t<indptr_t, index_t>&, int, \
                                    StreamHandle);
#define GSAMPLE_INSTANTIATE_ORDER_HOPS(args_t, indptr_t, index_t)          \
  template LaunchShape order_hops_shape(const args_t<indptr_t, index_t>&); \
  template void order_hops(const args_t<indptr_t, index_t>&, int, int,     \
                           LaunchShape, StreamHandle);

}  // namespace gsample
