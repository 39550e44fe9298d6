#include "sum_columns.cuh"

#include "launch.cuh"

namespace gsample {

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
