// Sums along columns on a GPU: bind/ fills this in, sum_columns.cu reads it.
// All pointers are to device memory.
#pragma once

#include "device.h"
#include "report.h"

namespace gsample {

template <typename indptr_t, typename value_t>
struct SumColumnsCuda {
  const indptr_t* indptr;  // [n + 1]
  const value_t* value;    // [num_edges, width]
  const int64_t* perm;     // [num_edges] storage position of each edge, or null
  int64_t n;
  int64_t num_edges;
  int64_t width;

  value_t* out;  // [n, width]
  Report* report;
};

template <typename indptr_t, typename value_t>
void sum_columns(const SumColumnsCuda<indptr_t, value_t>& args,
                 StreamHandle stream);

}  // namespace gsample
