// The dtypes that generated kernels read and write.
#pragma once

#include "../cpu/kernel.h"
#include "check.h"

namespace gsample {

constexpr int64_t kDataTypes = 7;

inline ScalarType type_of(const KernelTensor& tensor) {
  constexpr ScalarType kTypes[kDataTypes] = {
      ScalarType::Float, ScalarType::Double, ScalarType::Int,
      ScalarType::Long,  ScalarType::Bool,   ScalarType::BFloat16,
      ScalarType::Half};
  return kTypes[static_cast<int>(tensor.type)];
}

// Bytes of a value.
inline int64_t item_size(const KernelTensor& tensor) {
  constexpr int64_t kItemSizes[kDataTypes] = {4, 8, 4, 8, 1, 2, 2};
  return kItemSizes[static_cast<int>(tensor.type)];
}

}  // namespace gsample
