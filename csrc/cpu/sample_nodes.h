// Random selection of nodes.
#pragma once

#include <stdint.h>

namespace gsample {

// Selects `k` of `n` nodes, with weights `cum` [n] (running sums; `has_zero`: a
// weight is zero) or uniformly; without replacement, k must not exceed n.
// Returns the number of selected nodes: fewer if fewer have a positive weight.
int64_t sample_nodes(const int64_t* cum,
                     bool has_zero,
                     int64_t n,
                     int64_t k,
                     bool replace,
                     uint64_t key,
                     int64_t* out);

}  // namespace gsample
