// Shared code of the operators of sparse matrices on a GPU.
#pragma once

#include <optional>
#include <vector>

#include "device_cuda.h"

namespace gsample {

// Raises the error that a kernel reported. `name` [..] must be below `limit`.
inline void check_report(const char* op,
                         const Report& report,
                         const char* name,
                         int64_t limit) {
  STD_TORCH_CHECK(report.fault != Report::kId, op, ": '", name,
                  "' must be in [0, ", limit, ") (got ", report.value,
                  " at position ", report.where, ")");
  STD_TORCH_CHECK(report.fault != Report::kIndptr, op,
                  ": 'indptr' must ascend from 0 to the ", report.value,
                  " edges (it does not at column ", report.where, ")");
  STD_TORCH_CHECK(report.fault != Report::kOverflow, op,
                  ": 'indptr' must be int64 to count ", report.value, " edges");
  STD_TORCH_CHECK(report.fault != Report::kPtr, op,
                  ": 'ptr' must ascend from 0 to ", report.value,
                  " (it does not at position ", report.where, ")");
  STD_TORCH_CHECK(report.fault != Report::kWeight, op,
                  ": 'weight' must be finite and not negative (it is not at "
                  "position ",
                  report.where, ")");
}

inline const int64_t* device_int64(const char* op,
                                   const char* name,
                                   const Tensor& tensor,
                                   int64_t size,
                                   const Tensor& like,
                                   const char* like_name = "indptr") {
  check_device(op, name, tensor, like, like_name);
  return int64_vector(op, name, tensor, size);
}

inline const int64_t* device_int64(const char* op,
                                   const char* name,
                                   const std::optional<Tensor>& tensor,
                                   int64_t size,
                                   const Tensor& like,
                                   const char* like_name = "indptr") {
  return tensor ? device_int64(op, name, *tensor, size, like, like_name)
                : nullptr;
}

// The start of each batch's items; the kernel checks that it ascends.
inline const int64_t* device_ptr(const char* op,
                                 const char* name,
                                 const Tensor& ptr,
                                 int64_t size,
                                 const Tensor& like,
                                 const char* like_name = "indptr") {
  STD_TORCH_CHECK(ptr.numel() > (size > 0 ? 1 : 0), op, ": '", name,
                  "' must ascend from 0 to ", size);
  return device_int64(op, name, ptr, ptr.numel(), like, like_name);
}

inline Tensor vector_like(const char* what,
                          const Tensor& tensor,
                          int64_t size) {
  return device_vector(what, tensor, size, tensor.scalar_type());
}

// A copy of host integers on the device.
inline Tensor to_device(const Tensor& like,
                        const std::vector<uint64_t>& numbers,
                        const DeviceScope& scope) {
  Tensor out =
      device_vector("arguments", like, static_cast<int64_t>(numbers.size()));
  if (!numbers.empty())
    copy_to_device(out.mutable_data_ptr(), numbers.data(),
                   numbers.size() * sizeof(uint64_t), scope.stream());
  return out;
}

}  // namespace gsample
