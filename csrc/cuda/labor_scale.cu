#include "labor_scale.cuh"

#include "launch.cuh"

namespace gsample {

template <typename indptr_t>
void labor_scale(const LaborScaleCuda<indptr_t>& args, StreamHandle stream) {
  launch("labor_scale", labor_scale_kernel<indptr_t>,
         shape_for(kLaborThreads, args.n), stream, args);
}

template void labor_scale(const LaborScaleCuda<int32_t>&, StreamHandle);
template void labor_scale(const LaborScaleCuda<int64_t>&, StreamHandle);

}  // namespace gsample
