// Operators of torch that operators on a GPU use.
#pragma once

#include <array>
#include <optional>
#include <utility>

#include "check.h"
#include "device_memory_cuda.h"

namespace gsample {

// The numbers in ascending order, and where each was; equal ones keep their
// order.
inline std::pair<Tensor, Tensor> stable_sort(const Tensor& vector) {
  using torch::stable::detail::from;
  using torch::stable::detail::to;
  std::array<StableIValue, 4> stack{from(vector),
                                    from(std::optional<bool>(true)),
                                    from(int64_t{0}), from(false)};
  return allocate("sort", vector.numel(), 2 * int64_t{sizeof(int64_t)}, [&] {
    TORCH_ERROR_CODE_CHECK(torch_call_dispatcher(
        "aten::sort", "stable", stack.data(), TORCH_ABI_VERSION));
    return std::pair{to<Tensor>(stack[0]), to<Tensor>(stack[1])};
  });
}

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
