// Weighted selection in integer arithmetic. The weights of a column are
// converted to fixed point and summed once (`cum`), so that a draw is a search
// without floating-point operations: the same bits on every device.
#pragma once

#include "philox.h"

namespace gsample {

constexpr int kWeightBits = 62;  // the sum of a column stays below 2^63
constexpr uint64_t kWindow = 8;  // positions that a search checks first

GSAMPLE_HD int ceil_log2(uint64_t n) {
  int bits = 0;
  while (bits < 63 && (uint64_t{1} << bits) < n)
    ++bits;
  return bits;
}

// floor(weight * 2^shift), at least 1 for a positive weight, computed from the
// bits of the number: independent of rounding mode and contraction. `shift` is
// at most the fixed_point_shift of a weight that is not smaller, so the
// mantissa moves at most 9 bits to the left.
GSAMPLE_HD uint64_t fixed_point(double weight, int shift) {
  const uint64_t bits = double_bits(weight);
  const int exponent = static_cast<int>(bits >> 52 & 0x7FF);
  const uint64_t normal = exponent != 0;
  const uint64_t mantissa = (bits & ((uint64_t{1} << 52) - 1)) | normal << 52;
  const int right = 9 + 1075 - shift - exponent - (exponent == 0);
  const uint64_t value = (mantissa << 9) >> (right < 0    ? 0
                                             : right < 63 ? right
                                                          : 63);
  return value + ((value == 0) & (mantissa != 0));
}

// The shift under which `n` weights of at most `max_weight` sum to at most
// 2^kWeightBits (+ n for the weights raised to 1).
GSAMPLE_HD int fixed_point_shift(double max_weight, uint64_t n) {
  const int exponent = static_cast<int>(double_bits(max_weight) >> 52 & 0x7FF);
  // max_weight < 2^(exponent - 1022)
  return kWeightBits - ceil_log2(n) - ((exponent == 0 ? 1 : exponent) - 1022);
}

// After the sums of all columns, `cum` has one bit per column: whether any of
// its weights is zero. If none is, no search for positive weights is needed.
constexpr int64_t kColumnsPerWord = 64;

// The arguments are untrusted: the sum saturates on overflow, and no tensor has
// that size.
GSAMPLE_HD int64_t cum_weight_size(int64_t num_edges, int64_t num_cols) {
  const int64_t words =
      num_cols / kColumnsPerWord + (num_cols % kColumnsPerWord > 0);
  return num_edges <= INT64_MAX - words ? num_edges + words : INT64_MAX;
}

GSAMPLE_HD bool has_zero_weight(const int64_t* zeros, int64_t column) {
  return zeros[column / kColumnsPerWord] >> column % kColumnsPerWord & 1;
}

// A range of a column's cumulative fixed-point weights: `cum[i]` sums the
// weights up to and including i, `before` those that come before the range.
struct CumulativeWeights {
  const int64_t* cum;
  uint64_t before;
  uint64_t n;

  GSAMPLE_HD uint64_t through(uint64_t i) const {
    return static_cast<uint64_t>(cum[i]) - before;
  }
  GSAMPLE_HD uint64_t start(uint64_t i) const {
    return i == 0 ? 0 : through(i - 1);
  }
  GSAMPLE_HD uint64_t total() const { return n == 0 ? 0 : through(n - 1); }

  // 1 if sum > r, else 0: the sign of r - sum, as both are below 2^63. Not a
  // comparison: GCC 12 vectorises consecutive comparisons as 0 and -1, so that
  // the window below counted to -8 on aarch64.
  GSAMPLE_HD static uint64_t exceeds(uint64_t sum, uint64_t r) {
    return (r - sum) >> 63;
  }

  // The start of the window around a guess.
  GSAMPLE_HD uint64_t window(uint64_t guess) const {
    const uint64_t last = n < kWindow ? 0 : n - kWindow;
    const uint64_t first = guess < kWindow / 2 ? 0 : guess - kWindow / 2;
    return first < last ? first : last;
  }

  // The first i with through(i) > r, for r < total(). If the guess is near,
  // counting in a window around it finds the answer without a branch to
  // mispredict. Galloping from there makes any guess correct.
  GSAMPLE_HD uint64_t find(uint64_t r, uint64_t guess) const {
    const uint64_t size = n < kWindow ? n : kWindow;
    const uint64_t first = window(guess);
    uint64_t above = 0;
    if (size == kWindow) {
      for (uint64_t i = 0; i < kWindow; ++i)
        above += exceeds(through(first + i), r);
    } else {
      for (uint64_t i = 0; i < size; ++i)
        above += exceeds(through(first + i), r);
    }
    const uint64_t below = size - above;
    if (below < size && (below > 0 || first == 0))
      return first + below;
    uint64_t low = 0, high = n - 1;  // invariant: low <= answer <= high
    uint64_t step = kWindow;
    if (below == 0) {
      high = first;
      for (; high >= step && through(high - step) > r; step *= 2)
        high -= step;
      low = high >= step ? high - step + 1 : 0;
    } else {
      low = first + size;
      if (low > high)  // r exceeds the sum: `cum` is not a running sum
        return high;
      for (; high - low >= step && through(low + step - 1) <= r; step *= 2)
        low += step;
      high = high - low >= step ? low + step - 1 : high;
    }
    while (low < high) {
      const uint64_t middle = low + (high - low) / 2;
      if (through(middle) > r)
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  }
};

// Guesses the position of a weight r for weights of similar magnitude.
struct EvenGuess {
  double density;  // positions per unit of weight

  GSAMPLE_HD explicit EvenGuess(const CumulativeWeights& w)
      : density(static_cast<double>(w.n) / static_cast<double>(w.total())) {}
  GSAMPLE_HD uint64_t operator()(uint32_t, uint64_t r) const {
    return static_cast<uint64_t>(static_cast<double>(r) * density);
  }
};

// k independent positions with probability weight / total. Returns their
// number: 0 if all weights are 0. `guess(slot, r)` only decides where the
// search for r begins.
template <typename draw_t, typename guess_t, typename pos_t>
GSAMPLE_HD uint32_t select_weighted_with_replacement(const draw_t& draw,
                                                     const guess_t& guess,
                                                     const CumulativeWeights& w,
                                                     uint32_t k,
                                                     pos_t* out) {
  const uint64_t sum = w.total();
  if (sum == 0)
    return 0;
  for (uint32_t slot = 0; slot < k; ++slot) {
    const uint64_t r = bounded(draw(slot), sum);
    out[slot] = static_cast<pos_t>(w.find(r, guess(slot, r)));
  }
  return k;
}

// A selected position, in select_weighted_without_replacement.
struct TakenWeight {
  uint64_t start;
  uint64_t weight;
};

// Successive sampling: slot j selects a position with probability proportional
// to its weight among the remaining ones (the distribution of Efraimidis &
// Spirakis, "Weighted random sampling with a reservoir", IPL 2006). Instead of
// rejecting selected positions, the draw is made in the remaining weight and
// moved past the selected intervals, which `taken` [k] holds in order: exactly
// one draw per slot. Returns the number of selected positions: fewer than k if
// fewer positions have a positive weight.
template <typename draw_t, typename guess_t, typename pos_t>
GSAMPLE_HD uint32_t
select_weighted_without_replacement(const draw_t& draw,
                                    const guess_t& guess,
                                    const CumulativeWeights& w,
                                    uint32_t k,
                                    pos_t* out,
                                    TakenWeight* taken) {
  const uint64_t sum = w.total();
  uint64_t left = sum;
  for (uint32_t slot = 0; slot < k; ++slot) {
    if (left == 0)
      return slot;
    uint64_t r = bounded(draw(slot), left);
    uint32_t rank = 0;
    for (uint32_t j = 0; j < slot; ++j) {  // intervals in order: no break
      const bool passed = r >= taken[j].start;
      r += passed ? taken[j].weight : 0;
      rank += passed;
    }
    const uint64_t i = w.find(r, guess(slot, r));
    const TakenWeight interval{w.start(i), w.through(i) - w.start(i)};
    for (uint32_t j = slot; j > rank; --j)
      taken[j] = taken[j - 1];
    taken[rank] = interval;
    out[slot] = static_cast<pos_t>(i);
    left -= interval.weight;
  }
  return k;
}

}  // namespace gsample
