// Uniform selection of positions in [0, n). `draw(slot)` returns the 64-bit
// draw of a slot; slots are independent.
#pragma once

#include "philox.h"

namespace gsample {

// k independent positions.
template <typename draw_t, typename pos_t>
GSAMPLE_HD void select_with_replacement(const draw_t& draw,
                                        uint64_t n,
                                        uint32_t k,
                                        pos_t* out) {
  for (uint32_t slot = 0; slot < k; ++slot)
    out[slot] = static_cast<pos_t>(bounded(draw(slot), n));
}

// A uniform k-subset, k <= n, by Floyd's algorithm (Bentley & Floyd,
// "Programming pearls: a sample of brilliance", CACM 1987): slot j draws t
// uniformly in [0, n - k + j], and selects n - k + j if t is already selected.
// `taken(t, j)` is whether out[0 .. j) contains t.
template <typename draw_t, typename pos_t, typename taken_t>
GSAMPLE_HD void select_floyd(const draw_t& draw,
                             uint64_t n,
                             uint32_t k,
                             pos_t* out,
                             const taken_t& taken) {
  for (uint32_t slot = 0; slot < k; ++slot) {
    const uint64_t last = n - k + slot;
    const pos_t t = static_cast<pos_t>(bounded(draw(slot), last + 1));
    out[slot] = taken(t, slot) ? static_cast<pos_t>(last) : t;
  }
}

// `taken` by linear search: no extra memory, k^2 / 2 comparisons.
template <typename pos_t>
struct TakenLinear {
  const pos_t* out;
  GSAMPLE_HD bool operator()(pos_t t, uint32_t count) const {
    bool found = false;
    for (uint32_t i = 0; i < count; ++i)
      found |= out[i] == t;
    return found;
  }
};

template <typename draw_t, typename pos_t>
GSAMPLE_HD void select_without_replacement(const draw_t& draw,
                                           uint64_t n,
                                           uint32_t k,
                                           pos_t* out) {
  select_floyd(draw, n, k, out, TakenLinear<pos_t>{out});
}

}  // namespace gsample
