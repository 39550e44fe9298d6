// Column slices of a matrix on a GPU: bind/ fills this in, slice_cols.cu reads
// it. All pointers are to device memory.
#pragma once

#include "device.h"
#include "report.h"

namespace gsample {

template <typename indptr_t, typename index_t>
struct SliceColsCuda {
  const indptr_t* indptr;  // [num_cols + 1]
  const index_t* indices;  // [num_edges]
  int64_t num_cols;
  int64_t num_edges;
  const int64_t* cols;  // [n]
  int64_t n;

  indptr_t* out_indptr;  // [n + 1]
  index_t* out_indices;  // [size], from the report
  int64_t* edge;         // [size]
  int64_t size;
  Report* report;
  int64_t* totals;  // [blocks] scratch
};

template <typename indptr_t, typename index_t>
LaunchShape slice_cols_shape(const SliceColsCuda<indptr_t, index_t>& args);

// Writes `out_indptr` and the report.
template <typename indptr_t, typename index_t>
void slice_cols_indptr(const SliceColsCuda<indptr_t, index_t>& args,
                       LaunchShape shape,
                       StreamHandle stream);

// Then, unless there was a fault, writes `out_indices` and `edge`.
template <typename indptr_t, typename index_t>
void slice_cols_edges(const SliceColsCuda<indptr_t, index_t>& args,
                      StreamHandle stream);

}  // namespace gsample
