// The edges of columns whose rows are in a list, on a GPU: what bind/ fills in,
// and what match_rows.cu reads. All pointers are to the device's memory.
#pragma once

#include "device.h"
#include "report.h"

namespace gsample {

// Of a row and its batch (or tree) one number: batch * num_rows + row, modulo
// 2^64.
struct RowKeysCuda {
  const int64_t* rows;  // [n]
  int64_t n;
  int64_t num_rows;
  const int64_t* batch;  // [n] or null
  // Or where the rows of each batch begin.
  const int64_t* ptr;  // [batches + 1] or null
  int64_t batches;

  int64_t* key;  // [n]
  Report* report;
};

void row_keys(const RowKeysCuda& args, StreamHandle stream);

template <typename indptr_t, typename index_t, typename row_t>
struct MatchRowsCuda {
  const indptr_t* indptr;  // [all_cols + 1]
  const index_t* indices;  // [num_edges]
  int64_t num_rows;
  int64_t all_cols;
  int64_t num_edges;
  const int64_t* cols;  // [num_cols], or null: all of them, for each batch
  int64_t num_cols;
  // The batch of each column, as of RowKeysCuda.
  const int64_t* batch;  // [num_cols] or null
  const int64_t* ptr;    // [batches + 1] or null
  int64_t batches;
  const int64_t* key;    // [num_keys] ascending
  const int64_t* place;  // [num_keys] where a row is in the list, ascending
  int64_t num_keys;      //            where keys are equal
  bool whole;            // each batch has all columns
  bool repeats;          // an edge for each place of its row, not for one

  indptr_t* out_indptr;  // [num_cols + 1] or null
  row_t* row;            // [size] place of the row, `size` from the report
  int64_t* col;          // [size] or null
  int64_t* edge;         // [size]
  Report* report;
  int64_t* begin;   // [num_cols + 1] scratch: candidates of a column
  int64_t* totals;  // [blocks] scratch
};

template <typename indptr_t, typename index_t, typename row_t>
LaunchShape match_rows_shape(
    const MatchRowsCuda<indptr_t, index_t, row_t>& args);

// Writes scratch and the report.
template <typename indptr_t, typename index_t, typename row_t>
void match_rows_count(const MatchRowsCuda<indptr_t, index_t, row_t>& args,
                      LaunchShape shape,
                      StreamHandle stream);

// Then, unless there was a fault, in a launch of the same shape, the outputs.
template <typename indptr_t, typename index_t, typename row_t>
void match_rows_write(const MatchRowsCuda<indptr_t, index_t, row_t>& args,
                      LaunchShape shape,
                      StreamHandle stream);

}  // namespace gsample
