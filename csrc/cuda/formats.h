// Conversion to CSC, and checks of it, on a GPU: bind/ fills this in,
// formats.cu reads it. All pointers are to device memory.
#pragma once

#include "device.h"
#include "report.h"

namespace gsample {

// Edges sorted by column.
template <typename input_t, typename indptr_t, typename index_t>
struct CooToCscCuda {
  const input_t* row;   // [n]
  const input_t* col;   // [n] ascending
  const int64_t* perm;  // [n] the row of each column
  int64_t n;
  int64_t num_cols;
  int64_t num_rows;

  indptr_t* indptr;  // [num_cols + 1]
  index_t* indices;  // [n]
  Report* report;
};

template <typename input_t, typename indptr_t, typename index_t>
void coo_to_csc(const CooToCscCuda<input_t, indptr_t, index_t>& args,
                StreamHandle stream);

template <typename indptr_t, typename index_t>
struct CheckCscCuda {
  const indptr_t* indptr;  // [num_cols + 1]
  const index_t* indices;  // [num_edges]
  int64_t num_cols;
  int64_t num_edges;
  int64_t num_rows;

  int64_t* out;     // [3] the broken rule, as in cpu/formats.h
  int64_t* lowest;  // [2] scratch, INT64_MAX: lowest invalid pointer and index
};

template <typename indptr_t, typename index_t>
LaunchShape check_csc_shape(const CheckCscCuda<indptr_t, index_t>& args);

template <typename indptr_t, typename index_t>
void check_csc(const CheckCscCuda<indptr_t, index_t>& args,
               LaunchShape shape,
               StreamHandle stream);

}  // namespace gsample
