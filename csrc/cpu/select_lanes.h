// Vectorised uniform selection, one column per lane.
#pragma once

#include <stdint.h>

namespace gsample {

// Replaces the draw of each slot, draws[slot * stride + lane], by a position in
// [0, length[lane]): the selection of core/select.h with these draws. A column
// has count[lane] slots; other slots are undefined. `length` and `count` are
// padded to kLaneGroup, without replacement count <= length, and both are less
// than 2^32.
void select_lanes(const uint64_t* length,
                  const uint64_t* count,
                  bool replace,
                  int lanes,
                  int slots,
                  int stride,
                  uint64_t* draws);

}  // namespace gsample
