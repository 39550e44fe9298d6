#include "launch_hops.cuh"

namespace gsample {

GSAMPLE_INSTANTIATE_HOPS(false, true, SampleHopsCuda, int32_t, int32_t)

}  // namespace gsample
