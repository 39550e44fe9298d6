#include "neighbor_launch.cuh"

namespace gsample {

GSAMPLE_INSTANTIATE_NEIGHBORS(false, int64_t, int32_t)

}  // namespace gsample
