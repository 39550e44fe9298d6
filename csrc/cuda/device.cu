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

void poison(void*, size_t) {}

void throw_cuda_error(const char* what, int error) {
  const auto code = static_cast<cudaError_t>(error);
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(code) +
                           " (" + cudaGetErrorName(code) + ")");
}

}  // namespace gsample
