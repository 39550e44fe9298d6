#include "launch_hops.cuh"

namespace gsample {

GSAMPLE_INSTANTIATE_DRAW_HOP(false, SampleHopsCuda, int32_t, int32_t)

}  // namespace gsample
