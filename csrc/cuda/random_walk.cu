#include "random_walk.cuh"

#include "launch.cuh"

namespace gsample {

template <typename indptr_t, typename index_t>
void random_walk(const RandomWalkCuda<indptr_t, index_t>& args,
                 StreamHandle stream) {
  const LaunchShape shape = shape_for(kWalkThreads, args.num_seeds);
  const bool plain = args.graph.cum_weight == nullptr && args.restart == 0;
  if (args.path != nullptr)
    launch("metapath_walk",
           random_walk_kernel<WalkKind::kPath, indptr_t, index_t>, shape,
           stream, args);
  else if (plain)
    launch("random_walk",
           random_walk_kernel<WalkKind::kPlain, indptr_t, index_t>, shape,
           stream, args);
  else
    launch("random_walk", random_walk_kernel<WalkKind::kAny, indptr_t, index_t>,
           shape, stream, args);
}

#define GSAMPLE_INSTANTIATE(indptr_t, index_t)                        \
  template void random_walk(const RandomWalkCuda<indptr_t, index_t>&, \
                            StreamHandle);
GSAMPLE_INSTANTIATE(int32_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int64_t)

}  // namespace gsample
