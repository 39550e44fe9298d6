// The operator sample_by_kernel on the CPU.
#include "../cpu/sample_by_kernel.h"

#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "check.h"
#include "kernel_types.h"
#include "output_pool.h"

namespace gsample {

namespace {

constexpr const char* kOp = "sample_by_kernel";

// Properties of the operands of a call.
struct Sizes {
  int64_t num_edges;
  int64_t n;
  ScalarType indptr;
  bool searches;
};

// Checks that an operand fits the kernel that runs over blocks.
RoleOperand read_operand(const KernelTensor& wanted,
                         const Tensor& tensor,
                         int64_t number,
                         const Sizes& sizes) {
  STD_TORCH_CHECK(number >= 0 && number < kRoles, kOp, ": 'roles' has no role ",
                  number);
  const Role role = static_cast<Role>(number);
  const bool is_read =
      role == Role::kWhole || role == Role::kColumn || role == Role::kEdge;
  const ScalarType type = type_of(wanted);
  STD_TORCH_CHECK(
      tensor.is_cpu() && (!is_read || tensor.scalar_type() == type), kOp,
      ": 'operands' must be on the CPU, of the dtypes of the kernel");
  const int64_t rows = tensor.numel() / wanted.width;
  const bool is_whole = !is_read || rows * wanted.width == tensor.numel();
  const bool of_edges = wanted.rows == Rows::kEdge;
  bool fits = false;
  switch (role) {
    case Role::kWhole:
      fits =
          wanted.rows == Rows::kAny || (wanted.rows == Rows::kOne && rows == 1);
      break;
    case Role::kColumn:
      fits = wanted.rows == Rows::kCenter && rows == sizes.n;
      break;
    case Role::kEdge:
      fits = of_edges && rows == sizes.num_edges;
      break;
    case Role::kFound:
      fits = of_edges && wanted.width == 1 && type == ScalarType::Bool &&
             sizes.searches;
      break;
    case Role::kPointers:
      fits = wanted.rows == Rows::kPointers && type == sizes.indptr;
      break;
  }
  STD_TORCH_CHECK(fits && is_whole, kOp, ": operand of role ", number,
                  " must match the kernel's operand");
  return {role, static_cast<const char*>(tensor.const_data_ptr()), rows,
          wanted.width * item_size(wanted)};
}

// Drops the columns without an edge.
std::tuple<Tensor, Tensor> pack(const Tensor& edge, ScalarType dtype) {
  const int64_t n = edge.numel();
  const bool narrow = dtype == ScalarType::Int;
  Tensor indptr = pooled_tensor({n + 1}, dtype, narrow ? 4 : 8);
  const int64_t* from = edge.const_data_ptr<int64_t>();
  const auto count = [&](auto* begin) {
    int64_t total = begin[0] = 0;
    for (int64_t i = 0; i < n; ++i) {
      total += from[i] >= 0;
      begin[i + 1] = static_cast<std::decay_t<decltype(*begin)>>(total);
    }
    return total;
  };
  const int64_t total = narrow ? count(indptr.mutable_data_ptr<int32_t>())
                               : count(indptr.mutable_data_ptr<int64_t>());
  if (total == n)
    return {indptr, edge};
  Tensor packed = pooled_vector(total);
  std::copy_if(from, from + n, packed.mutable_data_ptr<int64_t>(),
               [](int64_t e) { return e >= 0; });
  return {indptr, packed};
}

std::tuple<Tensor, Tensor> sample_by_kernel_op(Tensor indptr,
                                               Tensor indices,
                                               Tensor cols,
                                               int64_t kernel_id,
                                               std::vector<Tensor> operands,
                                               std::vector<int64_t> roles,
                                               Tensor key,
                                               int64_t call_id,
                                               std::optional<Tensor> id,
                                               std::optional<Tensor> before,
                                               std::optional<int64_t> num_rows,
                                               int64_t num_threads) {
  check_matrix(kOp, indptr, indices);
  const auto kernel = find_kernel(kernel_id);
  STD_TORCH_CHECK(kernel != nullptr, kOp, ": 'kernel' must be loaded (got ",
                  kernel_id, ")");
  const bool is_weight = kernel->graph == GraphIndex::kNone && kernel->by < 0 &&
                         kernel->outputs[0].rows == Rows::kEdge &&
                         kernel->outputs[0].width == 1 &&
                         (kernel->outputs[0].type == DataType::kFloat ||
                          kernel->outputs[0].type == DataType::kDouble);
  STD_TORCH_CHECK(is_weight, kOp,
                  ": 'kernel' must compute only one float for each edge");
  STD_TORCH_CHECK(operands.size() == kernel->operands.size() &&
                      roles.size() == operands.size(),
                  kOp, ": 'operands' and 'roles' must be ",
                  kernel->operands.size(), " (got ", operands.size(), " and ",
                  roles.size(), ")");
  const int64_t n = cols.numel(), num_cols = indptr.numel() - 1;
  const int64_t* wanted = int64_vector(kOp, "cols", cols, n);
  const int64_t* ids = int64_vector(kOp, "id", id, n);
  const int64_t* searched = int64_vector(kOp, "before", before, n);
  const Sizes sizes{indices.numel(), n, indptr.scalar_type(),
                    before.has_value()};
  std::vector<RoleOperand> given;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].is_contiguous())
      operands[i] = torch::stable::contiguous(operands[i]);
    given.push_back(
        read_operand(kernel->operands[i], operands[i], roles[i], sizes));
  }
  Tensor edge = pooled_vector(n);
  dispatch_graph(
      kOp, indptr.scalar_type(), indices.scalar_type(),
      [&](auto indptr_type, auto index_type) {
        using indptr_t = decltype(indptr_type);
        using index_t = decltype(index_type);
        const SampleByKernelArgs<indptr_t, index_t> args{
            {indptr.const_data_ptr<indptr_t>(),
             indices.const_data_ptr<index_t>(), num_rows.value_or(0), num_cols,
             indices.numel()},
            num_rows.has_value(),
            wanted,
            ids,
            searched,
            n,
            kernel.get(),
            std::move(given),
            read_stream(kOp, key, call_id, 0),
            threads_of(num_threads)};
        KernelFault fault = KernelFault::kNone;
        const Status status =
            sample_by_kernel(args, edge.mutable_data_ptr<int64_t>(), &fault);
        STD_TORCH_CHECK(status != Status::kInterrupted, kOp, ": interrupted");
        STD_TORCH_CHECK(fault != KernelFault::kWeight, kOp,
                        ": 'weight' must be finite and not negative");
        STD_TORCH_CHECK(
            status == Status::kDone, kOp, ": 'cols' and 'before' must be in ",
            "[0, ", num_cols, "), all rows in [0, ",
            num_rows.value_or(INT64_MAX),
            "), indices of the kernel in range, and 'indptr' must ascend from "
            "0 to the number of edges");
      });
  return pack(edge, indptr.scalar_type());
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("sample_by_kernel", TORCH_BOX(&sample_by_kernel_op));
}

}  // namespace gsample
