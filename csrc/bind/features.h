// Input checks and row layout of the feature operators on both devices.
#pragma once

#include <optional>
#include <vector>

#include "../core/widen.h"
#include "check.h"

namespace gsample {

// The rows of `input`, and the output made of some of them.
struct RowPlan {
  RowPlan(const char* op,
          const Tensor& input,
          const std::optional<Tensor>& scale,
          bool widen,
          int64_t size)
      : format(format_of(op, input, scale, widen)) {
    STD_TORCH_CHECK(input.dim() > 0 && input.is_contiguous(), op,
                    ": 'input' must be contiguous and have rows");
    if (scale) {
      check_vector(op, "scale", *scale, ScalarType::Float);
      check_size(op, "scale", *scale, input.size(0));
    }
    sizes.assign(input.sizes().begin(), input.sizes().end());
    sizes[0] = size;
    row_bytes = static_cast<int64_t>(input.element_size());
    for (size_t i = 1; i < sizes.size(); ++i)
      row_bytes = multiply_sizes(row_bytes, sizes[i]);
    const bool same = format == RowFormat::kBytes;
    dtype = same ? input.scalar_type() : ScalarType::Float;
    item_size = same ? static_cast<int64_t>(input.element_size()) : 4;
  }

  RowFormat format;
  int64_t row_bytes;           // of `input`
  std::vector<int64_t> sizes;  // of the output, with its dtype
  ScalarType dtype;
  int64_t item_size;

 private:
  static RowFormat format_of(const char* op,
                             const Tensor& input,
                             const std::optional<Tensor>& scale,
                             bool widen) {
    const ScalarType dtype = input.scalar_type();
    if (scale) {
      STD_TORCH_CHECK(dtype == ScalarType::Char, op,
                      ": 'input' must be int8 with 'scale'");
      return RowFormat::kInt8;
    }
    if (!widen || dtype == ScalarType::Float)
      return RowFormat::kBytes;
    if (dtype == ScalarType::BFloat16)
      return RowFormat::kBfloat16;
    STD_TORCH_CHECK(dtype == ScalarType::Half, op,
                    ": 'input' must be bfloat16, float16 or float32 to widen, "
                    "or int8 with 'scale'");
    return RowFormat::kHalf;
  }
};

}  // namespace gsample
