#include "hetero_sample_hops.h"
#include "launch_hops.cuh"

namespace gsample {

GSAMPLE_INSTANTIATE_DRAW_HOPS(true, HeteroHopsCuda, int64_t, int64_t)

}  // namespace gsample
