// Fire that spreads along edges until no node catches it.
#pragma once

#include <vector>

#include "walk_graph.h"

namespace gsample {

// How many neighbours a burning node sets on fire: at least j with probability
// p^j, and no more than `most`. `uniform` is in [0, 1).
inline int64_t fire_width(double p, double uniform, int64_t most) {
  int64_t width = 0;
  for (double power = p; width < most && uniform < power; power *= p)
    ++width;
  return width;
}

// Appends the nodes that burn, from the distinct nodes of `burnt` on, level by
// level. Slot 0 of a node draws how many of its neighbours catch fire that do
// not burn before its level; those of the least draws do, where slot 1 + i
// draws for its i-th entry.
template <typename indptr_t, typename index_t>
Status forest_fire(const WalkGraph<indptr_t, index_t>& graph,
                   double p,
                   uint64_t stream,
                   std::vector<int64_t>* burnt,
                   WalkFault* fault);

}  // namespace gsample
