#include "neighbor_launch.cuh"

namespace gsample {

GSAMPLE_INSTANTIATE_NEIGHBORS(false, true, int64_t, int64_t)
GSAMPLE_INSTANTIATE_NEIGHBORS(false, false, int64_t, int64_t)

}  // namespace gsample
