// What the operators that run generated kernels have in common.
#pragma once

#include <stdint.h>

#include <vector>

#include "check.h"

namespace gsample {

// Makes operands contiguous. Returns where they are: as long as they live.
inline std::vector<const void*> data_of(std::vector<Tensor>& operands) {
  std::vector<const void*> data;
  for (Tensor& tensor : operands) {
    if (!tensor.is_contiguous())
      tensor = torch::stable::contiguous(tensor);
    data.push_back(tensor.const_data_ptr());
  }
  return data;
}

// Checks what a kernel returned.
inline void check_status(const char* op, int status) {
  STD_TORCH_CHECK(status != 1, op, ": an index is out of range");
  STD_TORCH_CHECK(status != 2, op,
                  ": pointers must ascend from 0 to the number of edges");
}

}  // namespace gsample
