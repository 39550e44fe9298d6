// Distinct nodes, and the local id of each.
#pragma once

#include <stdint.h>

namespace gsample {

// Numbers distinct ids by first occurrence, or in ascending order. `node` [n]
// receives the ids in that order, `local` [n] the number of each id; returns
// the number of distinct ids, or -1 if an id is outside [0, num_nodes).
template <typename id_t>
int64_t unique_nodes(const id_t* id,
                     int64_t n,
                     int64_t num_nodes,
                     bool sorted,
                     int64_t* node,
                     id_t* local);

}  // namespace gsample
