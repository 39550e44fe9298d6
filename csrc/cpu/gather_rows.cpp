#include "gather_rows.h"

#include <string.h>

#include <algorithm>
#include <atomic>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gsample {

namespace {

constexpr size_t kGrainBytes = size_t{1} << 18;  // copied by one task
constexpr size_t kLine = 64;                     // fewest bytes that a read
                                                 // costs
constexpr int64_t kBlock = 1024;                 // rows between two polls for
                                                 // Ctrl-C
constexpr int64_t kPrefetch = 256;               // prefetch distance
constexpr int64_t kStride = 16;
constexpr int64_t kRowsAhead = 16;      // of wide rows
constexpr size_t kPrefetchBytes = 512;  // prefetched of a row

// The first row outside [0, num_rows), or `end`.
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

// Rows of one number, which come in runs. The first read of each kStride is
// prefetched, far enough ahead that several runs are in flight; prefetching
// every read takes longer than waiting. `index` ends at `size`.
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

// The address of a row of `row_bytes`. Its index is unchecked and may be out of
// range: use for prefetching only.
const char* row_address(const void* rows, int64_t row, size_t row_bytes) {
  return reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(rows) +
                                       static_cast<uint64_t>(row) * row_bytes);
}

// Prefetches the first lines of a row; the hardware prefetcher reads on.
// Inlined, as g++ drops calls of a function that only prefetches.
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

// Calls body(i, row) for a range of positions; the index ends at `size`.
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

// Widens the numbers of a row.
using WidenRow = void (*)(const char* from,
                          size_t items,
                          float scale,
                          float* to);

template <typename format_t>
inline __attribute__((always_inline)) void widen_row(const char* row,
                                                     size_t items,
                                                     float scale,
                                                     float* __restrict__ to) {
  const auto* __restrict__ from =
      reinterpret_cast<const typename format_t::stored_t*>(row);
  for (size_t j = 0; j < items; ++j)
    to[j] = format_t::widen(from[j], scale);
}

template <typename format_t>
void widen_row_plain(const char* row, size_t items, float scale, float* to) {
  widen_row<format_t>(row, items, scale, to);
}

#if defined(__x86_64__)

template <typename format_t>
__attribute__((target("avx2"))) void widen_row_avx2(const char* row,
                                                    size_t items,
                                                    float scale,
                                                    float* to) {
  widen_row<format_t>(row, items, scale, to);
}

constexpr size_t kLanes = 8;  // numbers of a vector

__attribute__((target("avx2,f16c"), always_inline)) inline void
widen_lanes(const char* row, size_t first, float* to) {
  const void* from = row + first * sizeof(Half::stored_t);
  const __m128i lanes = _mm_loadu_si128(static_cast<const __m128i*>(from));
  _mm256_storeu_ps(to + first, _mm256_cvtph_ps(lanes));
}

// The last vector overlaps the one before if the row ends within it.
__attribute__((target("avx2,f16c"))) void widen_row_f16c(const char* row,
                                                         size_t items,
                                                         float scale,
                                                         float* to) {
  if (items < kLanes)
    return widen_row<Half>(row, items, scale, to);
  for (size_t j = 0; j + kLanes < items; j += kLanes)
    widen_lanes(row, j, to);
  widen_lanes(row, items - kLanes, to);
}

#endif

WidenRow find_widen_row(RowFormat format) {
#if defined(__x86_64__)
  const bool wide = __builtin_cpu_supports("avx2");
  if (format == RowFormat::kHalf && wide && __builtin_cpu_supports("f16c"))
    return widen_row_f16c;
  if (format == RowFormat::kBfloat16 && wide)
    return widen_row_avx2<Bfloat16>;
  if (format == RowFormat::kInt8 && wide)
    return widen_row_avx2<Int8>;
#endif
  if (format == RowFormat::kHalf)
    return widen_row_plain<Half>;
  return format == RowFormat::kInt8 ? widen_row_plain<Int8>
                                    : widen_row_plain<Bfloat16>;
}

void widen_rows(const RowTable& table,
                const int64_t* index,
                int64_t begin,
                int64_t end,
                int64_t size,
                char* out) {
  const WidenRow widen = find_widen_row(table.format);
  const size_t bytes = table.row_bytes;
  const size_t items = table.format == RowFormat::kInt8 ? bytes : bytes / 2;
  for_rows(table, index, begin, end, size, [&](int64_t i, int64_t row) {
    const float scale = table.scale == nullptr ? 1 : table.scale[row];
    widen(table.rows + row * bytes, items, scale,
          reinterpret_cast<float*>(out) + i * items);
  });
}

void copy_rows(const RowTable& table,
               const int64_t* index,
               int64_t begin,
               int64_t end,
               int64_t size,
               char* out) {
  const size_t bytes = table.row_bytes;
  if (bytes == 0)  // both may be null, which memcpy forbids
    return;
  if (table.format != RowFormat::kBytes)
    return widen_rows(table, index, begin, end, size, out);
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
