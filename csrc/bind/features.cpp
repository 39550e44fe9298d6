// The feature operators on the CPU.
#include "features.h"

#include <torch/csrc/stable/library.h>

#include "../cpu/gather_rows.h"
#include "output_pool.h"

namespace gsample {

namespace {

Tensor gather_rows_op(Tensor input,
                      Tensor index,
                      std::optional<Tensor> scale,
                      bool widen,
                      int64_t num_threads) {
  const char* op = "gather_rows";
  const int64_t size = index.numel();
  const RowPlan plan(op, input, scale, widen, size);
  const int64_t* rows = int64_vector(op, "index", index, size);
  Tensor out = pooled_tensor(plan.sizes, plan.dtype, plan.item_size);
  const RowTable table{static_cast<const char*>(input.const_data_ptr()),
                       input.size(0), static_cast<size_t>(plan.row_bytes),
                       plan.format,
                       scale ? scale->const_data_ptr<float>() : nullptr};
  int64_t where = 0;
  const Status status =
      gather_rows(table, rows, size, static_cast<char*>(out.mutable_data_ptr()),
                  threads_of(num_threads), &where);
  STD_TORCH_CHECK(status != Status::kInterrupted, op, ": interrupted");
  STD_TORCH_CHECK(status != Status::kFault, op, ": 'index' must be in [0, ",
                  input.size(0), ") (got ", rows[where], " at position ", where,
                  ")");
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("gather_rows", TORCH_BOX(&gather_rows_op));
}

}  // namespace gsample
