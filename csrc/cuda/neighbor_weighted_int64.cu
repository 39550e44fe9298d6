#include "neighbor_launch.cuh"

namespace gsample {

GSAMPLE_INSTANTIATE_NEIGHBORS(true, true, int64_t, int64_t)

}  // namespace gsample
