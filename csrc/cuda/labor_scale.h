// The per-column scale of LABOR on a GPU: bind/ fills this in, labor_scale.cu
// reads it. All pointers are to device memory.
#pragma once

#include "device.h"
#include "report.h"

namespace gsample {

template <typename indptr_t>
struct LaborScaleCuda {
  const indptr_t* indptr;  // [n + 1]
  const double* weight;    // [size]
  const double* value;     // [size] or null
  int64_t n;
  int64_t size;
  int64_t k;

  double* scale;  // [n]
  Report* report;
};

// c_v of each column, see core/labor.h.
template <typename indptr_t>
void labor_scale(const LaborScaleCuda<indptr_t>& args, StreamHandle stream);

}  // namespace gsample
