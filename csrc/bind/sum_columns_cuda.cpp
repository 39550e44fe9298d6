// The operator sum_columns on a GPU.
#include "../cuda/sum_columns.h"

#include <torch/csrc/stable/library.h>

#include "matrix_cuda.h"
#include "sum_columns.h"

namespace gsample {

namespace {

Tensor sum_columns_cuda(Tensor indptr,
                        Tensor value,
                        std::optional<Tensor> perm) {
  const char* op = "sum_columns";
  const int64_t width = check_sum(op, indptr, value, perm);
  check_device(op, "value", value, indptr);
  const int64_t n = indptr.numel() - 1, num_edges = value.size(0);
  const int64_t* place = device_int64(op, "perm", perm, num_edges, indptr);
  const DeviceScope scope(op, indptr);
  Tensor out = device_tensor("sums", value, {n, width}, value.scalar_type(),
                             static_cast<int64_t>(value.element_size()));
  DeviceReport report(indptr);
  dispatch_sum(indptr, value, [&](auto indptr_type, auto value_type) {
    using indptr_t = decltype(indptr_type);
    using value_t = decltype(value_type);
    sum_columns(
        SumColumnsCuda<indptr_t, value_t>{
            indptr.const_data_ptr<indptr_t>(), value.const_data_ptr<value_t>(),
            place, n, num_edges, width, out.mutable_data_ptr<value_t>(),
            report.get()},
        scope.stream());
  });
  check_report(op, report.read(scope), "perm", num_edges);
  return value.dim() == 1 ? torch::stable::view(out, {n}) : out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(GSAMPLE_CUDA_LIBRARY, GSAMPLE_CUDA_KEY, m) {
  m.impl("sum_columns", TORCH_BOX(&sum_columns_cuda));
}

}  // namespace gsample
