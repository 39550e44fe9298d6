#include "launch_hops.cuh"

namespace gsample {

GSAMPLE_INSTANTIATE_DRAW_HOPS(true, SampleHopsCuda, int64_t, int32_t)

}  // namespace gsample
