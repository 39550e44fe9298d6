// The feature operators on a GPU.
#include <torch/csrc/stable/library.h>

#include "../cuda/gather_rows.h"
#include "device_cuda.h"
#include "features.h"

namespace gsample {

namespace {

// Address from which a GPU reads a tensor in host or device memory.
const void* readable(const char* op,
                     const char* name,
                     const Tensor& tensor,
                     const Tensor& index) {
  const void* data = tensor.const_data_ptr();
  if (tensor.is_cuda() || tensor.numel() == 0)
    return data;
  data = device_address(data);
  STD_TORCH_CHECK(data != nullptr, op, ": '", name,
                  "' must be on the device of 'index' or in pinned host memory "
                  "(see Tensor.pin_memory)");
  if (!on_device_of(tensor, index))
    HostReads::add(tensor);
  return data;
}

Tensor gather_rows_cuda(Tensor input,
                        Tensor index,
                        std::optional<Tensor> scale,
                        bool widen,
                        int64_t) {
  const char* op = "gather_rows";
  const RowPlan plan(op, input, scale, widen, index.numel());
  check_vector(op, "index", index, ScalarType::Long);
  if (input.is_cuda())
    check_device(op, "index", index, input, "input");
  if (scale && scale->is_cuda())
    check_device(op, "index", index, *scale, "scale");
  const DeviceScope scope(op, index);
  const void* rows = readable(op, "input", input, index);
  const void* scales = scale ? readable(op, "scale", *scale, index) : nullptr;
  Tensor out =
      device_tensor("rows", index, plan.sizes, plan.dtype, plan.item_size);
  DeviceReport device_report(index);
  gather_rows({static_cast<const char*>(rows), input.size(0), plan.row_bytes,
               plan.format, static_cast<const float*>(scales),
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
