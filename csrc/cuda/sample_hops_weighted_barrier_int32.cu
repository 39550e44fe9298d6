#include "launch_hops.cuh"

namespace gsample {

GSAMPLE_INSTANTIATE_HOPS(true, false, SampleHopsCuda, int32_t, int32_t)

}  // namespace gsample
