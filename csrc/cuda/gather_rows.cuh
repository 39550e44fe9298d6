// Copies of rows, some lanes for each row, so that what they read of it is
// together: over the bus to pinned memory, reads are of whole sectors.
#pragma once

#include "gather_rows.h"
#include "report.cuh"

namespace gsample {

constexpr int kGatherThreads = 256;  // of a block

struct alignas(16) SixteenBytes {
  uint64_t half[2];
};

// Rows of `items` words, by groups of `lanes` threads.
template <typename word_t>
__global__ void __launch_bounds__(kGatherThreads)
    gather_rows_kernel(GatherRowsCuda args, int64_t items, int lanes) {
  const word_t* input = reinterpret_cast<const word_t*>(args.input);
  word_t* out = reinterpret_cast<word_t*>(args.out);
  const int64_t rank = global_rank() % lanes;
  const int64_t groups = grid_threads() / lanes;
  for (int64_t i = global_rank() / lanes; i < args.size; i += groups) {
    const int64_t row = args.index[i];
    if (row < 0 || row >= args.num_rows) {
      note_fault(args.report, Report::kId, i, row);
      continue;
    }
    for (int64_t j = rank; j < items; j += lanes)
      out[i * items + j] = input[row * items + j];
  }
}

}  // namespace gsample
