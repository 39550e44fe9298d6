// Shared code of sum_columns on the CPU and on a GPU.
#pragma once

#include <optional>

#include "check.h"

namespace gsample {

// Checks the arguments. Returns the number of values in a row of `value`.
inline int64_t check_sum(const char* op,
                         const Tensor& indptr,
                         const Tensor& value,
                         const std::optional<Tensor>& perm) {
  const bool narrow = indptr.scalar_type() == ScalarType::Int;
  check_vector(op, "indptr", indptr,
               narrow ? ScalarType::Int : ScalarType::Long);
  STD_TORCH_CHECK(indptr.numel() > 0, op, ": 'indptr' must not be empty");
  STD_TORCH_CHECK((value.scalar_type() == ScalarType::Float ||
                   value.scalar_type() == ScalarType::Double) &&
                      (value.dim() == 1 || value.dim() == 2) &&
                      value.is_contiguous(),
                  op,
                  ": 'value' must be a contiguous float32 or float64 tensor "
                  "[num_edges] or [num_edges, size]");
  int64_vector(op, "perm", perm, value.size(0));
  return value.dim() == 1 ? 1 : value.size(1);
}

// Calls call(indptr_t{}, value_t{}) with the types of the arguments.
template <typename call_t>
void dispatch_sum(const Tensor& indptr,
                  const Tensor& value,
                  const call_t& call) {
  const bool narrow = indptr.scalar_type() == ScalarType::Int;
  const bool wide = value.scalar_type() == ScalarType::Double;
  if (narrow)
    wide ? call(int32_t{}, double{}) : call(int32_t{}, float{});
  else
    wide ? call(int64_t{}, double{}) : call(int64_t{}, float{});
}

}  // namespace gsample
