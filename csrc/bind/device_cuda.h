// Shared code of the GPU operators: registration, device and stream, and device
// memory.
#pragma once

#include <torch/csrc/stable/accelerator.h>

#include <memory>

#include "../cuda/device.h"
#include "../cuda/report.h"
#include "check.h"
#include "device_memory_cuda.h"
#include "host_reads_cuda.h"

// For tests, the emulator runs the same operators on CPU tensors, under its own
// dispatch key.
#if defined(GSAMPLE_EMULATE)
#define GSAMPLE_CUDA_LIBRARY gsample_emulated
#define GSAMPLE_CUDA_KEY CPU
#else
#define GSAMPLE_CUDA_LIBRARY gsample
#define GSAMPLE_CUDA_KEY CUDA
#endif

namespace gsample {

// Makes the device of a tensor current, with torch's current stream. Later
// allocations are attributed to the operator.
class DeviceScope {
 public:
  DeviceScope(const char* op, const Tensor& like);
  StreamHandle stream() const { return stream_; }

 private:
  const MemoryScope memory_;
  std::unique_ptr<torch::stable::accelerator::DeviceGuard> guard_;
  StreamHandle stream_;
  HostReads host_reads_;
};

// A kernel's report in device memory.
class DeviceReport {
 public:
  explicit DeviceReport(const Tensor& like)
      : memory_(device_zeros("report", like, kItems)) {}

  Report* get() {
    return reinterpret_cast<Report*>(memory_.mutable_data_ptr<int64_t>());
  }
  // Waits for the kernel.
  Report read(const DeviceScope& scope) {
    Report report;
    copy_to_host(&report, get(), sizeof report, scope.stream());
    return report;
  }

 private:
  static constexpr int64_t kItems = sizeof(Report) / sizeof(int64_t);
  Tensor memory_;
};

// The start of a vector allocated for the worst case: a quarter of the time of
// `torch::stable::narrow`.
inline Tensor first_items(const Tensor& tensor, int64_t size) {
  constexpr int64_t kStride = 1;
  AtenTensorHandle out;
  TORCH_ERROR_CODE_CHECK(aoti_torch__reinterpret_tensor(tensor.get(), 1, &size,
                                                        &kStride, 0, &out));
  return Tensor(out);
}

#if defined(GSAMPLE_EMULATE)
// Tests decide which memory counts as the host's.
bool on_device_of(const Tensor& tensor, const Tensor& like);
#else
inline bool on_device_of(const Tensor& tensor, const Tensor& like) {
  return tensor.is_cuda() == like.is_cuda() &&
         tensor.get_device_index() == like.get_device_index();
}
#endif

// All tensors of a call must be on one device.
inline void check_device(const char* op,
                         const char* name,
                         const Tensor& tensor,
                         const Tensor& like,
                         const char* like_name = "indptr") {
  STD_TORCH_CHECK(on_device_of(tensor, like), op, ": '", name,
                  "' must be on the device of '", like_name, "'");
}

// Address from which kernels read a tensor of the graph: on the device of
// `like`, or pinned host memory (UVA), which is held until the kernels finish.
inline const void* readable(const char* op,
                            const Tensor& tensor,
                            const Tensor& like,
                            const char* like_name) {
  const void* data = tensor.const_data_ptr();
  if (on_device_of(tensor, like) || tensor.numel() == 0)
    return data;
  const void* found = tensor.is_cuda() ? nullptr : device_address(data);
  STD_TORCH_CHECK(found != nullptr, op,
                  ": the graph must be on the device of '", like_name,
                  "' or in pinned host memory (see "
                  "torch_gsample.placement.pin)");
  HostReads::add(tensor);
  return found;
}

template <typename item_t>
const item_t* readable(const char* op,
                       const Tensor& tensor,
                       const Tensor& like,
                       const char* like_name) {
  return static_cast<const item_t*>(readable(op, tensor, like, like_name));
}

}  // namespace gsample
