// The operators that run generated kernels on the CPU.
#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "../cpu/edge_map.h"
#include "check.h"
#include "generated.h"
#include "output_pool.h"

namespace gsample {

namespace {

constexpr ScalarType kTypes[] = {ScalarType::Float, ScalarType::Double,
                                 ScalarType::Int, ScalarType::Long,
                                 ScalarType::Bool};
constexpr int64_t kItemSizes[] = {4, 8, 4, 8, 1};
constexpr int64_t kMaxWidth = 1024;

// `layout` is (type, width, reduces, by) of the result, with -1 for columns,
// and (role, type, width) of each operand.
EdgeKernel read_layout(const char* op, const std::vector<int64_t>& layout) {
  STD_TORCH_CHECK(layout.size() >= 4 && (layout.size() - 4) % 3 == 0, op,
                  ": 'layout' must have 4 numbers and 3 for each operand");
  const auto type_of = [&](int64_t type) {
    STD_TORCH_CHECK(type >= 0 && type < 5, op, ": 'layout' has no type ", type);
    return static_cast<EdgeType>(type);
  };
  const auto width_of = [&](int64_t width) {
    STD_TORCH_CHECK(width >= 1 && width <= kMaxWidth, op,
                    ": 'layout' must have widths in [1, ", kMaxWidth, "]");
    return width;
  };
  EdgeKernel kernel;
  kernel.type = type_of(layout[0]);
  kernel.width = width_of(layout[1]);
  kernel.reduces = layout[2] != 0;
  kernel.by = layout[3];
  for (size_t i = 4; i < layout.size(); i += 3) {
    STD_TORCH_CHECK(layout[i] >= 0 && layout[i] < 6, op,
                    ": 'layout' has no role ", layout[i]);
    const EdgeRole role = static_cast<EdgeRole>(layout[i]);
    if (role == EdgeRole::kPointers)
      kernel.pointers = static_cast<int64_t>(kernel.operands.size());
    kernel.operands.push_back(
        {role, type_of(layout[i + 1]), width_of(layout[i + 2])});
  }
  const int64_t count = static_cast<int64_t>(kernel.operands.size());
  STD_TORCH_CHECK(kernel.by < count &&
                      (kernel.by < 0 ||
                       kernel.operands[kernel.by].role == EdgeRole::kIndex),
                  op, ": 'layout' must reduce by an index");
  STD_TORCH_CHECK(kernel.by >= 0 || !kernel.reduces || kernel.pointers >= 0, op,
                  ": 'layout' must have pointers to reduce by");
  return kernel;
}

int64_t load_edge_kernel_op(int64_t descriptor, std::vector<int64_t> layout) {
  const char* op = "load_edge_kernel";
  EdgeKernel kernel = read_layout(op, layout);
  kernel.run = open_edge_kernel(descriptor);
  STD_TORCH_CHECK(
      kernel.run != nullptr, op,
      ": 'descriptor' must be open on the library of a kernel (got ",
      descriptor, ")");
  return add_edge_kernel(std::move(kernel));
}

int64_t last_pointer(const Tensor& indptr) {
  const int64_t last = indptr.numel() - 1;
  return indptr.scalar_type() == ScalarType::Int
             ? indptr.const_data_ptr<int32_t>()[last]
             : indptr.const_data_ptr<int64_t>()[last];
}

// The rows of each operand.
std::vector<int64_t> check_operands(const char* op,
                                    const EdgeKernel& kernel,
                                    const std::vector<Tensor>& operands) {
  STD_TORCH_CHECK(operands.size() == kernel.operands.size(), op,
                  ": 'operands' must have ", kernel.operands.size(),
                  " tensors (got ", operands.size(), ")");
  std::vector<int64_t> rows;
  for (size_t i = 0; i < operands.size(); ++i) {
    const EdgeOperand& wanted = kernel.operands[i];
    const Tensor& tensor = operands[i];
    STD_TORCH_CHECK(
        tensor.scalar_type() == kTypes[static_cast<int>(wanted.type)] &&
            tensor.is_cpu(),
        op, ": operand ", i, " must be on the CPU and of the kernel's dtype");
    rows.push_back(tensor.numel() / wanted.width);
    STD_TORCH_CHECK(rows[i] * wanted.width == tensor.numel(), op, ": operand ",
                    i, " must have rows of ", wanted.width, " values");
    STD_TORCH_CHECK((wanted.role != EdgeRole::kScalar || rows[i] == 1) &&
                        (wanted.role != EdgeRole::kPointers || rows[i] > 0),
                    op, ": operand ", i, " must not be empty");
  }
  return rows;
}

// How many edges there are; all operands must agree.
int64_t count_edges(const char* op,
                    const EdgeKernel& kernel,
                    const std::vector<Tensor>& operands,
                    const std::vector<int64_t>& rows) {
  int64_t edges = -1, cols = -1;
  if (kernel.pointers >= 0) {
    edges = last_pointer(operands[kernel.pointers]);
    cols = rows[kernel.pointers] - 1;
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const EdgeRole role = kernel.operands[i].role;
    if (role == EdgeRole::kColumn)
      STD_TORCH_CHECK(rows[i] == cols, op, ": operand ", i, " must have ", cols,
                      " rows, one for each column (got ", rows[i], ")");
    if (role != EdgeRole::kEdge && role != EdgeRole::kIndex)
      continue;
    STD_TORCH_CHECK(edges < 0 || rows[i] == edges, op, ": operand ", i,
                    " must have ", edges, " rows, one for each edge (got ",
                    rows[i], ")");
    edges = rows[i];
  }
  STD_TORCH_CHECK(edges >= 0, op, ": 'operands' must say how many edges are");
  return edges;
}

Tensor edge_map_op(int64_t kernel_id,
                   std::vector<Tensor> operands,
                   int64_t num_rows,
                   int64_t num_threads) {
  const char* op = "edge_map";
  const EdgeKernel* kernel = find_edge_kernel(kernel_id);
  const std::vector<const void*> data = data_of(operands);
  STD_TORCH_CHECK(kernel != nullptr, op, ": 'kernel' must be loaded (got ",
                  kernel_id, ")");
  std::vector<int64_t> rows = check_operands(op, *kernel, operands);
  const int64_t edges = count_edges(op, *kernel, operands, rows);
  int64_t size = edges;
  if (kernel->by >= 0)
    size = num_rows;
  else if (kernel->reduces)
    size = rows[kernel->pointers] - 1;
  STD_TORCH_CHECK(size >= 0, op, ": 'num_rows' must not be negative (got ",
                  size, ")");
  rows.push_back(size);
  const int type = static_cast<int>(kernel->type);
  if (kernel->by >= 0)
    check_rows_fit(op, "num_rows", size, kernel->width * kItemSizes[type]);
  std::vector<int64_t> sizes{size};
  if (kernel->width > 1)
    sizes.push_back(kernel->width);
  Tensor out = pooled_tensor(sizes, kTypes[type], kItemSizes[type]);
  char* to = static_cast<char*>(out.mutable_data_ptr());
  if (kernel->by >= 0)
    std::fill_n(to, size * kernel->width * kItemSizes[type], 0);
  const int status =
      run_edge_kernel(*kernel, edges, data, rows, to, threads_of(num_threads));
  check_status(op, status);
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("edge_map", TORCH_BOX(&edge_map_op));
}

STABLE_TORCH_LIBRARY_IMPL(gsample, CompositeExplicitAutograd, m) {
  m.impl("load_edge_kernel", TORCH_BOX(&load_edge_kernel_op));
}

}  // namespace gsample
