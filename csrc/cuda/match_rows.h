// The edges of columns whose rows are in a list, on a GPU: bind/ fills this in,
// match_rows.cu reads it. All pointers are to device memory.
#pragma once

#include "device.h"
#include "report.h"

namespace gsample {

// A row and its batch (or tree) as one number: batch * num_rows + row, modulo
// 2^64.
struct RowKeysCuda {
  const int64_t* rows;  // [n]
  int64_t n;
  int64_t num_rows;
  const int64_t* batch;  // [n] or null
  // Alternatively, the start of each batch's rows.
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
  const int64_t* cols;  // [num_cols], or null: all, in each batch
  int64_t num_cols;
  // The batch of each column, as in RowKeysCuda.
  const int64_t* batch;  // [num_cols] or null
  const int64_t* ptr;    // [batches + 1] or null
  int64_t batches;
  const int64_t* key;    // [num_keys] ascending
  const int64_t* place;  // [num_keys] position of a row in the list, ascending
  int64_t num_keys;      //            where keys are equal
  bool whole;            // each batch has all columns
  bool repeats;          // one edge per position of its row, not just one

  indptr_t* out_indptr;  // [num_cols + 1] or null
  row_t* row;            // [size] position of the row; the report has `size`
  int64_t* col;          // [size] or null
  int64_t* edge;         // [size]
  Report* report;
  int64_t* begin;   // [num_cols + 1] scratch: offsets of the columns'
                    // candidates
  int64_t* totals;  // [blocks] scratch
};

template <typename indptr_t, typename index_t, typename row_t>
LaunchShape match_rows_shape(
    const MatchRowsCuda<indptr_t, index_t, row_t>& args);

// Writes the scratch and the report.
template <typename indptr_t, typename index_t, typename row_t>
void match_rows_count(const MatchRowsCuda<indptr_t, index_t, row_t>& args,
                      LaunchShape shape,
                      StreamHandle stream);

// Then, unless there was a fault, writes the outputs, in a launch of the same
// shape.
template <typename indptr_t, typename index_t, typename row_t>
void match_rows_write(const MatchRowsCuda<indptr_t, index_t, row_t>& args,
                      LaunchShape shape,
                      StreamHandle stream);

}  // namespace gsample
