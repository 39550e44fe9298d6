// Synthetic graphs for benchmarks and tests.
#pragma once

#include <stdint.h>

namespace gsample {

// Configuration model: every column v has indptr[v + 1] - indptr[v] stubs at
// either end, and a uniform permutation matches the stubs.
template <typename indptr_t, typename index_t>
void configuration_model(const indptr_t* indptr,
                         int64_t num_nodes,
                         uint64_t seed,
                         index_t* indices);

// R-MAT (Chakrabarti, Zhan & Faloutsos, SDM 2004): an edge descends `scale`
// levels of the adjacency matrix, each time into one of its quadrants (a, b; c,
// d), whose cumulative probabilities are in units of 2^-16.
template <typename index_t>
void rmat_edges(int scale,
                int64_t num_edges,
                const uint32_t cumulative[3],
                uint64_t seed,
                index_t* row,
                index_t* col);

}  // namespace gsample
