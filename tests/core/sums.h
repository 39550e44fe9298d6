// Rows of sums of floating-point numbers.
#pragma once

#include "core/labor.h"
#include "core/sum.h"
#include "table.h"

inline FUNCTION void put_sums(Table& table, Inputs& in) {
  using gsample::double_bits;
  constexpr int64_t kMost = 12;
  double weight[kMost];
  int64_t order[kMost];
  for (int64_t i = 0; i < 40; ++i) {
    const int64_t n = i % kMost + 1, k = 1 + in.next() % 4;
    for (int64_t e = 0; e < n; ++e) {
      weight[e] = 1 / (1 + static_cast<double>(in.bits(20)));
      order[e] = n - 1 - e;
    }
    table.begin(kSumColumn);
    for (int64_t e = n - 1; e >= 0; --e)
      table.put(double_bits(weight[e]));
    table.equals();
    table.put(double_bits(gsample::sum_column(weight, order, 0, n, 1, 0)));
    table.begin(kLaborScale), table.put(k);
    for (int64_t e = 0; e < n; ++e)
      table.put(double_bits(weight[e]));
    table.equals();
    table.put(double_bits(gsample::labor_scale(weight, n, k)));
  }
}
