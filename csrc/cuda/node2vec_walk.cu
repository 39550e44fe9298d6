#include "node2vec_walk.cuh"

#include "launch.cuh"

namespace gsample {

template <typename indptr_t, typename index_t>
void node2vec_walk(const Node2vecCuda<indptr_t, index_t>& args,
                   StreamHandle stream) {
  launch("node2vec_walk", node2vec_walk_kernel<indptr_t, index_t>,
         shape_for(kWalkThreads, args.num_seeds), stream, args);
}

#define GSAMPLE_INSTANTIATE(indptr_t, index_t)                        \
  template void node2vec_walk(const Node2vecCuda<indptr_t, index_t>&, \
                              StreamHandle);
GSAMPLE_INSTANTIATE(int32_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int64_t)

}  // namespace gsample
