// Copies of rows of a matrix larger than the caches.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "../core/widen.h"
#include "parallel.h"

namespace gsample {

struct RowTable {
  const char* rows;  // [num_rows, row_bytes]
  int64_t num_rows;
  size_t row_bytes;
  RowFormat format;    // kBytes: copied unchanged; else converted to float32
  const float* scale;  // [num_rows], of kInt8
};

// Copies row index[i] of a table to row i of `out`, for i < size. Stops with
// kFault at an index outside [0, num_rows); *where is the first such position.
Status gather_rows(const RowTable& table,
                   const int64_t* index,
                   int64_t size,
                   char* out,
                   int threads,
                   int64_t* where);

}  // namespace gsample
