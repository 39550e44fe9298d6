// Columns of a matrix: their bounds, checked, and where what they give is put.
#pragma once

#include "block.cuh"
#include "report.cuh"

namespace gsample {

struct ColumnBounds {
  int64_t start;
  int64_t length;
};

// The bounds of column v, at position i of a list. If there is no such column
// or its edges are out of range: no edges, and a report.
template <typename indptr_t>
__device__ ColumnBounds read_bounds(const indptr_t* indptr,
                                    int64_t num_cols,
                                    int64_t num_edges,
                                    int64_t v,
                                    int64_t i,
                                    Report* report) {
  if (v < 0 || v >= num_cols) {
    note_fault(report, Report::kId, i, v);
    return {0, 0};
  }
  const int64_t start = indptr[v], end = indptr[v + 1];
  if (start < 0 || start > end || end > num_edges) {
    note_fault(report, Report::kIndptr, v, num_edges);
    return {0, 0};
  }
  return {start, end - start};
}

// Sums count(i) over each block's part of [0, n): totals [blocks].
template <typename count_t>
__device__ void count_items(const count_t& count,
                            int64_t n,
                            int64_t* totals,
                            BlockSums& shared) {
  const BlockRange range(n);
  int64_t sum = 0;
  for (int64_t i = range.begin + threadIdx.x; i < range.end; i += blockDim.x)
    sum = add(sum, count(i));
  sum = sum_block(sum, shared);
  if (threadIdx.x == 0)
    totals[blockIdx.x] = sum;
}

// Calls emit(i, sum of count() before i) for the i in [0, n), and returns the
// total. Called by all threads of a grid, after count_items() ran with as many
// blocks and all of them wrote `totals`.
template <typename count_t, typename emit_t>
__device__ int64_t emit_items(const count_t& count,
                              const emit_t& emit,
                              int64_t n,
                              const int64_t* totals,
                              BlockSums& shared) {
  const BlockRange range(n);
  int64_t all;
  int64_t next = sum_blocks_before(totals, shared, &all);
  for (int64_t tile = range.begin; tile < range.end; tile += blockDim.x) {
    const int64_t i = tile + threadIdx.x;
    int64_t added;
    const int64_t before =
        sum_before(i < range.end ? count(i) : 0, shared, &added);
    if (i < range.end)
      emit(i, add(next, before));
    next = add(next, added);
  }
  return all;
}

// Both steps, in a cooperative launch. count(i) is called twice.
template <typename count_t, typename emit_t>
__device__ int64_t number_items(const count_t& count,
                                const emit_t& emit,
                                int64_t n,
                                int64_t* totals,
                                BlockSums& shared) {
  count_items(count, n, totals, shared);
  grid_barrier();
  return emit_items(count, emit, n, totals, shared);
}

// Writes begin [n + 1]: the sums of count(i) over earlier i, and the total,
// which is reported as the size, and as a fault if it overflows `indptr_t`. A
// single count(i) always fits, and is called once.
template <typename indptr_t, typename count_t>
__device__ void write_offsets(const count_t& count,
                              int64_t n,
                              indptr_t* begin,
                              int64_t* totals,
                              BlockSums& shared,
                              Report* report) {
  const auto write = [&](int64_t i, int64_t number) {
    begin[i] = static_cast<indptr_t>(number);
  };
  const auto count_and_write = [&](int64_t i) {
    const int64_t found = count(i);
    write(i, found);
    return found;
  };
  const auto read = [&](int64_t i) { return int64_t{begin[i]}; };
  count_items(count_and_write, n, totals, shared);
  grid_barrier();
  const int64_t all = emit_items(read, write, n, totals, shared);
  if (global_rank() != 0)
    return;
  begin[n] = static_cast<indptr_t>(all);
  report->size = all;
  constexpr int64_t kMost = sizeof(indptr_t) == 4 ? INT32_MAX : INT64_MAX;
  if (all > kMost)
    note_fault(report, Report::kOverflow, n, all);
}

// Reports a fault unless ptr [batches + 1] ascends from 0 to `size`.
__device__ inline void check_ptr(const int64_t* ptr,
                                 int64_t batches,
                                 int64_t size,
                                 Report* report) {
  for (int64_t b = global_rank(); b <= batches; b += grid_threads()) {
    const int64_t least = b == 0 ? 0 : ptr[b - 1];
    const bool ends = (b > 0 || ptr[b] == 0) && (b < batches || ptr[b] == size);
    if (ptr[b] < least || ptr[b] > size || !ends)
      note_fault(report, Report::kPtr, b, size);
  }
}

// The i with begin[i] <= p < begin[i + 1], for p < begin[n].
template <typename indptr_t>
__device__ int64_t column_of(const indptr_t* begin, int64_t n, int64_t p) {
  int64_t low = 0, high = n;  // begin[low] <= p < begin[high]
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    const bool before = begin[middle] <= p;
    low = before ? middle : low;
    high = before ? high : middle;
  }
  return low;
}

}  // namespace gsample
