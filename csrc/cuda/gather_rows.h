// Copies of rows on a GPU: bind/ fills this in, gather_rows.cu reads it.
#pragma once

#include "../core/widen.h"
#include "device.h"
#include "report.h"

namespace gsample {

struct GatherRowsCuda {
  const char* input;  // [num_rows, row_bytes], may be pinned host memory
  int64_t num_rows;
  int64_t row_bytes;
  RowFormat format;      // kBytes: copied unchanged; else converted to float32
  const float* scale;    // [num_rows], of kInt8, may be pinned host memory
  const int64_t* index;  // [size]
  int64_t size;
  char* out;  // [size, row_bytes], or as many float32
  Report* report;
};

// Starts the copy of row index[i] of `input` to row i of `out`.
void gather_rows(const GatherRowsCuda& args, StreamHandle stream);

}  // namespace gsample
