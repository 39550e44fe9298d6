#include "launch_hops.cuh"

namespace gsample {

GSAMPLE_INSTANTIATE_ORDER_HOPS(SampleHopsCuda, int64_t, int32_t)

}  // namespace gsample
