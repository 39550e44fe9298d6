// The dtypes of what generated kernels read and write.
#pragma once

#include "../cpu/kernel.h"
#include "check.h"

namespace gsample {

inline ScalarType type_of(const KernelTensor& tensor) {
  constexpr ScalarType kTypes[] = {ScalarType::Float, ScalarType::Double,
                                   ScalarType::Int, ScalarType::Long,
                                   ScalarType::Bool};
  return kTypes[static_cast<int>(tensor.type)];
}

// Bytes of a value.
inline int64_t item_size(const KernelTensor& tensor) {
  constexpr int64_t kItemSizes[] = {4, 8, 4, 8, 1};
  return kItemSizes[static_cast<int>(tensor.type)];
}

}  // namespace gsample
