#include "unique_nodes.cuh"

#include "launch.cuh"

namespace gsample {

template <typename id_t>
LaunchShape unique_nodes_shape(const UniqueNodesCuda<id_t>& args, bool sorted) {
  return sorted ? cooperative_shape(unique_ascending_kernel<id_t>,
                                    kUniqueThreads, args.n + args.num_words())
                : cooperative_shape(unique_nodes_kernel<id_t>, kUniqueThreads,
                                    args.n);
}

template <typename id_t>
void unique_nodes(const UniqueNodesCuda<id_t>& args,
                  bool sorted,
                  LaunchShape shape,
                  StreamHandle stream) {
  if (sorted)
    launch_cooperative("unique_ascending", unique_ascending_kernel<id_t>, shape,
                       stream, args);
  else
    launch_cooperative("unique_nodes", unique_nodes_kernel<id_t>, shape, stream,
                       args);
}

#define GSAMPLE_INSTANTIATE(id_t)                                              \
  template LaunchShape unique_nodes_shape(const UniqueNodesCuda<id_t>&, bool); \
  template void unique_nodes(const UniqueNodesCuda<id_t>&, bool, LaunchShape,  \
                             StreamHandle);
GSAMPLE_INSTANTIATE(int32_t)
GSAMPLE_INSTANTIATE(int64_t)

}  // namespace gsample
