#include "neighbor_launch.cuh"

namespace gsample {

GSAMPLE_INSTANTIATE_NEIGHBORS(true, true, int32_t, int32_t)

}  // namespace gsample
