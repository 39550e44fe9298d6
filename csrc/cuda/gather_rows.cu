// Copies of rows, with several lanes per row, so that reads coalesce: over the
// bus to pinned memory, reads are whole sectors.
#include "gather_rows.h"

#include "launch.cuh"
#include "report.cuh"

namespace gsample {

constexpr int kGatherThreads = 256;  // per block

struct alignas(16) SixteenBytes {
  uint64_t half[2];
};

// Copies the words of a row.
template <typename word_t>
struct Copy {
  using stored_t = word_t;
  using out_t = word_t;
  static constexpr bool kScaled = false;
  GSAMPLE_HD static word_t convert(const word_t& x, float) { return x; }
};

// Converts the numbers of a row to float32.
template <typename format_t>
struct Widen {
  using stored_t = typename format_t::stored_t;
  using out_t = float;
  static constexpr bool kScaled = sizeof(stored_t) == 1;
  GSAMPLE_HD static float convert(stored_t x, float scale) {
    return format_t::widen(x, scale);
  }
};

// Rows of `items` words, by groups of 2^shift threads: a 64-bit division would
// take as long as the row. A compiler also divides to unroll a loop with an
// unknown step, hence the iteration count.
template <typename move_t>
__global__ void __launch_bounds__(kGatherThreads)
    gather_rows_kernel(GatherRowsCuda args, int64_t items, int shift) {
  const auto* input =
      reinterpret_cast<const typename move_t::stored_t*>(args.input);
  auto* out = reinterpret_cast<typename move_t::out_t*>(args.out);
  const int lanes = 1 << shift;
  const int64_t rank = threadIdx.x & (lanes - 1);  // blocks are whole groups
  const int64_t groups = grid_threads() >> shift;
  const int64_t turns = (items - rank + lanes - 1) >> shift;
  for (int64_t i = global_rank() >> shift; i < args.size; i += groups) {
    const int64_t row = args.index[i];
    if (row < 0 || row >= args.num_rows) {
      note_fault(args.report, Report::kId, i, row);
      continue;
    }
    const float scale = move_t::kScaled ? args.scale[row] : 1;
    const auto* from = input + row * items + rank;
    auto* to = out + i * items + rank;
    for (int64_t turn = 0; turn < turns; ++turn)
      to[turn << shift] = move_t::convert(from[turn << shift], scale);
  }
}

namespace {

template <typename move_t>
void start(const GatherRowsCuda& args, StreamHandle stream) {
  const int64_t items =
      args.row_bytes / static_cast<int64_t>(sizeof(typename move_t::stored_t));
  int shift = 0;
  while (shift < 5 && 1 << shift < items)
    ++shift;
  launch("gather_rows", gather_rows_kernel<move_t>,
         shape_for(kGatherThreads, args.size << shift), stream, args, items,
         shift);
}

}  // namespace

void gather_rows(const GatherRowsCuda& args, StreamHandle stream) {
  if (args.format == RowFormat::kBfloat16)
    return start<Widen<Bfloat16>>(args, stream);
  if (args.format == RowFormat::kHalf)
    return start<Widen<Half>>(args, stream);
  if (args.format == RowFormat::kInt8)
    return start<Widen<Int8>>(args, stream);
  // All rows share the alignment of their length and their memory.
  const uint64_t bits = static_cast<uint64_t>(args.row_bytes) |
                        reinterpret_cast<uintptr_t>(args.input) |
                        reinterpret_cast<uintptr_t>(args.out);
  if (bits % 16 == 0)
    return start<Copy<SixteenBytes>>(args, stream);
  if (bits % 8 == 0)
    return start<Copy<uint64_t>>(args, stream);
  if (bits % 4 == 0)
    return start<Copy<uint32_t>>(args, stream);
  if (bits % 2 == 0)
    return start<Copy<uint16_t>>(args, stream);
  start<Copy<uint8_t>>(args, stream);
}

}  // namespace gsample
