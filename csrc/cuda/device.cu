#include "device.h"

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "launch.cuh"

namespace gsample {

void copy_to_host(void* to,
                  const void* from,
                  size_t bytes,
                  StreamHandle stream) {
  const auto s = static_cast<cudaStream_t>(stream);
  check_cuda("cudaMemcpyAsync",
             cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, s));
  check_cuda("cudaStreamSynchronize", cudaStreamSynchronize(s));
}

// Of memory that is not pinned, CUDA makes a copy of its own first.
void copy_to_device(void* to,
                    const void* from,
                    size_t bytes,
                    StreamHandle stream) {
  check_cuda("cudaMemcpyAsync",
             cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice,
                             static_cast<cudaStream_t>(stream)));
}

const void* device_address(const void* host) {
  cudaPointerAttributes found;
  check_cuda("cudaPointerGetAttributes",
             cudaPointerGetAttributes(&found, host));
  return found.type == cudaMemoryTypeHost ? found.devicePointer : nullptr;
}

void poison(void*, size_t) {}

void throw_cuda_error(const char* what, int error) {
  const auto code = static_cast<cudaError_t>(error);
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(code) +
                           " (" + cudaGetErrorName(code) + ")");
}

}  // namespace gsample

// For torch_gsample/placement.py. An error is no error of a later call.
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
