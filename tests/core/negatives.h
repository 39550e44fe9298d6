// Rows of searches, of negatives and of fire.
#pragma once

#include "core/forest_fire.h"
#include "core/negative.h"
#include "table.h"

// x, ascending numbers = first position above x, and first not below x
inline FUNCTION void put_searches(Table& table, Inputs& in) {
  constexpr int64_t kMost = 20;
  int64_t values[kMost];
  for (int64_t i = 0; i < 60; ++i) {
    const int64_t n = i % kMost, x = static_cast<int64_t>(in.next() % 40);
    table.begin(kSearch), table.put(static_cast<uint64_t>(x));
    for (int64_t j = 0; j < n; ++j) {
      values[j] = (j > 0 ? values[j - 1] : 0) + in.next() % 4;
      table.put(static_cast<uint64_t>(values[j]));
    }
    table.equals(), table.put(gsample::first_above(values, 0, n, x));
    table.put(gsample::first_not_below(values, 0, n, x));
  }
}

// stream, id, time or 0, nodes, a bit for each neighbour, weights = negative.
// Nodes stand in descending order, at the times 1, 3, 5, ...
inline FUNCTION void put_negatives(Table& table, Inputs& in) {
  constexpr int64_t kMost = 10;
  int64_t cum[kMost + 1], order[kMost], times[kMost], edges[kMost];
  for (int64_t i = 0; i < 90; ++i) {
    const int64_t n = i % kMost + 1;
    const int64_t id = static_cast<int64_t>(in.bits(63)), anchor = 0;
    const int64_t time = i % 3 == 0 ? 0 : in.next() % (2 * n + 2) + 1;
    const uint64_t stream = in.next();
    const uint64_t near = i % 4 == 0 ? 0 : in.next() | in.next() | in.next();
    int64_t begin[] = {0, 0};
    table.begin(kNegative), table.put(stream), table.put(id), table.put(time);
    table.put(n), table.put(near);
    for (int64_t j = 0; j < n; ++j) {
      order[j] = n - 1 - j, times[j] = 2 * j + 1;
      const uint64_t weight = i % 2 ? 1 : in.next() % 3;
      cum[j] = (j > 0 ? cum[j - 1] : 0) + static_cast<int64_t>(weight);
      if (near >> j & 1)
        edges[begin[1]++] = j;
      table.put(weight);
    }
    const bool timed = time > 0, even = i % 2 != 0;
    const gsample::NegativeArgs args{&id,
                                     even ? nullptr : cum,
                                     timed ? order : nullptr,
                                     times,
                                     timed ? &time : nullptr,
                                     &anchor,
                                     begin,
                                     edges,
                                     1,
                                     n,
                                     1,
                                     begin[1],
                                     stream};
    const auto candidates = gsample::NegativeCandidates(args, 0);
    table.equals(), table.put(candidates.has_neighbors());
    table.put(static_cast<uint64_t>(gsample::draw_negative(candidates)));
  }
}

// p, stream, node, edges, entry = width, draw of the entry
inline FUNCTION void put_fires(Table& table, Inputs& in) {
  for (int i = 0; i < 40; ++i) {
    const double p = 1 - 1 / (1 + static_cast<double>(in.bits(8)));
    const uint64_t stream = in.next();
    const int64_t node = static_cast<int64_t>(in.bits(63));
    const int64_t most = static_cast<int64_t>(in.bits(7));
    const int64_t entry = static_cast<int64_t>(in.bits(31));
    const auto draws = gsample::FireDraws(stream, node);
    table.begin(kFire), table.put(gsample::double_bits(p)), table.put(stream);
    table.put(node), table.put(most), table.put(entry), table.equals();
    table.put(draws.width(p, most)), table.put(draws.entry(entry));
  }
}
