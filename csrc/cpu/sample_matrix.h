// Random selection in a sparse matrix: edges of each column, or whole rows.
#pragma once

#include <stdint.h>

#include "../core/philox.h"
#include "buffer.h"
#include "parallel.h"

namespace gsample {

template <typename indptr_t>
struct SampleColsArgs {
  const indptr_t* indptr;     // of all columns
  const int64_t* cols;        // [num_cols] which of them, or null: the first
  const int64_t* id;          // [num_cols] whose draws, or null: the column's
  const int64_t* cum_weight;  // core/weighted.h, or null: uniform
  int64_t num_cols;
  int64_t all_cols;
  int64_t num_edges;
  int64_t k;  // edges a column; -1 takes all
  bool replace;
  const uint64_t* key;  // the stream of each batch
  const int64_t* ptr;   // where columns of each batch start, or null: one batch
  int threads;

  int64_t column(int64_t i) const { return cols == nullptr ? i : cols[i]; }
};

// Writes indptr [num_cols + 1] of the result. kFault: a column is outside
// [0, all_cols), `indptr` is malformed, or cannot count the result.
template <typename indptr_t>
Status sample_cols_indptr(const SampleColsArgs<indptr_t>& args,
                          indptr_t* indptr);

// The positions of the selected edges in slot order; all edges of a column
// come in the order of the matrix.
template <typename indptr_t>
Status sample_cols_edges(const SampleColsArgs<indptr_t>& args,
                         const indptr_t* indptr,
                         int64_t* edge);

// Selects `k` of `n` nodes, with the weights `cum` [n] (running sums, of which
// `has_zero` says whether a weight is zero) or uniformly; without replacement,
// k must not exceed n. Returns how many were selected: fewer where less have a
// positive weight.
int64_t sample_nodes(const int64_t* cum,
                     bool has_zero,
                     int64_t n,
                     int64_t k,
                     bool replace,
                     uint64_t key,
                     int64_t* out);

}  // namespace gsample
