// Sums along columns, one thread per column and feature: it adds the edges in
// order, as the CPU does.
#include "sum_columns.h"

#include "../core/sum.h"
#include "columns.cuh"
#include "launch.cuh"

namespace gsample {

constexpr int kSumThreads = 256;  // per block

template <typename indptr_t, typename value_t>
__global__ void __launch_bounds__(kSumThreads)
    sum_columns_kernel(SumColumnsCuda<indptr_t, value_t> args) {
  const int64_t size = args.n * args.width, step = grid_threads();
  for (int64_t i = global_rank(); i < size; i += step) {
    const int64_t v = i / args.width;
    ColumnBounds c =
        read_bounds(args.indptr, args.n, args.num_edges, v, v, args.report);
    for (int64_t e = 0; args.perm != nullptr && e < c.length; ++e) {
      const int64_t place = args.perm[c.start + e];
      if (place >= 0 && place < args.num_edges)
        continue;
      note_fault(args.report, Report::kId, c.start + e, place);
      c.length = 0;
    }
    args.out[i] = sum_column(args.value, args.perm, c.start, c.start + c.length,
                             args.width, i % args.width);
  }
}

template <typename indptr_t, typename value_t>
void sum_columns(const SumColumnsCuda<indptr_t, value_t>& args,
                 StreamHandle stream) {
  launch("sum_columns", sum_columns_kernel<indptr_t, value_t>,
         shape_for(kSumThreads, args.n * args.width), stream, args);
}

#define GSAMPLE_INSTANTIATE(indptr_t, value_t)                        \
  template void sum_columns(const SumColumnsCuda<indptr_t, value_t>&, \
                            StreamHandle);
GSAMPLE_INSTANTIATE(int32_t, float)
GSAMPLE_INSTANTIATE(int32_t, double)
GSAMPLE_INSTANTIATE(int64_t, float)
GSAMPLE_INSTANTIATE(int64_t, double)

}  // namespace gsample
