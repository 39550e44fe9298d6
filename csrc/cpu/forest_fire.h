// Fire that spreads along edges until it burns out, see core/forest_fire.h.
#pragma once

#include <vector>

#include "../core/forest_fire.h"
#include "walk_graph.h"

namespace gsample {

// Appends the burning nodes, level by level; `burnt` starts with distinct
// nodes.
template <typename indptr_t, typename index_t>
Status forest_fire(const WalkGraph<indptr_t, index_t>& graph,
                   double p,
                   uint64_t stream,
                   std::vector<int64_t>* burnt,
                   WalkFault* fault);

}  // namespace gsample
