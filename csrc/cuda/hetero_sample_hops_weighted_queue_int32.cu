#include "hetero_sample_hops.h"
#include "launch_hops.cuh"

namespace gsample {

GSAMPLE_INSTANTIATE_DRAW_HOPS(true, HeteroHopsCuda, int32_t, int32_t)

}  // namespace gsample
