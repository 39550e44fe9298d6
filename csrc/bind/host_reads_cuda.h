// Host memory that kernels still read after their operator returned.
#pragma once

#include <torch/csrc/stable/tensor.h>

#include <vector>

#include "../cuda/device.h"

namespace gsample {

using torch::stable::Tensor;

// Holds tensors until all that the stream has to do now is done. While a CUDA
// graph records the stream nothing is held: the kernels run at each replay.
void keep_until_done(std::vector<Tensor> tensors, StreamHandle stream);

// Drops the tensors whose kernels are done. Each operator calls it.
void drop_done(StreamHandle stream);

}  // namespace gsample
