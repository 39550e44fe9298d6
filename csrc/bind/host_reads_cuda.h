// Pinned host memory that kernels still read after their operator returned.
#pragma once

#include <torch/csrc/stable/tensor.h>

#include <vector>

#include "../cuda/device.h"

namespace gsample {

using torch::stable::Tensor;

// The tensors in pinned memory that the kernels of one call read. Unless the
// stream is idle at the end of the call, also after an error, they are held
// until an event. While a CUDA graph records the stream nothing is held: the
// kernels run at each replay.
class HostReads {
 public:
  HostReads();
  ~HostReads();
  HostReads(const HostReads&) = delete;
  HostReads& operator=(const HostReads&) = delete;

  // Sets the stream, and drops the tensors of earlier calls whose kernels are
  // done.
  void start(StreamHandle stream);

  // Adds a tensor to the innermost call of this thread.
  static void add(const Tensor& tensor);

 private:
  HostReads* const outer_;
  std::vector<Tensor> tensors_;
  StreamHandle stream_ = nullptr;
};

}  // namespace gsample
