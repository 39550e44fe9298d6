// The parts of CUDA that kernels may use, and their replacement when g++
// compiles kernels for the emulator (emu/emulator.h). Kernels include only this
// file of CUDA, so that one source runs on both.
//
// Besides CUDA's own keywords, built-in variables, barriers and warp functions
// (for the emulator: emu/cuda.h) there are
//
//   GSAMPLE_SHARED(Struct, name)   the shared memory of a kernel, once in it
//   grid_barrier()                 in cooperative launches, by every thread
//   Atomic<T>(x).fetch_add(1, kRelaxed), ...   as of cuda::atomic_ref, over all
//                                  of the device, always with a memory order
//   add_in_block(x, 1)             to a word of shared memory, atomically
//   back_off()                     in every loop that waits for other threads
#pragma once

#include <stdint.h>

#if defined(__CUDACC__)
// Only barriers of a grid are used, which need none of the headers that it
// would include.
#define _CG_LIMIT_INCLUDED_DEPENDENCIES
#include <cooperative_groups.h>

#include "atomic.h"
#else
#include "../emu/cuda.h"
#endif

namespace gsample {

#if defined(__CUDACC__)

#define GSAMPLE_SHARED(Struct, name) __shared__ Struct name

__device__ __forceinline__ void grid_barrier() {
  cooperative_groups::this_grid().sync();
}

__device__ __forceinline__ void add_in_block(uint32_t& x, uint32_t value) {
  atomicAdd(&x, value);
}

__device__ __forceinline__ void back_off() {
  __nanosleep(100);
}

#else

#define GSAMPLE_SHARED(Struct, name) \
  Struct& name = *static_cast<Struct*>(emu::shared_memory(sizeof(Struct)))

using Order = int;
constexpr Order kRelaxed = __ATOMIC_RELAXED;
constexpr Order kAcquire = __ATOMIC_ACQUIRE;
constexpr Order kRelease = __ATOMIC_RELEASE;
constexpr Order kAcqRel = __ATOMIC_ACQ_REL;

using emu::Atomic;

inline void grid_barrier(GSAMPLE_CALL) {
  emu::grid_barrier(GSAMPLE_SITE);
}

inline void add_in_block(uint32_t& x, uint32_t value) {
  Atomic<uint32_t>(x).fetch_add(value, kRelaxed);
}

inline void back_off() {
  emu::yield();
}

#endif

}  // namespace gsample
