// Fault reports of kernels. A faulty item is skipped, and the kernel continues.
#pragma once

#include "portable.h"
#include "report.h"

namespace gsample {

__device__ inline void note_fault(Report* report,
                                  int64_t fault,
                                  int64_t where,
                                  int64_t value,
                                  int64_t relation = 0) {
  int64_t none = Report::kNone;
  if (!Atomic<int64_t>(report->fault)
           .compare_exchange_strong(none, fault, kRelaxed))
    return;
  report->where = where;
  report->value = value;
  report->relation = relation;
}

// The index of a thread in its grid, and the stride to its next item.
__device__ inline int64_t global_rank() {
  return int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ inline int64_t grid_threads() {
  return int64_t{gridDim.x} * blockDim.x;
}

}  // namespace gsample
