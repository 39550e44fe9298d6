#include "match_rows.cuh"

#include "launch.cuh"

namespace gsample {

void row_keys(const RowKeysCuda& args, StreamHandle stream) {
  launch("row_keys", row_keys_kernel, shape_for(kMatchThreads, args.n), stream,
         args);
}

template <typename indptr_t, typename index_t, typename row_t>
LaunchShape match_rows_shape(
    const MatchRowsCuda<indptr_t, index_t, row_t>& args) {
  // As if columns had some edges each: how many is not known here. All blocks
  // of either launch must run at a time.
  const int64_t work = 16 * args.num_cols;
  const LaunchShape count = cooperative_shape(
      match_rows_count_kernel<indptr_t, index_t, row_t>, kMatchThreads, work);
  const LaunchShape write = cooperative_shape(
      match_rows_write_kernel<indptr_t, index_t, row_t>, kMatchThreads, work);
  return count.blocks < write.blocks ? count : write;
}

template <typename indptr_t, typename index_t, typename row_t>
void match_rows_count(const MatchRowsCuda<indptr_t, index_t, row_t>& args,
                      LaunchShape shape,
                      StreamHandle stream) {
  launch_cooperative("match_rows_count",
                     match_rows_count_kernel<indptr_t, index_t, row_t>, shape,
                     stream, args);
}

template <typename indptr_t, typename index_t, typename row_t>
void match_rows_write(const MatchRowsCuda<indptr_t, index_t, row_t>& args,
                      LaunchShape shape,
                      StreamHandle stream) {
  launch_cooperative("match_rows_write",
                     match_rows_write_kernel<indptr_t, index_t, row_t>, shape,
                     stream, args);
}

#define GSAMPLE_INSTANTIATE(indptr_t, index_t, row_t)              \
  template LaunchShape match_rows_shape(                           \
      const MatchRowsCuda<indptr_t, index_t, row_t>&);             \
  template void match_rows_count(                                  \
      const MatchRowsCuda<indptr_t, index_t, row_t>&, LaunchShape, \
      StreamHandle);                                               \
  template void match_rows_write(                                  \
      const MatchRowsCuda<indptr_t, index_t, row_t>&, LaunchShape, \
      StreamHandle);
GSAMPLE_INSTANTIATE(int32_t, int32_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int32_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int64_t, int64_t)
// Of an induced subgraph rows are always int64.
GSAMPLE_INSTANTIATE(int32_t, int32_t, int64_t)
GSAMPLE_INSTANTIATE(int64_t, int32_t, int64_t)

}  // namespace gsample
