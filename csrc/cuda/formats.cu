#include "formats.cuh"

#include "launch.cuh"

namespace gsample {

template <typename input_t, typename indptr_t, typename index_t>
void coo_to_csc(const CooToCscCuda<input_t, indptr_t, index_t>& args,
                StreamHandle stream) {
  launch("coo_to_csc", coo_to_csc_kernel<input_t, indptr_t, index_t>,
         shape_for(kFormatThreads, args.n + args.num_cols + 1), stream, args);
}

template <typename indptr_t, typename index_t>
LaunchShape check_csc_shape(const CheckCscCuda<indptr_t, index_t>& args) {
  return cooperative_shape(check_csc_kernel<indptr_t, index_t>, kFormatThreads,
                           args.num_cols + args.num_edges);
}

template <typename indptr_t, typename index_t>
void check_csc(const CheckCscCuda<indptr_t, index_t>& args,
               LaunchShape shape,
               StreamHandle stream) {
  launch_cooperative("check_csc", check_csc_kernel<indptr_t, index_t>, shape,
                     stream, args);
}

#define GSAMPLE_INSTANTIATE(indptr_t, index_t)                                 \
  template void coo_to_csc(const CooToCscCuda<int32_t, indptr_t, index_t>&,    \
                           StreamHandle);                                      \
  template void coo_to_csc(const CooToCscCuda<int64_t, indptr_t, index_t>&,    \
                           StreamHandle);                                      \
  template LaunchShape check_csc_shape(                                        \
      const CheckCscCuda<indptr_t, index_t>&);                                 \
  template void check_csc(const CheckCscCuda<indptr_t, index_t>&, LaunchShape, \
                          StreamHandle);
GSAMPLE_INSTANTIATE(int32_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int32_t)
GSAMPLE_INSTANTIATE(int64_t, int64_t)

}  // namespace gsample
