// Operators of torch that the GPU operators call.
#pragma once

#include <array>
#include <optional>
#include <utility>

#include "device_cuda.h"

namespace gsample {

// The most numbers per call of torch's sort.
#if defined(GSAMPLE_EMULATE)
int64_t max_sorted();  // set by tests
#else
inline int64_t max_sorted() {
  return INT32_MAX;
}
#endif

// The numbers in ascending order, and the position of each in the input. The
// sort is stable.
std::pair<Tensor, Tensor> stable_sort(const Tensor& vector,
                                      const DeviceScope& scope);

// vector[index].
inline Tensor index_select(const Tensor& vector, const Tensor& index) {
  using torch::stable::detail::from;
  std::array<StableIValue, 3> stack{from(vector), from(int64_t{0}),
                                    from(index)};
  return allocate(
      "selection", index.numel(), static_cast<int64_t>(vector.element_size()),
      [&] {
        TORCH_ERROR_CODE_CHECK(torch_call_dispatcher(
            "aten::index_select", "", stack.data(), TORCH_ABI_VERSION));
        return torch::stable::detail::to<Tensor>(stack[0]);
      });
}

}  // namespace gsample
