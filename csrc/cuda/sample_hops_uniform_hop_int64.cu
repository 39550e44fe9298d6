#include "launch_hops.cuh"

namespace gsample {

GSAMPLE_INSTANTIATE_DRAW_HOP(false, SampleHopsCuda, int64_t, int64_t)

}  // namespace gsample
