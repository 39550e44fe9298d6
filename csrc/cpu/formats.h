// Conversion to and checks of the compressed sparse column format.
#pragma once

#include <stdint.h>

namespace gsample {

// Stable counting sort of edges (row[i], col[i]) by column. Writes
// indptr [num_cols + 1], indices [n] and perm [n], the edge at each position.
// Returns the first position whose column is outside [0, num_cols), or -1.
template <typename input_t, typename indptr_t, typename index_t>
int64_t coo_to_csc(const input_t* row,
                   const input_t* col,
                   int64_t n,
                   int64_t num_cols,
                   indptr_t* indptr,
                   index_t* indices,
                   int64_t* perm);

// The first rule that a CSC violates, with the position and the value.
struct CscFault {
  enum Rule { kNone, kFirst, kDescends, kLast, kIndices };
  int64_t rule;
  int64_t where;
  int64_t value;
};

template <typename indptr_t>
CscFault check_indptr(const indptr_t* indptr,
                      int64_t num_cols,
                      int64_t num_edges);

template <typename indptr_t, typename index_t>
CscFault check_csc(const indptr_t* indptr,
                   const index_t* indices,
                   int64_t num_cols,
                   int64_t num_edges,
                   int64_t num_rows);

// Running sums of the fixed-point weights of each column, followed by one bit
// per column (core/weighted.h). Returns false if a weight is negative or not
// finite.
template <typename indptr_t, typename weight_t>
bool cumulate_weights(const indptr_t* indptr,
                      const weight_t* weight,
                      int64_t num_cols,
                      int64_t* cum_weight);

// The number of positive weights, and the largest; count is -1 if a weight is
// negative or not finite.
struct WeightSummary {
  int64_t count;
  double max_weight;
};

template <typename weight_t>
WeightSummary summarize_weights(const weight_t* weight, int64_t n);

// The positions of the positive weights, index [count], and their running sums
// and bit, as cumulate_weights() makes them for one column of only these
// weights.
template <typename weight_t>
void positive_weights(const weight_t* weight,
                      int64_t n,
                      const WeightSummary& summary,
                      int64_t* index,
                      int64_t* cum_weight);

}  // namespace gsample
