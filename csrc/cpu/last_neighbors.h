// The last edges of columns before a time, in rows of equal length.
#pragma once

#include "parallel.h"

namespace gsample {

template <typename indptr_t, typename index_t>
struct LastNeighborsArgs {
  const indptr_t* indptr;    // [num_cols + 1]
  const index_t* indices;    // [num_edges]
  const int64_t* edge_time;  // [num_edges], ascending in a column
  const int32_t* edge_id;    // [num_edges] id of each edge, or null:
  const int64_t* long_id;    // the same in 64 bits; both null: the position
  const int64_t* cols;       // [n] columns; -1 is an empty column
  const int64_t* until;      // [n] end of each interval
  int64_t num_cols;
  int64_t num_edges;
  int64_t n;
  int64_t k;
  bool has_window;
  int64_t window;     // the interval starts at until - window
  bool closed_start;  // which end belongs to the interval
  bool closed_end;
  bool ascending;  // latest edge last, in the last slot; else first
  int threads;

  int64_t id(int64_t e) const {
    return edge_id != nullptr   ? edge_id[e]
           : long_id != nullptr ? long_id[e]
                                : e;
  }
};

// Writes rows of k slots: neighbors [n, k], edges [n, k] unless null, and times
// [n, k]; empty slots are -1, with time 0. kFault: a column is outside [-1,
// num_cols) or its edges are out of range.
template <typename indptr_t, typename index_t>
Status last_neighbors(const LastNeighborsArgs<indptr_t, index_t>& args,
                      index_t* neighbor,
                      int64_t* edge,
                      int64_t* time);

}  // namespace gsample
