#include "hetero_sample_hops.h"
#include "launch_hops.cuh"

namespace gsample {

GSAMPLE_INSTANTIATE_ORDER_HOPS(HeteroHopsCuda, int64_t, int64_t)

}  // namespace gsample
