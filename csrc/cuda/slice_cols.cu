#include "slice_cols.cuh"

#include "launch.cuh"

namespace gsample {

template <typename indptr_t, typename index_t>
LaunchShape slice_cols_shape(const SliceColsCuda<indptr_t, index_t>& args) {
  return cooperative_shape(slice_cols_indptr_kernel<indptr_t, index_t>,
                           kSliceThreads, args.n);
}

template <typename indptr_t, typename index_t>
void slice_cols_indptr(const SliceColsCuda<indptr_t, index_t>& args,
                       LaunchShape shape,
                       StreamHandle stream) {
  launch_cooperative("slice_cols_indptr",
                     slice_cols_indptr_kernel<indptr_t, index_t>, shape, stream,
                     args);
}

template <typename indptr_t, typename index_t>
void slice_cols_edges(const SliceColsCuda<indptr_t, index_t>& args,
                      StreamHandle stream) {
  launch("slice_cols_edges", slice_cols_edges_kernel<indptr_t, index_t>,
         shape_for(kSliceThreads, args.size), stream, args);
}

#define GSAMPLE_INSTANTIATE(indptr_t, index_t)                             \
  template LaunchShape slice_cols_shape(                                   \
      const SliceColsCuda<indptr_t, index_t>&);                            \
  template void slice_cols_indptr(const SliceColsCuda<indptr_t, index_t>&, \
                                  LaunchShape, StreamHandle);              \
  template void slice_cols_edges(const SliceColsCuda<indptr_t, index_t>&,  \
                                 StreamHandle);
GSAMPLE_INSTANTIATE(int32_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int64_t)

}  // namespace gsample
