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
constexpr int64_t kRowsAhead = 16;      // of wide rows
constexpr size_t kPrefetchBytes = 512;  // announced of a row

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

// Where a row of `row_bytes` begins. Its index may be outside the matrix, as
// it has not been checked: only to prefetch.
const char* row_address(const void* rows, int64_t row, size_t row_bytes) {
  return reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(rows) +
                                       static_cast<uint64_t>(row) * row_bytes);
}

// Announces a row, of which the processor itself reads on after some lines.
// Inlined, as g++ drops calls of a function that does nothing but prefetch.
inline __attribute__((always_inline)) void prefetch_row(const RowTable& table,
                                                        int64_t row) {
  const char* begin = row_address(table.rows, row, table.row_bytes);
  const size_t skew = reinterpret_cast<uintptr_t>(begin) % kLine;
  const size_t bytes = skew + std::min(table.row_bytes, kPrefetchBytes);
  for (size_t i = 0; i < bytes; i += kLine)
    __builtin_prefetch(begin - skew + i);
  if (table.scale != nullptr)
    __builtin_prefetch(row_address(table.scale, row, sizeof(float)));
}

// Calls body(i, row) for the positions of a range, whose index ends at `size`.
template <typename body_t>
void for_rows(const RowTable& table,
              const int64_t* index,
              int64_t begin,
              int64_t end,
              int64_t size,
              const body_t& body) {
  for (int64_t i = begin; i < end; ++i) {
    if (i < size - kRowsAhead)
      prefetch_row(table, index[i + kRowsAhead]);
    body(i, index[i]);
  }
}

template <typename format_t>
void widen_rows(const RowTable& table,
                const int64_t* index,
                int64_t begin,
                int64_t end,
                int64_t size,
                char* out) {
  using stored_t = typename format_t::stored_t;
  const stored_t* rows = reinterpret_cast<const stored_t*>(table.rows);
  const size_t items = table.row_bytes / sizeof(stored_t);
  for_rows(table, index, begin, end, size, [&](int64_t i, int64_t row) {
    const stored_t* __restrict__ from = rows + row * items;
    float* __restrict__ to = reinterpret_cast<float*>(out) + i * items;
    const float scale = table.scale == nullptr ? 1 : table.scale[row];
    for (size_t j = 0; j < items; ++j)
      to[j] = format_t::widen(from[j], scale);
  });
}

void copy_rows(const RowTable& table,
               const int64_t* index,
               int64_t begin,
               int64_t end,
               int64_t size,
               char* out) {
  const size_t bytes = table.row_bytes;
  if (bytes == 0)  // both may be null, which memcpy must not get
    return;
  if (table.format == RowFormat::kBfloat16)
    return widen_rows<Bfloat16>(table, index, begin, end, size, out);
  if (table.format == RowFormat::kHalf)
    return widen_rows<Half>(table, index, begin, end, size, out);
  if (table.format == RowFormat::kInt8)
    return widen_rows<Int8>(table, index, begin, end, size, out);
  if (bytes == sizeof(uint32_t))
    return copy_items<uint32_t>(table.rows, index, begin, end, size, out);
  if (bytes == sizeof(uint64_t))
    return copy_items<uint64_t>(table.rows, index, begin, end, size, out);
  for_rows(table, index, begin, end, size, [&](int64_t i, int64_t row) {
    memcpy(out + i * bytes, table.rows + row * bytes, bytes);
  });
}

}  // namespace

Status gather_rows(const RowTable& table,
                   const int64_t* index,
                   int64_t size,
                   char* out,
                   int threads,
                   int64_t* where) {
  const int64_t grain = kGrainBytes / (table.row_bytes + kLine) + 1;
  std::atomic<int64_t> fault{size};
  Interrupt interrupt;
  parallel_ranges(size, grain, threads, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; block += kBlock) {
      interrupt.poll();
      if (interrupt.stopped())
        return;
      const int64_t last = std::min(block + kBlock, end);
      const int64_t valid = first_fault(index, block, last, table.num_rows);
      copy_rows(table, index, block, valid, end, out);
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
