// Nodes that form non-edges: negatives for link prediction.
#pragma once

#include "search.h"
#include "weighted.h"

namespace gsample {

struct NegativeArgs {
  const int64_t* id;          // [n] id that keys an item's draws
  const int64_t* cum_weight;  // of one column: by position; or null: uniform
  const int64_t* order;       // [num_nodes] node at each position, or null
  const int64_t* order_time;  // [num_nodes] its time, ascending, or null
  const int64_t* max_time;    // [n] latest time of a negative, or null
  const int64_t* anchor;      // [n] node at the other end, or null
  const int64_t* indptr;      // [num_anchors + 1] neighbours of an anchor,
  const int64_t* indices;     // [num_neighbors] ascending, or null
  int64_t n;
  int64_t num_nodes;
  int64_t num_anchors;
  int64_t num_neighbors;
  uint64_t stream;  // key of the draws
};

// After this many draws of neighbours, most candidates are neighbours: counting
// all candidates then costs about as much as reading the anchor's neighbours.
constexpr uint32_t kNegativeTries = 64;

// The candidates of one item: positions [0, limit).
struct NegativeCandidates {
  const NegativeArgs& args;
  int64_t item;
  uint64_t limit;

  GSAMPLE_HD NegativeCandidates(const NegativeArgs& a, int64_t i)
      : args(a), item(i), limit(static_cast<uint64_t>(a.num_nodes)) {
    if (args.max_time == nullptr)
      return;
    const int64_t last =
        first_above(args.order_time, 0, args.num_nodes, args.max_time[item]);
    limit = last > 0 ? static_cast<uint64_t>(last) : 1;
  }

  // Whether the neighbours of the anchor may be read.
  GSAMPLE_HD bool has_neighbors() const {
    if (args.anchor == nullptr)
      return true;
    const int64_t v = args.anchor[item];
    return v >= 0 && v < args.num_anchors && args.indptr[v] >= 0 &&
           args.indptr[v] <= args.indptr[v + 1] &&
           args.indptr[v + 1] <= args.num_neighbors;
  }
  GSAMPLE_HD int64_t node(uint64_t position) const {
    return args.order != nullptr ? args.order[position]
                                 : static_cast<int64_t>(position);
  }
  GSAMPLE_HD bool is_edge(int64_t node) const {
    if (args.anchor == nullptr)
      return false;
    const int64_t begin = args.indptr[args.anchor[item]];
    const int64_t end = args.indptr[args.anchor[item] + 1];
    const int64_t at = first_not_below(args.indices, begin, end, node);
    return at < end && args.indices[at] == node;
  }
  GSAMPLE_HD CumulativeWeights weights() const {
    return {args.cum_weight, 0, limit};
  }
  GSAMPLE_HD uint64_t weight(uint64_t position) const {
    if (args.cum_weight == nullptr)
      return 1;
    return weights().through(position) - weights().start(position);
  }
  GSAMPLE_HD uint64_t total() const {
    return args.cum_weight == nullptr ? limit : weights().total();
  }
  // The candidate at unit r of the weights.
  GSAMPLE_HD int64_t candidate(uint64_t r) const {
    if (args.cum_weight == nullptr)
      return node(r);
    return node(weights().find(r, EvenGuess(weights())(0, r)));
  }
};

// Draws among the candidates that are not neighbours by counting them.
GSAMPLE_HD int64_t count_and_draw(const NegativeCandidates& candidates,
                                  uint64_t draw) {
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

// A node for an item whose anchor's neighbours are in bounds; -1 if every
// candidate is a neighbour. If no node is early enough, the earliest is the
// only candidate.
GSAMPLE_HD int64_t draw_negative(const NegativeCandidates& candidates) {
  const NegativeArgs& args = candidates.args;
  const uint64_t total = candidates.total();
  if (total == 0)
    return -1;
  const uint64_t id = static_cast<uint64_t>(args.id[candidates.item]);
  const Stream draw{args.stream, 0, id};
  for (uint32_t slot = 0; slot < kNegativeTries; ++slot) {
    const int64_t node = candidates.candidate(bounded(draw(slot), total));
    if (!candidates.is_edge(node))
      return node;
  }
  return count_and_draw(candidates, draw(kNegativeTries));
}

}  // namespace gsample
