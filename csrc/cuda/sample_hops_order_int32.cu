#include "launch_hops.cuh"

namespace gsample {

GSAMPLE_INSTANTIATE_ORDER_HOPS(SampleHopsCuda, int32_t, int32_t)

}  // namespace gsample
