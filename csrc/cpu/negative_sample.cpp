#include "negative_sample.h"

#include <algorithm>

#include "../core/weighted.h"
#include "parallel.h"

namespace gsample {

namespace {

// After so many draws that were edges most candidates are: counting them all
// then costs no more than the anchor's neighbours are many.
constexpr uint32_t kTries = 64;

// The candidates of one item: positions [0, limit).
struct Candidates {
  const NegativeArgs& args;
  int64_t item;
  uint64_t limit;

  Candidates(const NegativeArgs& a, int64_t i)
      : args(a), item(i), limit(a.num_nodes) {
    if (args.max_time == nullptr)
      return;
    const int64_t* last = std::upper_bound(
        args.order_time, args.order_time + args.num_nodes, args.max_time[item]);
    limit = std::max<int64_t>(1, last - args.order_time);
  }

  CumulativeWeights weights() const { return {args.cum_weight, 0, limit}; }
  int64_t node(uint64_t position) const {
    return args.order != nullptr ? args.order[position] : position;
  }
  bool is_edge(int64_t node) const {
    if (args.indptr == nullptr)
      return false;
    const int64_t anchor = args.anchor[item];
    return std::binary_search(args.indices + args.indptr[anchor],
                              args.indices + args.indptr[anchor + 1], node);
  }
  uint64_t weight(uint64_t position) const {
    if (args.cum_weight == nullptr)
      return 1;
    return weights().through(position) - weights().start(position);
  }
  uint64_t total() const {
    return args.cum_weight == nullptr ? limit : weights().total();
  }
  uint64_t find(uint64_t r) const {
    if (args.cum_weight == nullptr)
      return r;
    return weights().find(r, EvenGuess(weights())(0, r));
  }
};

// Draws among the candidates that are no edges by counting them.
int64_t draw_exactly(const Candidates& candidates, uint64_t draw) {
  uint64_t allowed = 0;
  for (uint64_t i = 0; i < candidates.limit; ++i)
    if (!candidates.is_edge(candidates.node(i)))
      allowed += candidates.weight(i);
  if (allowed == 0)
    return -1;
  uint64_t r = bounded(draw, allowed);
  for (uint64_t i = 0; i < candidates.limit; ++i) {
    if (candidates.is_edge(candidates.node(i)))
      continue;
    if (r < candidates.weight(i))
      return candidates.node(i);
    r -= candidates.weight(i);
  }
  return -1;
}

int64_t draw_one(const NegativeArgs& args, int64_t item) {
  const Candidates candidates(args, item);
  const uint64_t total = candidates.total();
  if (total == 0)
    return -1;
  const Stream draw{args.stream, 0, static_cast<uint64_t>(args.id[item])};
  for (uint32_t slot = 0; slot < kTries; ++slot) {
    const uint64_t position = candidates.find(bounded(draw(slot), total));
    const int64_t node = candidates.node(position);
    if (!candidates.is_edge(node))
      return node;
  }
  return draw_exactly(candidates, draw(kTries));
}

}  // namespace

void negative_sample(const NegativeArgs& args, int64_t* out) {
  parallel_ranges(args.n, 512, max_threads(), [&](int64_t a, int64_t b) {
    for (int64_t i = a; i < b; ++i)
      out[i] = draw_one(args, i);
  });
}

}  // namespace gsample
