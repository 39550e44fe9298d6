// Sorting on a GPU: torch sorts at most INT32_MAX numbers per call. Longer
// vectors are sorted in halves and merged.
#include "aten_cuda.h"
#include "../cuda/merge_sorted.h"

namespace gsample {

namespace {

using Sorted = std::pair<Tensor, Tensor>;

Sorted sort_by_torch(const Tensor& vector) {
  using torch::stable::detail::from;
  using torch::stable::detail::to;
  std::array<StableIValue, 4> stack{from(vector),
                                    from(std::optional<bool>(true)),
                                    from(int64_t{0}), from(false)};
  return allocate("sort", vector.numel(), 2 * int64_t{sizeof(int64_t)}, [&] {
    TORCH_ERROR_CODE_CHECK(torch_call_dispatcher(
        "aten::sort", "stable", stack.data(), TORCH_ABI_VERSION));
    return Sorted{to<Tensor>(stack[0]), to<Tensor>(stack[1])};
  });
}

template <typename input_t>
Sorted merge(const Sorted& first,
             const Sorted& second,
             const DeviceScope& scope) {
  const auto part = [](const Sorted& of) {
    return SortedPart<input_t>{of.first.const_data_ptr<input_t>(),
                               of.second.const_data_ptr<int64_t>(),
                               of.first.numel()};
  };
  const int64_t n = first.first.numel() + second.first.numel();
  Tensor value =
      device_vector("sort", first.first, n, first.first.scalar_type());
  Tensor from = device_vector("sort", first.first, n);
  merge_sorted(MergeSortedCuda<input_t>{part(first), part(second),
                                        value.mutable_data_ptr<input_t>(),
                                        from.mutable_data_ptr<int64_t>()},
               scope.stream());
  return {value, from};
}

}  // namespace

Sorted stable_sort(const Tensor& vector, const DeviceScope& scope) {
  const int64_t n = vector.numel(), half = n / 2;
  if (n <= max_sorted())
    return sort_by_torch(vector);
  const auto sort_part = [&](int64_t begin, int64_t size) {
    Tensor whole = vector;
    return stable_sort(torch::stable::narrow(whole, 0, begin, size), scope);
  };
  const Sorted first = sort_part(0, half), second = sort_part(half, n - half);
  return vector.scalar_type() == ScalarType::Int
             ? merge<int32_t>(first, second, scope)
             : merge<int64_t>(first, second, scope);
}

}  // namespace gsample
