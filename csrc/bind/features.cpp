// The feature operators on the CPU.
#include <torch/csrc/stable/library.h>

#include <vector>

#include "../cpu/gather_rows.h"
#include "check.h"
#include "output_pool.h"

namespace gsample {

namespace {

Tensor gather_rows_op(Tensor input, Tensor index, int64_t num_threads) {
  const char* op = "gather_rows";
  STD_TORCH_CHECK(input.dim() > 0 && input.is_contiguous(), op,
                  ": 'input' must be contiguous and have rows");
  const int64_t size = index.numel();
  const int64_t* rows = int64_vector(op, "index", index, size);
  std::vector<int64_t> sizes(input.sizes().begin(), input.sizes().end());
  sizes[0] = size;
  int64_t row_bytes = static_cast<int64_t>(input.element_size());
  for (size_t i = 1; i < sizes.size(); ++i)
    row_bytes = multiply_sizes(row_bytes, sizes[i]);
  Tensor out = pooled_tensor(sizes, input.scalar_type(), input.element_size());
  int64_t where = 0;
  const Status status = gather_rows(
      static_cast<const char*>(input.const_data_ptr()), input.size(0),
      row_bytes, rows, size, static_cast<char*>(out.mutable_data_ptr()),
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
