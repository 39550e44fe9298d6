#include "neighbor_sample.cuh"

#include "launch.cuh"

namespace gsample {

template <typename indptr_t, typename index_t>
int neighbor_sample_blocks(const NeighborSampleCuda<indptr_t, index_t>& args) {
  return cooperative_blocks(neighbor_sample_kernel<indptr_t, index_t>,
                            kSampleThreads, args.max_edges);
}

template <typename indptr_t, typename index_t>
void neighbor_sample(const NeighborSampleCuda<indptr_t, index_t>& args,
                     int blocks,
                     StreamHandle stream) {
  launch_cooperative("neighbor_sample", neighbor_sample_kernel<indptr_t, index_t>,
                     {blocks, kSampleThreads}, stream, args);
}

#define GSAMPLE_INSTANTIATE(indptr_t, index_t)                              \
  template int neighbor_sample_blocks(                                      \
      const NeighborSampleCuda<indptr_t, index_t>&);                        \
  template void neighbor_sample(const NeighborSampleCuda<indptr_t, index_t>&, \
                                int, StreamHandle);
GSAMPLE_INSTANTIATE(int32_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int64_t)

}  // namespace gsample
