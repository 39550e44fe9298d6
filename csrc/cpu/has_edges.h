// Which of some edges a sparse matrix has.
#pragma once

#include "slice_matrix.h"

namespace gsample {

template <typename indptr_t, typename index_t>
struct HasEdgesArgs {
  Matrix<indptr_t, index_t> matrix;
  bool checks_rows;     // all rows must be in [0, num_rows)
  const int64_t* cols;  // [n] columns of it; null: the first ones
  int64_t n;
  const indptr_t* ptr;  // [n + 1] where the rows of each column begin
  const index_t* rows;  // [num_queries]
  int64_t num_queries;
  int threads;
};

// Writes for each query whether its column holds its row, found [num_queries].
// kFault: a column or a checked row is outside of the matrix, or pointers do
// not ascend.
template <typename indptr_t, typename index_t>
Status has_edges(const HasEdgesArgs<indptr_t, index_t>& args, bool* found);

}  // namespace gsample
