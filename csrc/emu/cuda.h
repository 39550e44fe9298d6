// The part of CUDA C++ that kernels may use, implemented by the emulator.
// Everything else fails to compile under emulation: above all __threadfence and
// the atomics without a memory order, see cuda/portable.h.
#pragma once

#include <stdint.h>
#include <string.h>

#include <type_traits>

#include "atomic.h"
#include "emulator.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)

#define threadIdx (::gsample::emu::thread_index())
#define blockIdx (::gsample::emu::block_index())
#define blockDim (::gsample::emu::block_size())
#define gridDim (::gsample::emu::grid_size())

// The source location of a call, as default arguments.
#define GSAMPLE_CALL \
  const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define GSAMPLE_SITE     \
  ::gsample::emu::Site { \
    __func__, file, line \
  }

inline void __syncthreads(GSAMPLE_CALL) {
  gsample::emu::block_barrier(GSAMPLE_SITE);
}

inline int __syncthreads_count(int predicate, GSAMPLE_CALL) {
  return gsample::emu::block_reduce(GSAMPLE_SITE, predicate != 0);
}

inline int __syncthreads_or(int predicate, GSAMPLE_CALL) {
  return gsample::emu::block_reduce(GSAMPLE_SITE, predicate != 0) != 0;
}

namespace gsample {
namespace emu {

inline int lane() {
  const Dim3 i = thread_index(), n = block_size();
  return static_cast<int>((i.x + n.x * (i.y + n.y * i.z)) % 32);
}

// Converts a value to the bits of a collective, and back.
template <typename value_t>
uint64_t pack(value_t value) {
  static_assert(sizeof(value_t) <= 8, "a collective moves at most 8 bytes");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  return bits;
}

template <typename value_t>
value_t unpack(uint64_t bits) {
  value_t value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// The value of lane `from` in a group of `width` lanes.
template <typename value_t>
value_t shuffle(Site site, uint32_t mask, value_t value, int from) {
  uint64_t values[32];
  warp_collective(site, mask, pack(value), false, values);
  if (!(mask >> from & 1))
    fail("%s at %s:%d reads lane %d, which its mask %08x does not name",
         site.what, site.file, site.line, from, mask);
  return unpack<value_t>(values[from]);
}

// Calls function(value) for the value of each lane of the mask.
template <typename value_t, typename function_t>
void for_each_lane(Site site,
                   uint32_t mask,
                   value_t value,
                   const function_t& function) {
  uint64_t values[32];
  warp_collective(site, mask, pack(value), false, values);
  for (int i = 0; i < 32; ++i)
    if (mask >> i & 1)
      function(i, unpack<value_t>(values[i]));
}

}  // namespace emu
}  // namespace gsample

inline void __syncwarp(uint32_t mask = ~0u, GSAMPLE_CALL) {
  uint64_t values[32];
  gsample::emu::warp_collective(GSAMPLE_SITE, mask, 0, true, values);
}

template <typename value_t>
value_t __shfl_sync(uint32_t mask,
                    value_t value,
                    int from,
                    int width = 32,
                    GSAMPLE_CALL) {
  const int first = gsample::emu::lane() & ~(width - 1);
  return gsample::emu::shuffle(GSAMPLE_SITE, mask, value,
                               first | (from & (width - 1)));
}

template <typename value_t>
value_t __shfl_up_sync(uint32_t mask,
                       value_t value,
                       unsigned delta,
                       int width = 32,
                       GSAMPLE_CALL) {
  const int lane = gsample::emu::lane(), step = static_cast<int>(delta);
  const bool inside = (lane & (width - 1)) >= step;
  return gsample::emu::shuffle(GSAMPLE_SITE, mask, value,
                               inside ? lane - step : lane);
}

template <typename value_t>
value_t __shfl_down_sync(uint32_t mask,
                         value_t value,
                         unsigned delta,
                         int width = 32,
                         GSAMPLE_CALL) {
  const int lane = gsample::emu::lane(), step = static_cast<int>(delta);
  const bool inside = (lane & (width - 1)) + step < width;
  return gsample::emu::shuffle(GSAMPLE_SITE, mask, value,
                               inside ? lane + step : lane);
}

template <typename value_t>
value_t __shfl_xor_sync(uint32_t mask,
                        value_t value,
                        int bits,
                        int width = 32,
                        GSAMPLE_CALL) {
  const int lane = gsample::emu::lane(), first = lane & ~(width - 1);
  const int from = lane ^ bits;
  return gsample::emu::shuffle(GSAMPLE_SITE, mask, value,
                               from < first + width ? from : lane);
}

inline uint32_t __ballot_sync(uint32_t mask, int predicate, GSAMPLE_CALL) {
  uint32_t ballot = 0;
  gsample::emu::for_each_lane(
      GSAMPLE_SITE, mask, predicate != 0,
      [&](int lane, bool vote) { ballot |= uint32_t{vote} << lane; });
  return ballot;
}

inline int __any_sync(uint32_t mask, int predicate, GSAMPLE_CALL) {
  bool any = false;
  gsample::emu::for_each_lane(GSAMPLE_SITE, mask, predicate != 0,
                              [&](int, bool vote) { any |= vote; });
  return any;
}

inline int __all_sync(uint32_t mask, int predicate, GSAMPLE_CALL) {
  bool all = true;
  gsample::emu::for_each_lane(GSAMPLE_SITE, mask, predicate != 0,
                              [&](int, bool vote) { all &= vote; });
  return all;
}

template <typename value_t>
uint32_t __match_any_sync(uint32_t mask, value_t value, GSAMPLE_CALL) {
  const uint64_t own = gsample::emu::pack(value);
  uint32_t equal = 0;
  gsample::emu::for_each_lane(GSAMPLE_SITE, mask, own,
                              [&](int lane, uint64_t other) {
                                equal |= uint32_t{other == own} << lane;
                              });
  return equal;
}

inline uint32_t __activemask() {
  gsample::emu::fail("kernels must not rely on __activemask");
}

inline int __popc(uint32_t x) {
  return __builtin_popcount(x);
}
inline int __popcll(uint64_t x) {
  return __builtin_popcountll(x);
}
inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline int __clz(int x) {
  return x == 0 ? 32 : __builtin_clz(x);
}
inline int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(x);
}
inline void __nanosleep(unsigned) {
  gsample::emu::yield();
}

template <typename value_t>
value_t __ldg(const value_t* address) {
  return *address;
}
