// The feature operators on a GPU.
#include <torch/csrc/stable/library.h>

#include <vector>

#include "../cuda/gather_rows.h"
#include "device_cuda.h"

namespace gsample {

namespace {

Tensor gather_rows_cuda(Tensor input, Tensor index, int64_t) {
  const char* op = "gather_rows";
  STD_TORCH_CHECK(input.dim() > 0 && input.is_contiguous(), op,
                  ": 'input' must be contiguous and have rows");
  check_vector(op, "index", index, ScalarType::Long);
  if (input.is_cuda())
    check_device(op, "index", index, input, "input");
  const DeviceScope scope(op, index);
  const void* data = input.const_data_ptr();
  if (!input.is_cuda() && input.numel() > 0) {
    data = device_address(data);
    STD_TORCH_CHECK(data != nullptr, op,
                    ": 'input' must be on the device of 'index' or in pinned "
                    "host memory (see Tensor.pin_memory)");
  }
  std::vector<int64_t> sizes(input.sizes().begin(), input.sizes().end());
  sizes[0] = index.numel();
  int64_t row_bytes = static_cast<int64_t>(input.element_size());
  for (size_t i = 1; i < sizes.size(); ++i)
    row_bytes = multiply_sizes(row_bytes, sizes[i]);
  Tensor out = device_tensor("rows", index, sizes, input.scalar_type(),
                             static_cast<int64_t>(input.element_size()));
  DeviceReport device_report(index);
  gather_rows({static_cast<const char*>(data), input.size(0), row_bytes,
               index.const_data_ptr<int64_t>(), index.numel(),
               static_cast<char*>(out.mutable_data_ptr()), device_report.get()},
              scope.stream());
  const Report report = device_report.read(scope);
  STD_TORCH_CHECK(report.fault == Report::kNone, op,
                  ": 'index' must be in [0, ", input.size(0), ") (got ",
                  report.value, " at position ", report.where, ")");
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(GSAMPLE_CUDA_LIBRARY, GSAMPLE_CUDA_KEY, m) {
  m.impl("gather_rows", TORCH_BOX(&gather_rows_cuda));
}

}  // namespace gsample
