// Launches of layers: weights and the task queue take registers, hence separate
// kernels, in <kind>_<weights>_<order>_<dtypes>.cu and
// <kind>_order_<dtypes>.cu.
#include "sample_hops.h"

#include "hetero_sample_hops.h"

namespace gsample {

template <bool kWeighted, typename args_t>
void draw_hops(const args_t& args, StreamHandle stream);

template <bool kWeighted, typename args_t>
void draw_hop(const args_t& args, int hop, StreamHandle stream);

template <typename args_t>
LaunchShape order_hops_shape(const args_t& args);

template <typename args_t>
void order_hops(const args_t& args,
                int first,
                int last,
                LaunchShape shape,
                StreamHandle stream);

template <typename args_t>
LaunchShape sample_hops_shape(const args_t& args) {
  return order_hops_shape(args);
}

template <typename args_t>
void sample_hops(const args_t& args, LaunchShape shape, StreamHandle stream) {
  const int hops = args.options.num_hops;
  if (args.takes_queue()) {
    args.weighted ? draw_hops<true>(args, stream)
                  : draw_hops<false>(args, stream);
    return order_hops(args, 0, hops, shape, stream);
  }
  // Heterogeneous graphs have no other frontiers.
  if constexpr (args_t::kOneType)
    for (int hop = 0; hop == 0 || hop < hops; ++hop) {
      args.weighted ? draw_hop<true>(args, hop, stream)
                    : draw_hop<false>(args, hop, stream);
      order_hops(args, hop, hop < hops ? hop + 1 : hops, shape, stream);
    }
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
