// Memory of output tensors that later batches reuse. The kernel zeroes fresh
// memory page by page, which takes longer than filling it with a sample.
#pragma once

#include <torch/csrc/stable/tensor.h>

namespace gsample {

// A contiguous, uninitialised CPU tensor.
torch::stable::Tensor pooled_tensor(
    torch::headeronly::IntHeaderOnlyArrayRef sizes,
    torch::headeronly::ScalarType dtype,
    int64_t item_size);

// An int64 vector from the pool.
torch::stable::Tensor pooled_vector(int64_t size);

}  // namespace gsample
