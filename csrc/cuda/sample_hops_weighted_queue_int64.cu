#include "launch_hops.cuh"

namespace gsample {

GSAMPLE_INSTANTIATE_HOPS(true, true, SampleHopsCuda, int64_t, int64_t)

}  // namespace gsample
