// Selection of the edges of a mask, column by column.
#pragma once

#include <stdint.h>

namespace gsample {

// Writes the pointers [num_cols + 1] of the edges with a mask. Returns false if
// `indptr` does not ascend from 0 to `num_edges`.
template <typename indptr_t>
bool count_masked(const indptr_t* indptr,
                  const bool* mask,  // [num_edges]
                  int64_t num_cols,
                  int64_t num_edges,
                  int threads,
                  indptr_t* out_indptr);

// Writes their positions [out_indptr[num_cols]], in order.
template <typename indptr_t>
void select_masked(const indptr_t* indptr,
                   const bool* mask,
                   int64_t num_cols,
                   const indptr_t* out_indptr,
                   int threads,
                   int64_t* edge);

}  // namespace gsample
