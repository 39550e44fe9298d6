// Sums over the threads of a block and over the blocks of a grid. Blocks have
// a multiple of 32 threads, in one dimension.
#pragma once

#include "portable.h"

namespace gsample {

constexpr uint32_t kAllLanes = 0xFFFFFFFF;

// Sums are modulo 2^64.
__device__ inline int64_t add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) +
                              static_cast<uint64_t>(b));
}

// Shared memory of a sum.
struct BlockSums {
  int64_t warp[32];
};

// The sum of `value` over the threads before this one, and over all. All
// threads of the block must call it.
__device__ inline int64_t sum_before(int64_t value,
                                     BlockSums& shared,
                                     int64_t* all) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int64_t sum = value;  // of the lanes up to and including this one
  for (int step = 1; step < 32; step *= 2) {
    const int64_t before = __shfl_up_sync(kAllLanes, sum, step);
    sum = add(sum, lane >= step ? before : 0);
  }
  if (lane == 31)
    shared.warp[warp] = sum;
  __syncthreads();
  int64_t earlier = 0;
  *all = 0;
  for (int i = 0; i < static_cast<int>(blockDim.x) / 32; ++i) {
    earlier = add(earlier, i < warp ? shared.warp[i] : 0);
    *all = add(*all, shared.warp[i]);
  }
  __syncthreads();  // `shared` may be reused
  return static_cast<int64_t>(static_cast<uint64_t>(add(earlier, sum)) -
                              static_cast<uint64_t>(value));
}

__device__ inline int64_t sum_block(int64_t value, BlockSums& shared) {
  int64_t all;
  sum_before(value, shared, &all);
  return all;
}

// From the `totals` [blocks] that blocks wrote before a grid barrier: the sum
// over the blocks before this one, and over all.
__device__ inline int64_t sum_blocks_before(const int64_t* totals,
                                            BlockSums& shared,
                                            int64_t* all) {
  int64_t before = 0, total = 0;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += blockDim.x) {
    before = add(before, i < blockIdx.x ? totals[i] : 0);
    total = add(total, totals[i]);
  }
  *all = sum_block(total, shared);
  return sum_block(before, shared);
}

// A block's part of [0, size): parts are in the order of blocks, and as equal
// as possible.
struct BlockRange {
  int64_t begin;
  int64_t end;

  __device__ explicit BlockRange(int64_t size) {
    const int64_t each = (size + gridDim.x - 1) / gridDim.x;
    begin = each * blockIdx.x < size ? each * blockIdx.x : size;
    end = begin + each < size ? begin + each : size;
  }
};

}  // namespace gsample
