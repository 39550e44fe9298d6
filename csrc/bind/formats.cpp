// The format operators on the CPU.
#include "../cpu/formats.h"
#include "../core/weighted.h"

#include <torch/csrc/stable/library.h>

#include <cmath>
#include <tuple>

#include "../core/labor.h"
#include "../cpu/buffer.h"
#include "check.h"
#include "output_pool.h"

namespace gsample {

namespace {

ScalarType index_type(bool wide) {
  return wide ? ScalarType::Long : ScalarType::Int;
}

template <typename indptr_t, typename index_t>
int64_t sort_edges(const Tensor& row,
                   const Tensor& col,
                   int64_t num_cols,
                   Tensor& indptr,
                   Tensor& indices,
                   Tensor& perm) {
  const auto call = [&](auto input) {
    using input_t = decltype(input);
    return coo_to_csc(
        row.const_data_ptr<input_t>(), col.const_data_ptr<input_t>(),
        row.numel(), num_cols, indptr.mutable_data_ptr<indptr_t>(),
        indices.mutable_data_ptr<index_t>(), perm.mutable_data_ptr<int64_t>());
  };
  return row.scalar_type() == ScalarType::Int ? call(int32_t{})
                                              : call(int64_t{});
}

void check_rows(const char* op, const Tensor& row, int64_t num_rows) {
  const auto check = [&](const auto* data) {
    for (int64_t i = 0; i < row.numel(); ++i)
      STD_TORCH_CHECK(data[i] >= 0 && data[i] < num_rows, op,
                      ": 'row' must be in [0, ", num_rows, ") (got ", data[i],
                      " at position ", i, ")");
  };
  row.scalar_type() == ScalarType::Int ? check(row.const_data_ptr<int32_t>())
                                       : check(row.const_data_ptr<int64_t>());
}

std::tuple<Tensor, Tensor, Tensor> coo_to_csc_op(
    Tensor row,
    Tensor col,
    int64_t num_cols,
    bool wide_indptr,
    bool wide_indices,
    std::optional<int64_t> num_rows) {
  const char* op = "coo_to_csc";
  const ScalarType dtype =
      row.scalar_type() == ScalarType::Int ? ScalarType::Int : ScalarType::Long;
  check_vector(op, "row", row, dtype);
  check_vector(op, "col", col, dtype);
  check_size(op, "col", col, row.numel());
  STD_TORCH_CHECK(num_cols >= 0, op, ": 'num_cols' must not be negative (got ",
                  num_cols, ")");
  STD_TORCH_CHECK(wide_indptr || row.numel() <= INT32_MAX, op,
                  ": 'wide_indptr' is needed for ", row.numel(), " edges");
  check_rows_fit(op, "num_cols", num_cols, sizeof(int64_t));
  Tensor indptr = empty_vector(num_cols + 1, index_type(wide_indptr));
  Tensor indices = empty_vector(row.numel(), index_type(wide_indices));
  Tensor perm = empty_vector(row.numel());
  advise_huge_pages(indices.mutable_data_ptr(),
                    row.numel() * (wide_indices ? 8 : 4));
  advise_huge_pages(perm.mutable_data_ptr(), row.numel() * sizeof(int64_t));
  const int64_t bad = dispatch_graph(
      op, indptr.scalar_type(), indices.scalar_type(),
      [&](auto indptr_type, auto index_type) {
        return sort_edges<decltype(indptr_type), decltype(index_type)>(
            row, col, num_cols, indptr, indices, perm);
      });
  STD_TORCH_CHECK(bad < 0, op, ": 'col' must be in [0, ", num_cols,
                  ") (it is not at position ", bad, ")");
  if (num_rows.has_value())
    check_rows(op, row, *num_rows);
  return {indptr, indices, perm};
}

Tensor check_csc_op(Tensor indptr, Tensor indices, int64_t num_rows) {
  const char* op = "check_csc";
  check_vector(op, "indptr", indptr, indptr.scalar_type());
  check_vector(op, "indices", indices, indices.scalar_type());
  STD_TORCH_CHECK(indptr.numel() > 0, op, ": 'indptr' must not be empty");
  STD_TORCH_CHECK(num_rows >= 0, op, ": 'num_rows' must not be negative (got ",
                  num_rows, ")");
  const CscFault fault = dispatch_graph(
      op, indptr.scalar_type(), indices.scalar_type(),
      [&](auto indptr_type, auto index_type) {
        return check_csc(indptr.const_data_ptr<decltype(indptr_type)>(),
                         indices.const_data_ptr<decltype(index_type)>(),
                         indptr.numel() - 1, indices.numel(), num_rows);
      });
  Tensor out = empty_vector(3);
  int64_t* data = out.mutable_data_ptr<int64_t>();
  data[0] = fault.rule;
  data[1] = fault.where;
  data[2] = fault.value;
  return out;
}

Tensor cumulate_weights_op(Tensor indptr, Tensor weight) {
  const char* op = "cumulate_weights";
  const bool wide = weight.scalar_type() == ScalarType::Double;
  check_vector(op, "indptr", indptr, indptr.scalar_type());
  check_vector(op, "weight", weight,
               wide ? ScalarType::Double : ScalarType::Float);
  STD_TORCH_CHECK(indptr.numel() > 0, op, ": 'indptr' must not be empty");
  Tensor out =
      pooled_vector(cum_weight_size(weight.numel(), indptr.numel() - 1));
  advise_huge_pages(out.mutable_data_ptr(), weight.numel() * sizeof(int64_t));
  const auto call = [&](auto indptr_type, auto weight_type) {
    using indptr_t = decltype(indptr_type);
    using weight_t = decltype(weight_type);
    const indptr_t* begin = indptr.const_data_ptr<indptr_t>();
    const int64_t n = indptr.numel() - 1;
    STD_TORCH_CHECK(
        check_indptr(begin, n, weight.numel()).rule == CscFault::kNone, op,
        ": 'indptr' must ascend from 0 to the ", weight.numel(), " weights");
    STD_TORCH_CHECK(cumulate_weights(begin, weight.const_data_ptr<weight_t>(),
                                     n, out.mutable_data_ptr<int64_t>()),
                    op, ": 'weight' must be finite and not negative");
  };
  const bool narrow = indptr.scalar_type() == ScalarType::Int;
  if (narrow)
    wide ? call(int32_t{}, double{}) : call(int32_t{}, float{});
  else
    wide ? call(int64_t{}, double{}) : call(int64_t{}, float{});
  return out;
}

const double* positive_doubles(const char* op,
                               const char* name,
                               const Tensor& tensor) {
  const double* data = tensor.const_data_ptr<double>();
  for (int64_t i = 0; i < tensor.numel(); ++i)
    STD_TORCH_CHECK(
        data[i] > 0 && std::isfinite(data[i]) && std::isfinite(1 / data[i]), op,
        ": '", name, "' must be positive, and it and its inverse ",
        "finite (got ", data[i], " at position ", i, ")");
  return data;
}

// c_v of each column, see core/labor.h.
Tensor labor_scale_op(Tensor indptr,
                      Tensor weight,
                      int64_t k,
                      std::optional<Tensor> value) {
  const char* op = "labor_scale";
  constexpr int64_t kGrain = 256;
  const int64_t n = indptr.numel() - 1, size = weight.numel();
  check_vector(op, "indptr", indptr, indptr.scalar_type());
  check_vector(op, "weight", weight, ScalarType::Double);
  STD_TORCH_CHECK(n >= 0, op, ": 'indptr' must not be empty");
  STD_TORCH_CHECK(k > 0, op, ": 'k' must be positive (got ", k, ")");
  if (value) {
    check_vector(op, "value", *value, ScalarType::Double);
    check_size(op, "value", *value, size);
  }
  const double* data = positive_doubles(op, "weight", weight);
  const double* a = value ? positive_doubles(op, "value", *value) : nullptr;
  Tensor out = empty_vector(n, ScalarType::Double);
  double* scale = out.mutable_data_ptr<double>();
  const auto call = [&](auto indptr_type) {
    using indptr_t = decltype(indptr_type);
    const indptr_t* ptr = indptr.const_data_ptr<indptr_t>();
    STD_TORCH_CHECK(check_indptr(ptr, n, size).rule == CscFault::kNone, op,
                    ": 'indptr' must ascend from 0 to the ", size, " weights");
    parallel_ranges(n, kGrain, max_threads(), [&](int64_t begin, int64_t end) {
      for (int64_t v = begin; v < end; ++v) {
        const int64_t first = ptr[v], size = ptr[v + 1] - first;
        scale[v] = a ? labor_scale(data + first, a + first, size, k)
                     : labor_scale(data + first, size, k);
      }
    });
  };
  indptr.scalar_type() == ScalarType::Int ? call(int32_t{}) : call(int64_t{});
  return out;
}

void advise_huge_pages_op(Tensor tensor) {
  const size_t bytes = tensor.numel() * tensor.element_size();
  advise_huge_pages(tensor.mutable_data_ptr(), bytes);
  collapse_pages(tensor.mutable_data_ptr(), bytes);
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("coo_to_csc", TORCH_BOX(&coo_to_csc_op));
  m.impl("check_csc", TORCH_BOX(&check_csc_op));
  m.impl("cumulate_weights", TORCH_BOX(&cumulate_weights_op));
  m.impl("labor_scale", TORCH_BOX(&labor_scale_op));
  m.impl("advise_huge_pages", TORCH_BOX(&advise_huge_pages_op));
}

}  // namespace gsample
