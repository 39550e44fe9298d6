// Draws of random walks, and the distribution of a second-order step.
//
// Walker w (its position among the seeds) draws in
// stream_key(key, call, kWalk), with id = w:
//
//   root                slot           draw of a step
//   kPositionRoot       step           position among the neighbours
//   kRestartRoot        step           whether the walk restarts instead
//   kTryRoot + try      2 * step       a candidate of a second-order step
//   kTryRoot + try      2 * step + 1   whether it is accepted
//
// After kWalkTries rejected candidates, slot 2 * step of the next try draws
// among all neighbours by their masses.
#pragma once

#include "philox.h"

namespace gsample {

constexpr uint32_t kPositionRoot = 0;
constexpr uint32_t kRestartRoot = 1;
constexpr uint32_t kTryRoot = 2;
constexpr uint32_t kWalkTries = 64;
constexpr int64_t kMaxSteps = int64_t{1} << 31;

// The draws of one walker.
struct WalkDraws {
  uint64_t key;
  uint64_t walker;

  GSAMPLE_HD uint64_t position(uint32_t step) const {
    return Stream{key, kPositionRoot, walker}(step);
  }
  GSAMPLE_HD uint64_t restart(uint32_t step) const {
    return Stream{key, kRestartRoot, walker}(step);
  }
  GSAMPLE_HD uint64_t candidate(uint32_t step, uint32_t attempt) const {
    return Stream{key, kTryRoot + attempt, walker}(2 * step);
  }
  GSAMPLE_HD uint64_t coin(uint32_t step, uint32_t attempt) const {
    return Stream{key, kTryRoot + attempt, walker}(2 * step + 1);
  }
};

// A probability in [0, 1] as a multiple of 2^-63, rounded down. Multiplying by
// a power of two is exact.
GSAMPLE_HD uint64_t restart_threshold(double probability) {
  return static_cast<uint64_t>(probability * 9223372036854775808.0);
}

GSAMPLE_HD bool restarts(uint64_t draw, uint64_t threshold) {
  return (draw >> 1) < threshold;
}

// A number in (0, 1] as a positive multiple of 2^-32, rounded down.
GSAMPLE_HD uint64_t relative_weight(double weight) {
  const uint64_t fixed = static_cast<uint64_t>(weight * 4294967296.0);
  return fixed > 0 ? fixed : 1;
}

// The weights of a step from v, for a walk that came from t, relative to the
// largest (Grover & Leskovec, "node2vec", KDD 2016): 1 / p back to t, 1 to a
// neighbour of t, 1 / q to other nodes.
struct SecondOrder {
  uint64_t back;
  uint64_t near;
  uint64_t far;

  GSAMPLE_HD uint64_t least_forward() const { return near < far ? near : far; }
  GSAMPLE_HD uint64_t most_forward() const { return near < far ? far : near; }
};

// The largest weight is 1 / min(1, p, q): each relative weight is one division,
// which rounds the same everywhere and cannot overflow.
GSAMPLE_HD SecondOrder second_order(double p, double q) {
  const double least = p < q ? p : q;
  const double scale = least < 1.0 ? least : 1.0;
  return SecondOrder{relative_weight(scale / p), relative_weight(scale),
                     relative_weight(scale / q)};
}

// Accepts a candidate with its relative weight as the probability.
GSAMPLE_HD bool accepts(uint64_t coin, uint64_t weight) {
  return (coin >> 32) < weight;
}

// Edge weights have 63 bits and relative weights 33.
using Mass = unsigned __int128;

// A position in [0, n) with probability mass(i) / sum of all. Exact, like
// bounded(), up to 2^-64.
template <typename mass_t>
GSAMPLE_HD uint64_t select_by_mass(uint64_t draw,
                                   uint64_t n,
                                   const mass_t& mass) {
  Mass total = 0;
  for (uint64_t i = 0; i < n; ++i)
    total += mass(i);
  // floor(draw * total / 2^64), whose factors have 64 and at most 96 bits
  const uint64_t high = static_cast<uint64_t>(total >> 64);
  Mass r = static_cast<Mass>(draw) * high +
           mulhi64(draw, static_cast<uint64_t>(total));
  for (uint64_t i = 0; i + 1 < n; ++i) {
    const Mass m = mass(i);
    if (r < m)
      return i;
    r -= m;
  }
  return n - 1;
}

}  // namespace gsample
