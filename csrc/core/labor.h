// The equation that LABOR solves for each column.
#pragma once

#include "hd.h"

namespace gsample {

// The c for which sum_u 1 / min(1, c w_u) = n^2 / k over the n > k weights of
// a column; 1 where n <= k. Weights and 1 / weights are positive and finite.
//
// If f of them reach 1, it is f + sum 1 / (c w_u) = n^2 / k over the others.
// Capping one more weight at 1 raises c, so that no capped weight falls below 1
// again: f grows each round.
GSAMPLE_HD double labor_scale(const double* weight, int64_t n, int64_t k) {
  if (n <= k)
    return 1;
  const double target = static_cast<double>(n) * n / k;  // > n > f
  double scale = 0;
  for (int64_t full = -1;;) {
    int64_t reached = 0;
    double rest = 0;
    for (int64_t i = 0; i < n; ++i) {
      const bool held = weight[i] * scale >= 1;
      reached += held;
      rest += held ? 0 : 1 / weight[i];
    }
    if (reached <= full)
      return scale;
    full = reached;
    scale = rest / (target - full);
  }
}

// The same for sums of values a_u > 0: a sample of k neighbours estimates the
// sum with variance (1 / k - 1 / n) (sum a)^2, for the c with
//   sum_u a_u^2 / min(1, c w_u) = (1 / k - 1 / n) (sum a)^2 + sum a^2.
// Values are divided by the largest, so that their squares are finite.
GSAMPLE_HD double labor_scale(const double* weight,
                              const double* value,
                              int64_t n,
                              int64_t k) {
  if (n <= k)
    return 1;
  double most = 0, sum = 0;
  for (int64_t i = 0; i < n; ++i)
    most = value[i] > most ? value[i] : most;
  for (int64_t i = 0; i < n; ++i)
    sum += value[i] / most;
  const double excess = sum * sum * (1.0 / k - 1.0 / n);
  double scale = 0;
  for (int64_t full = -1;;) {
    int64_t reached = 0;
    double rest = 0, beyond = excess;  // and the squares that are not capped
    for (int64_t i = 0; i < n; ++i) {
      const double a = value[i] / most;
      const bool held = weight[i] * scale >= 1;
      reached += held;
      beyond += held ? 0 : a * a;
      rest += held ? 0 : a * a / weight[i];
    }
    if (reached <= full)
      return scale;
    full = reached;
    scale = rest / beyond;
  }
}

}  // namespace gsample
