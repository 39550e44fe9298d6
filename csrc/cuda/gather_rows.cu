// Copies of rows, some lanes for each row, so that what they read of it is
// together: over the bus to pinned memory, reads are of whole sectors.
#include "gather_rows.h"

#include "launch.cuh"
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

namespace {

template <typename word_t>
void start(const GatherRowsCuda& args, StreamHandle stream) {
  const int64_t items = args.row_bytes / static_cast<int64_t>(sizeof(word_t));
  int lanes = 1;
  while (lanes < 32 && lanes < items)
    lanes *= 2;
  launch("gather_rows", gather_rows_kernel<word_t>,
         shape_for(kGatherThreads, args.size * lanes), stream, args, items,
         lanes);
}

}  // namespace

void gather_rows(const GatherRowsCuda& args, StreamHandle stream) {
  // All rows are aligned as their length and their memory are.
  const uint64_t bits = static_cast<uint64_t>(args.row_bytes) |
                        reinterpret_cast<uintptr_t>(args.input) |
                        reinterpret_cast<uintptr_t>(args.out);
  if (bits % 16 == 0)
    return start<SixteenBytes>(args, stream);
  if (bits % 8 == 0)
    return start<uint64_t>(args, stream);
  if (bits % 4 == 0)
    return start<uint32_t>(args, stream);
  if (bits % 2 == 0)
    return start<uint16_t>(args, stream);
  start<uint8_t>(args, stream);
}

}  // namespace gsample
