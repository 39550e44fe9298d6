// Draws of a forest fire: node v draws in stream_key(key, call, kForestFire),
// with id = v. Slot 0 draws the number of neighbours it sets on fire, among
// those that do not burn at a lower level; slot 1 + i draws for its i-th entry,
// and the entries with the smallest draws burn. Ties break by entry order.
#pragma once

#include "philox.h"

namespace gsample {

// The number of neighbours that a burning node sets on fire: at least j with
// probability p^j, and at most `most`. `uniform` is in [0, 1).
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
