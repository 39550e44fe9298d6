#include "device.h"

#include <cuda_runtime.h>

#include <cstring>
#include <stdexcept>
#include <string>

#include "device_state.h"
#include "launch.cuh"

namespace gsample {

namespace {

std::string name_of(cudaError_t error) {
  return std::string(cudaGetErrorString(error)) + " (" +
         cudaGetErrorName(error) + ")";
}

// A thread's pinned memory for reports: the driver copies to pageable memory on
// a slower path.
class Pinned {
 public:
  static constexpr size_t kBytes = 1 << 16;

  Pinned() {
    if (cudaHostAlloc(&memory_, kBytes, cudaHostAllocPortable) == cudaSuccess)
      return;
    memory_ = nullptr;
    cudaGetLastError();  // not left for a later call
  }
  ~Pinned() { cudaFreeHost(memory_); }
  Pinned(const Pinned&) = delete;

  // Null if the bytes do not fit.
  void* get(size_t bytes) const { return bytes <= kBytes ? memory_ : nullptr; }

 private:
  void* memory_ = nullptr;
};

// A query would end the capture of a CUDA graph in another thread, unless this
// thread declares it safe. After an error no kernel runs any more.
class Query {
 public:
  Query() {
    check_cuda("cudaThreadExchangeStreamCaptureMode",
               cudaThreadExchangeStreamCaptureMode(&mode_));
  }
  ~Query() {
    cudaThreadExchangeStreamCaptureMode(&mode_);
    cudaGetLastError();  // not left for a later call
  }
  Query(const Query&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace

void copy_to_host(void* to,
                  const void* from,
                  size_t bytes,
                  StreamHandle stream) {
  static thread_local const Pinned pinned;
  const auto s = static_cast<cudaStream_t>(stream);
  void* const at = pinned.get(bytes);
  check_cuda("cudaMemcpyAsync",
             cudaMemcpyAsync(at == nullptr ? to : at, from, bytes,
                             cudaMemcpyDeviceToHost, s));
  check_cuda("cudaStreamSynchronize", cudaStreamSynchronize(s));
  if (at != nullptr)
    std::memcpy(to, at, bytes);
}

// CUDA first stages a copy of memory that is not pinned.
void copy_to_device(void* to,
                    const void* from,
                    size_t bytes,
                    StreamHandle stream) {
  check_cuda("cudaMemcpyAsync",
             cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice,
                             static_cast<cudaStream_t>(stream)));
}

bool is_captured(StreamHandle stream) {
  cudaStreamCaptureStatus status;
  check_cuda("cudaStreamIsCapturing",
             cudaStreamIsCapturing(static_cast<cudaStream_t>(stream), &status));
  return status != cudaStreamCaptureStatusNone;
}

EventHandle record_event(StreamHandle stream) {
  cudaEvent_t event;
  check_cuda("cudaEventCreate",
             cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const cudaError_t error =
      cudaEventRecord(event, static_cast<cudaStream_t>(stream));
  if (error != cudaSuccess)
    cudaEventDestroy(event);
  check_cuda("cudaEventRecord", error);
  return event;
}

bool is_idle(StreamHandle stream) {
  const Query query;
  return cudaStreamQuery(static_cast<cudaStream_t>(stream)) !=
         cudaErrorNotReady;
}

bool event_passed(EventHandle handle) {
  const Query query;
  const auto event = static_cast<cudaEvent_t>(handle);
  const bool passed = cudaEventQuery(event) != cudaErrorNotReady;
  if (passed)
    cudaEventDestroy(event);
  return passed;
}

const void* device_address(const void* host) {
  cudaPointerAttributes found;
  check_cuda("cudaPointerGetAttributes",
             cudaPointerGetAttributes(&found, host));
  return found.type == cudaMemoryTypeHost ? found.devicePointer : nullptr;
}

void poison(void*, size_t) {}

void throw_cuda_error(const char* what, int error) {
  throw std::runtime_error(std::string(what) + ": " +
                           name_of(static_cast<cudaError_t>(error)));
}

// Not cudaPeekAtLastError: torch clears the errors it throws, and this runtime
// is linked statically, so its last error is not that of torch's. Every later
// call returns an error that ended the device's context.
DeviceState device_state() {
  size_t free_bytes = 0, all_bytes = 0;
  const cudaError_t error = cudaMemGetInfo(&free_bytes, &all_bytes);
  cudaGetLastError();  // not left for a later call
  if (error == cudaSuccess || error == cudaErrorMemoryAllocation)
    return {"", static_cast<int64_t>(free_bytes)};
  return {name_of(error), 0};
}

}  // namespace gsample

// For torch_gsample/placement.py. An error is cleared here.
extern "C" __attribute__((visibility("default"))) int gsample_register_host(
    void* memory,
    size_t bytes) {
  const cudaError_t error =
      cudaHostRegister(memory, bytes, cudaHostRegisterPortable);
  cudaGetLastError();
  return error;
}

extern "C" __attribute__((visibility("default"))) int gsample_unregister_host(
    void* memory) {
  const cudaError_t error = cudaHostUnregister(memory);
  cudaGetLastError();
  return error;
}
