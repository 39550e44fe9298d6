// Uniform selection in several columns at once, one in each lane.
#pragma once

#include <stdint.h>

namespace gsample {

// Replaces the draw of each slot, draws[slot * stride + lane], by a position
// in [0, length[lane]): what core/select.h selects with these draws. A column
// gives count[lane] of them; what stands in other slots means nothing.
// `length` and `count` are padded to kLaneGroup, without replacement
// count <= length, and both are less than 2^32.
void select_lanes(const uint64_t* length,
                  const uint64_t* count,
                  bool replace,
                  int lanes,
                  int slots,
                  int stride,
                  uint64_t* draws);

}  // namespace gsample
