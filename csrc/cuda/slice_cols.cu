// Column slices of a matrix. One cooperative launch computes the start of each
// column in the slice; then one thread copies each edge, whatever its column:
// hubs spread over many threads.
#include "slice_cols.h"

#include "columns.cuh"
#include "launch.cuh"

namespace gsample {

constexpr int kSliceThreads = 256;  // per block

struct SliceShared {
  BlockSums sums;
};

template <typename indptr_t, typename index_t>
__global__ void __launch_bounds__(kSliceThreads)
    slice_cols_indptr_kernel(SliceColsCuda<indptr_t, index_t> args) {
  GSAMPLE_SHARED(SliceShared, shared);
  const auto count = [&](int64_t i) {
    return read_bounds(args.indptr, args.num_cols, args.num_edges, args.cols[i],
                       i, args.report)
        .length;
  };
  write_offsets(count, args.n, args.out_indptr, args.totals, shared.sums,
                args.report);
}

template <typename indptr_t, typename index_t>
__global__ void __launch_bounds__(kSliceThreads)
    slice_cols_edges_kernel(SliceColsCuda<indptr_t, index_t> args) {
  const int64_t step = grid_threads();
  for (int64_t p = global_rank(); p < args.size; p += step) {
    const int64_t i = column_of(args.out_indptr, args.n, p);
    const int64_t edge = args.indptr[args.cols[i]] + (p - args.out_indptr[i]);
    args.out_indices[p] = args.indices[edge];
    args.edge[p] = edge;
  }
}

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
