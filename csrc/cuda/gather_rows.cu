#include "gather_rows.cuh"

#include "launch.cuh"

namespace gsample {

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
