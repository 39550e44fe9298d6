// Membership of edges in a sparse matrix.
#pragma once

#include "slice_matrix.h"

namespace gsample {

template <typename indptr_t, typename index_t>
struct HasEdgesArgs {
  Matrix<indptr_t, index_t> matrix;
  bool checks_rows;     // all rows must be in [0, num_rows)
  const int64_t* cols;  // [n] columns; null: the first n
  int64_t n;
  const indptr_t* ptr;  // [n + 1] start of the rows of each column
  const index_t* rows;  // [num_queries]
  int64_t num_queries;
  int threads;
};

// Writes for each query whether its column contains its row, found
// [num_queries]. kFault: a column or a checked row is out of range, or pointers
// descend.
template <typename indptr_t, typename index_t>
Status has_edges(const HasEdgesArgs<indptr_t, index_t>& args, bool* found);

}  // namespace gsample
