// The operator sum_columns on the CPU.
#include "sum_columns.h"

#include <torch/csrc/stable/library.h>

#include "../core/sum.h"
#include "../cpu/formats.h"

namespace gsample {

namespace {

constexpr int64_t kGrain = 256;  // fewest columns of a thread

Tensor sum_columns_op(Tensor indptr, Tensor value, std::optional<Tensor> perm) {
  const char* op = "sum_columns";
  const int64_t width = check_sum(op, indptr, value, perm);
  const int64_t n = indptr.numel() - 1, num_edges = value.size(0);
  const int64_t* place =
      perm.has_value() ? perm->const_data_ptr<int64_t>() : nullptr;
  for (int64_t e = 0; place != nullptr && e < num_edges; ++e)
    STD_TORCH_CHECK(place[e] >= 0 && place[e] < num_edges, op,
                    ": 'perm' must be in [0, ", num_edges, ") (got ", place[e],
                    " at position ", e, ")");
  Tensor out = value.dim() == 1
                   ? torch::stable::empty({n}, value.scalar_type())
                   : torch::stable::empty({n, width}, value.scalar_type());
  dispatch_sum(indptr, value, [&](auto indptr_type, auto value_type) {
    using value_t = decltype(value_type);
    const auto* begin = indptr.const_data_ptr<decltype(indptr_type)>();
    STD_TORCH_CHECK(check_indptr(begin, n, num_edges).rule == CscFault::kNone,
                    op, ": 'indptr' must ascend from 0 to the ", num_edges,
                    " edges");
    const value_t* data = value.const_data_ptr<value_t>();
    value_t* to = out.mutable_data_ptr<value_t>();
    parallel_ranges(n, kGrain, max_threads(), [&](int64_t a, int64_t b) {
      for (int64_t v = a; v < b; ++v)
        for (int64_t f = 0; f < width; ++f)
          to[v * width + f] =
              sum_column(data, place, begin[v], begin[v + 1], width, f);
    });
  });
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("sum_columns", TORCH_BOX(&sum_columns_op));
}

}  // namespace gsample
