// Kernel launches, on a GPU and in the emulator.
#pragma once

#if defined(__CUDACC__)
#include <map>
#include <mutex>
#include <tuple>
#endif

#include "device.h"
#include "portable.h"

namespace gsample {

#if defined(__CUDACC__)

inline void check_cuda(const char* what, cudaError_t error) {
  if (error != cudaSuccess)
    throw_cuda_error(what, error);
}

// The number of blocks of a kernel that the current device runs at a time.
// Queried once, as a query takes microseconds.
inline int64_t resident_blocks(const void* kernel, int threads) {
  static std::mutex mutex;
  static std::map<std::tuple<int, const void*, int>, int64_t> known;
  int device = 0, processors = 0, blocks = 0;
  check_cuda("cudaGetDevice", cudaGetDevice(&device));
  const std::lock_guard<std::mutex> lock(mutex);
  int64_t& resident = known[{device, kernel, threads}];
  if (resident > 0)
    return resident;
  check_cuda("cudaDeviceGetAttribute",
             cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount,
                                    device));
  check_cuda("cudaOccupancyMaxActiveBlocksPerMultiprocessor",
             cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel,
                                                           threads, 0));
  return resident = int64_t{processors} * blocks;
}

// The launch of a cooperative kernel whose threads share `work`. Fewer blocks
// pass a barrier faster.
template <typename... args_t>
LaunchShape cooperative_shape(void (*kernel)(args_t...),
                              int threads,
                              int64_t work) {
  constexpr int64_t kWork = 4;  // per thread: less is not worth a block
  const int64_t useful = work / (kWork * threads) + 1;
  const int64_t most =
      resident_blocks(reinterpret_cast<const void*>(kernel), threads);
  return {static_cast<int>(useful < most ? useful : most), threads};
}

// The launch of a kernel whose threads take `work` items in strides.
inline LaunchShape shape_for(int threads, int64_t work) {
  constexpr int64_t kMost = int64_t{1} << 20;
  const int64_t blocks = (work + threads - 1) / threads;
  return {static_cast<int>(blocks < 1       ? 1
                           : blocks < kMost ? blocks
                                            : kMost),
          threads};
}

template <typename... args_t>
void launch(const char* name,
            void (*kernel)(args_t...),
            LaunchShape shape,
            StreamHandle stream,
            args_t... args) {
  void* argv[] = {&args...};
  check_cuda(name,
             cudaLaunchKernel(reinterpret_cast<void*>(kernel),
                              dim3(shape.blocks), dim3(shape.threads), argv, 0,
                              static_cast<cudaStream_t>(stream)));
}

// All blocks run at a time, so that grid_barrier() cannot deadlock.
template <typename... args_t>
void launch_cooperative(const char* name,
                        void (*kernel)(args_t...),
                        LaunchShape shape,
                        StreamHandle stream,
                        args_t... args) {
  void* argv[] = {&args...};
  check_cuda(name, cudaLaunchCooperativeKernel(
                       reinterpret_cast<void*>(kernel), dim3(shape.blocks),
                       dim3(shape.threads), argv, 0,
                       static_cast<cudaStream_t>(stream)));
}

#else

// Tests set the shape.
template <typename... args_t>
LaunchShape cooperative_shape(void (*)(args_t...), int threads, int64_t) {
  const emu::Config& config = emu::config();
  return {config.resident_blocks,
          threads < config.block_threads ? threads : config.block_threads};
}

// More blocks than run at a time.
inline LaunchShape shape_for(int threads, int64_t) {
  const emu::Config& config = emu::config();
  return {config.resident_blocks + 1,
          threads < config.block_threads ? threads : config.block_threads};
}

// With GSAMPLE_STUB no kernel runs: benchmark/gpu_host.py times the host.
#if defined(GSAMPLE_STUB)
constexpr bool kStub = true;
#else
constexpr bool kStub = false;
#endif

template <typename... args_t>
void emulate(const char* name,
             void (*kernel)(args_t...),
             LaunchShape shape,
             bool cooperative,
             args_t... args) {
  if (kStub)
    return;
  const auto call = [&] { kernel(args...); };
  using Call = decltype(call);
  emu::run_grid(
      name, emu::Dim3(shape.blocks), emu::Dim3(shape.threads), cooperative,
      [](void* c) { (*static_cast<Call*>(c))(); },
      const_cast<void*>(static_cast<const void*>(&call)));
}

template <typename... args_t>
void launch(const char* name,
            void (*kernel)(args_t...),
            LaunchShape shape,
            StreamHandle,
            args_t... args) {
  emulate(name, kernel, shape, false, args...);
}

template <typename... args_t>
void launch_cooperative(const char* name,
                        void (*kernel)(args_t...),
                        LaunchShape shape,
                        StreamHandle,
                        args_t... args) {
  emulate(name, kernel, shape, true, args...);
}

#endif

}  // namespace gsample
