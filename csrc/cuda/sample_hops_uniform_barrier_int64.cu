#include "launch_hops.cuh"

namespace gsample {

GSAMPLE_INSTANTIATE_HOPS(false, false, SampleHopsCuda, int64_t, int64_t)

}  // namespace gsample
