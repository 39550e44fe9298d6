#include "forest_fire.cuh"

#include "launch.cuh"

namespace gsample {

template <typename indptr_t, typename index_t>
LaunchShape forest_fire_shape(const ForestFireCuda<indptr_t, index_t>& args) {
  return cooperative_shape(forest_fire_kernel<indptr_t, index_t>, kFireThreads,
                           args.graph.num_cols);
}

template <typename indptr_t, typename index_t>
void forest_fire(const ForestFireCuda<indptr_t, index_t>& args,
                 LaunchShape shape,
                 StreamHandle stream) {
  launch_cooperative("forest_fire", forest_fire_kernel<indptr_t, index_t>,
                     shape, stream, args);
}

#define GSAMPLE_INSTANTIATE(indptr_t, index_t)                        \
  template LaunchShape forest_fire_shape(                             \
      const ForestFireCuda<indptr_t, index_t>&);                      \
  template void forest_fire(const ForestFireCuda<indptr_t, index_t>&, \
                            LaunchShape, StreamHandle);
GSAMPLE_INSTANTIATE(int32_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int64_t)

}  // namespace gsample
