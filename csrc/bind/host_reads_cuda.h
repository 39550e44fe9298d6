// Pinned host memory that kernels still read after their operator has returned.
#pragma once

#include <torch/csrc/stable/tensor.h>

#include <vector>

#include "../cuda/device.h"

namespace gsample {

using torch::stable::Tensor;

// The pinned tensors that the kernels of one call read. They are held until an
// event, unless the stream is idle at the end of the call; errors do not change
// this. While the stream is captured into a CUDA graph nothing is held: the
// kernels run at each replay.
class HostReads {
 public:
  HostReads();
  ~HostReads();
  HostReads(const HostReads&) = delete;
  HostReads& operator=(const HostReads&) = delete;

  // Sets the stream, and releases the tensors of earlier calls whose kernels
  // have finished.
  void start(StreamHandle stream);

  // Adds a tensor to the innermost call of this thread.
  static void add(const Tensor& tensor);

 private:
  HostReads* const outer_;
  std::vector<Tensor> tensors_;
  StreamHandle stream_ = nullptr;
};

}  // namespace gsample
