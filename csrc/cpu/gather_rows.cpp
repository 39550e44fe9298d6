#include "gather_rows.h"

#include <string.h>

#include <algorithm>
#include <atomic>

namespace gsample {

namespace {

constexpr size_t kGrainBytes = size_t{1} << 18;  // copied by one task
constexpr size_t kLine = 64;                     // least that a read costs
constexpr int64_t kBlock = 1024;                 // rows between two polls
constexpr int64_t kPrefetch = 256;               // how far ahead
constexpr int64_t kStride = 16;

// The first of some rows that is outside [0, num_rows), `end` if none is.
int64_t first_fault(const int64_t* index,
                    int64_t begin,
                    int64_t end,
                    int64_t num_rows) {
  bool fault = false;
  for (int64_t i = begin; i < end; ++i)
    fault |= static_cast<uint64_t>(index[i]) >= static_cast<uint64_t>(num_rows);
  if (!fault)
    return end;
  return std::find_if(index + begin, index + end,
                      [=](int64_t row) { return row < 0 || row >= num_rows; }) -
         index;
}

// Rows of one number, of which runs follow each other. The first read of each
// kStride is announced, so far ahead that several runs are waited for at a
// time; to announce all of them takes longer than to wait. `index` ends at
// `size`.
template <typename item_t>
void copy_items(const char* input,
                const int64_t* index,
                int64_t begin,
                int64_t end,
                int64_t size,
                char* out) {
  const item_t* from = reinterpret_cast<const item_t*>(input);
  item_t* to = reinterpret_cast<item_t*>(out);
  const int64_t ahead = std::min(end, size - kPrefetch);
  for (int64_t i = begin; i < end; i += kStride) {
    if (i < ahead)
      __builtin_prefetch(from + index[i + kPrefetch]);
    const int64_t last = std::min(i + kStride, end);
    for (int64_t j = i; j < last; ++j)
      to[j] = from[index[j]];
  }
}

void copy_rows(const char* input,
               size_t row_bytes,
               const int64_t* index,
               int64_t begin,
               int64_t end,
               int64_t size,
               char* out) {
  if (row_bytes == sizeof(uint32_t))
    return copy_items<uint32_t>(input, index, begin, end, size, out);
  if (row_bytes == sizeof(uint64_t))
    return copy_items<uint64_t>(input, index, begin, end, size, out);
  if (row_bytes == 0)  // both may be null, which memcpy must not get
    return;
  for (int64_t i = begin; i < end; ++i)
    memcpy(out + i * row_bytes, input + index[i] * row_bytes, row_bytes);
}

}  // namespace

Status gather_rows(const char* input,
                   int64_t num_rows,
                   size_t row_bytes,
                   const int64_t* index,
                   int64_t size,
                   char* out,
                   int threads,
                   int64_t* where) {
  const int64_t grain = kGrainBytes / (row_bytes + kLine) + 1;
  std::atomic<int64_t> fault{size};
  Interrupt interrupt;
  parallel_ranges(size, grain, threads, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; block += kBlock) {
      interrupt.poll();
      if (interrupt.stopped())
        return;
      const int64_t last = std::min(block + kBlock, end);
      const int64_t valid = first_fault(index, block, last, num_rows);
      copy_rows(input, row_bytes, index, block, valid, end, out);
      if (valid < last) {
        int64_t first = fault.load();
        while (valid < first && !fault.compare_exchange_weak(first, valid)) {
        }
        return;
      }
    }
  });
  if (interrupt.stopped())
    return Status::kInterrupted;
  *where = fault.load();
  return *where < size ? Status::kFault : Status::kDone;
}

}  // namespace gsample
