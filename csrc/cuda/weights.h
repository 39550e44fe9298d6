// Weights in fixed point and their sums, on a GPU: bind/ fills this in,
// weights.cu reads it. All pointers are to device memory.
#pragma once

#include "device.h"
#include "report.h"

namespace gsample {

// core/weighted.h: sums along each column, and one bit per column.
template <typename indptr_t, typename weight_t>
struct CumulateWeightsCuda {
  const indptr_t* indptr;  // [num_cols + 1]
  const weight_t* weight;  // [n]
  int64_t num_cols;
  int64_t n;

  int64_t* cum_weight;  // [cum_weight_size(n, num_cols)]
  Report* report;
  int64_t* totals;     // [blocks] scratch
  uint64_t* max_bits;  // [num_cols] scratch: bits of the largest weight
  int64_t* before;     // [num_cols] scratch: the sum before the column
};

// The same for only the positive weights of each batch.
template <typename weight_t>
struct PositiveWeightsCuda {
  const weight_t* weight;  // [n]
  const int64_t* ptr;      // [batches + 1] start of each batch's weights
  int64_t n;
  int64_t batches;

  int64_t* index;       // [n]; the report has the number of used entries
  int64_t* cum_weight;  // [cum_weight_size(n, batches)], likewise
  int64_t* out_ptr;     // [batches + 1] start of each batch's positive weights
  Report* report;
  int64_t* totals;     // [blocks] scratch
  uint64_t* max_bits;  // [batches] scratch
  int64_t* before;     // [batches] scratch
};

template <typename args_t>
LaunchShape weights_shape(const args_t& args);

template <typename args_t>
void sum_weights(const args_t& args, LaunchShape shape, StreamHandle stream);

}  // namespace gsample
