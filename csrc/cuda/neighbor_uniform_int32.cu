#include "neighbor_launch.cuh"

namespace gsample {

GSAMPLE_INSTANTIATE_NEIGHBORS(false, true, int32_t, int32_t)
GSAMPLE_INSTANTIATE_NEIGHBORS(false, false, int32_t, int32_t)

}  // namespace gsample
