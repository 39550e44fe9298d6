// Conversion to CSC, checks of it, and the per-column scale of LABOR, on a GPU.
#include <torch/csrc/stable/library.h>

#include <array>
#include <tuple>

#include "../cuda/formats.h"
#include "../cuda/labor_scale.h"
#include "aten_cuda.h"
#include "matrix_cuda.h"

namespace gsample {

namespace {

ScalarType index_type(bool wide) {
  return wide ? ScalarType::Long : ScalarType::Int;
}

std::tuple<Tensor, Tensor, Tensor> coo_to_csc_cuda(
    Tensor row,
    Tensor col,
    int64_t num_cols,
    bool wide_indptr,
    bool wide_indices,
    std::optional<int64_t> num_rows) {
  const char* op = "coo_to_csc";
  const bool narrow = row.scalar_type() == ScalarType::Int;
  check_vector(op, "row", row, narrow ? ScalarType::Int : ScalarType::Long);
  check_vector(op, "col", col, row.scalar_type());
  check_size(op, "col", col, row.numel());
  check_device(op, "col", col, row, "row");
  STD_TORCH_CHECK(num_cols >= 0, op, ": 'num_cols' must not be negative");
  STD_TORCH_CHECK(wide_indptr || row.numel() <= INT32_MAX, op,
                  ": 'wide_indptr' is needed for ", row.numel(), " edges");
  check_rows_fit(op, "num_cols", num_cols, sizeof(int64_t));
  const DeviceScope scope(op, row);
  const std::pair<Tensor, Tensor> sorted = stable_sort(col, scope);
  const Tensor& perm = sorted.second;
  Tensor indptr =
      device_vector("indptr", row, num_cols + 1, index_type(wide_indptr));
  Tensor indices =
      device_vector("indices", row, row.numel(), index_type(wide_indices));
  DeviceReport report(row);
  const auto call = [&](auto input_type, auto indptr_type, auto index_type) {
    using input_t = decltype(input_type);
    using indptr_t = decltype(indptr_type);
    using index_t = decltype(index_type);
    coo_to_csc(
        CooToCscCuda<input_t, indptr_t, index_t>{
            row.const_data_ptr<input_t>(),
            sorted.first.template const_data_ptr<input_t>(),
            perm.template const_data_ptr<int64_t>(), row.numel(), num_cols,
            num_rows.value_or(INT64_MAX), indptr.mutable_data_ptr<indptr_t>(),
            indices.mutable_data_ptr<index_t>(), report.get()},
        scope.stream());
  };
  dispatch_graph(op, indptr.scalar_type(), indices.scalar_type(),
                 [&](auto indptr_type, auto index_type) {
                   narrow ? call(int32_t{}, indptr_type, index_type)
                          : call(int64_t{}, indptr_type, index_type);
                 });
  const Report found = report.read(scope);
  STD_TORCH_CHECK(found.fault != Report::kRow, op, ": 'row' must be in [0, ",
                  *num_rows, ") (got ", found.value, " at position ",
                  found.where, ")");
  check_report(op, found, "col", num_cols);
  return {indptr, indices, perm};
}

Tensor check_csc_cuda(Tensor indptr, Tensor indices, int64_t num_rows) {
  const char* op = "check_csc";
  check_matrix(op, indptr, indices);
  check_device(op, "indices", indices, indptr);
  STD_TORCH_CHECK(num_rows >= 0, op, ": 'num_rows' must not be negative (got ",
                  num_rows, ")");
  const DeviceScope scope(op, indptr);
  Tensor out = device_vector("out", indptr, 3);
  Tensor lowest = to_device(indptr, {INT64_MAX, INT64_MAX}, scope);
  dispatch_graph(op, indptr.scalar_type(), indices.scalar_type(),
                 [&](auto indptr_type, auto index_type) {
                   using indptr_t = decltype(indptr_type);
                   using index_t = decltype(index_type);
                   const CheckCscCuda<indptr_t, index_t> args{
                       indptr.const_data_ptr<indptr_t>(),
                       indices.const_data_ptr<index_t>(),
                       indptr.numel() - 1,
                       indices.numel(),
                       num_rows,
                       out.mutable_data_ptr<int64_t>(),
                       lowest.mutable_data_ptr<int64_t>()};
                   check_csc(args, check_csc_shape(args), scope.stream());
                 });
  return out;
}

Tensor labor_scale_cuda(Tensor indptr,
                        Tensor weight,
                        int64_t k,
                        std::optional<Tensor> value) {
  const char* op = "labor_scale";
  const bool narrow = indptr.scalar_type() == ScalarType::Int;
  check_vector(op, "indptr", indptr,
               narrow ? ScalarType::Int : ScalarType::Long);
  check_vector(op, "weight", weight, ScalarType::Double);
  check_device(op, "weight", weight, indptr);
  if (value) {
    check_vector(op, "value", *value, ScalarType::Double);
    check_size(op, "value", *value, weight.numel());
    check_device(op, "value", *value, indptr);
  }
  STD_TORCH_CHECK(indptr.numel() > 0, op, ": 'indptr' must not be empty");
  STD_TORCH_CHECK(k > 0, op, ": 'k' must be positive (got ", k, ")");
  const DeviceScope scope(op, indptr);
  const int64_t n = indptr.numel() - 1;
  Tensor scale = device_vector("scale", indptr, n, ScalarType::Double);
  DeviceReport report(indptr);
  const auto call = [&](auto indptr_type) {
    using indptr_t = decltype(indptr_type);
    labor_scale(
        LaborScaleCuda<indptr_t>{
            indptr.const_data_ptr<indptr_t>(), weight.const_data_ptr<double>(),
            value ? value->const_data_ptr<double>() : nullptr, n,
            weight.numel(), k, scale.mutable_data_ptr<double>(), report.get()},
        scope.stream());
  };
  narrow ? call(int32_t{}) : call(int64_t{});
  const Report found = report.read(scope);
  STD_TORCH_CHECK(found.fault != Report::kWeight, op, ": '",
                  found.relation == 0 ? "weight" : "value",
                  "' must be positive, and it and its inverse finite "
                  "(it is not at position ",
                  found.where, ")");
  check_report(op, found, "indptr", n);
  return scale;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(GSAMPLE_CUDA_LIBRARY, GSAMPLE_CUDA_KEY, m) {
  m.impl("coo_to_csc", TORCH_BOX(&coo_to_csc_cuda));
  m.impl("check_csc", TORCH_BOX(&check_csc_cuda));
  m.impl("labor_scale", TORCH_BOX(&labor_scale_cuda));
}

}  // namespace gsample
