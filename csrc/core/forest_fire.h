// How a fire draws: node v in stream_key(key, call, kForestFire), with id = v.
// Slot 0 draws how many of its neighbours catch fire that do not burn before
// its level; those of the least draws do, where slot 1 + i draws for its i-th
// entry. Entries of one draw are in their order.
#pragma once

#include "philox.h"

namespace gsample {

// How many neighbours a burning node sets on fire: at least j with probability
// p^j, and no more than `most`. `uniform` is in [0, 1).
GSAMPLE_HD int64_t fire_width(double p, double uniform, int64_t most) {
  int64_t width = 0;
  for (double power = p; width < most && uniform < power; power *= p)
    ++width;
  return width;
}

struct FireDraws {
  Stream draw;

  GSAMPLE_HD FireDraws(uint64_t stream, int64_t node)
      : draw{stream, 0, static_cast<uint64_t>(node)} {}
  GSAMPLE_HD int64_t width(double p, int64_t most) const {
    return fire_width(p, unit_interval(draw(0)), most);
  }
  GSAMPLE_HD uint64_t entry(int64_t i) const {
    return draw(static_cast<uint32_t>(i + 1));
  }
};

}  // namespace gsample
