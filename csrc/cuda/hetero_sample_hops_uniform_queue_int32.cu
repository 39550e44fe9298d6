#include "hetero_sample_hops.h"
#include "launch_hops.cuh"

namespace gsample {

GSAMPLE_INSTANTIATE_HOPS(false, true, HeteroHopsCuda, int32_t, int32_t)

}  // namespace gsample
