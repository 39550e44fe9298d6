#include "neighbor_launch.cuh"

namespace gsample {

GSAMPLE_INSTANTIATE_NEIGHBORS(true, false, int64_t, int32_t)

}  // namespace gsample
