// The operators that load and run generated kernels on the CPU.
#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "check.h"
#include "kernel_types.h"
#include "output_pool.h"

namespace gsample {

namespace {

constexpr int64_t kMaxWidth = 1 << 16;

bool is_index(const KernelTensor& tensor) {
  return tensor.width == 1 &&
         (tensor.type == DataType::kInt || tensor.type == DataType::kLong);
}

// Checks that the numbers of a layout are consistent.
void check_layout(const char* op, Kernel& kernel) {
  const bool has_graph = kernel.graph != GraphIndex::kNone;
  const int64_t count = static_cast<int64_t>(kernel.operands.size());
  for (int64_t i = 0; i < count; ++i)
    if (kernel.operands[i].rows == Rows::kPointers)
      kernel.pointers = i;
  STD_TORCH_CHECK(
      kernel.by < 0 || (!has_graph && kernel.by < count &&
                        kernel.operands[kernel.by].rows == Rows::kEdge &&
                        is_index(kernel.operands[kernel.by])),
      op, ": 'layout' must reduce by an index");
  STD_TORCH_CHECK(
      kernel.pointers < 0 ||
          (!has_graph && is_index(kernel.operands[kernel.pointers])),
      op, ": 'layout' must have integer pointers");
  STD_TORCH_CHECK(has_graph || kernel.outputs.size() == 1, op,
                  ": 'layout' must have one result without a graph");
  for (const KernelTensor& output : kernel.outputs) {
    const Rows of_rows = kernel.by >= 0 ? Rows::kAny : Rows::kEdge;
    const bool of_columns =
        has_graph || (kernel.pointers >= 0 && kernel.by < 0);
    STD_TORCH_CHECK(
        output.rows == of_rows || (of_columns && output.rows == Rows::kCenter),
        op,
        ": 'layout' must have results of vertices, edges, or the "
        "rows of an index");
  }
}

// `layout` is (graph index, index by which rows are reduced or -1, operands)
// and (rows, type, width) of each operand and result.
Kernel read_layout(const char* op, const std::vector<int64_t>& layout) {
  STD_TORCH_CHECK(layout.size() >= 3 && layout.size() % 3 == 0, op,
                  ": 'layout' must have 3 numbers and 3 for each operand and "
                  "result");
  const int64_t count = static_cast<int64_t>(layout.size()) / 3 - 1;
  STD_TORCH_CHECK(layout[0] >= 0 && layout[0] < 3, op,
                  ": 'layout' has no graph ", layout[0]);
  STD_TORCH_CHECK(layout[2] >= 0 && layout[2] <= count, op, ": 'layout' has ",
                  count, " operands and results (got ", layout[2],
                  " operands)");
  Kernel kernel;
  kernel.graph = static_cast<GraphIndex>(layout[0]);
  kernel.by = layout[1];
  for (int64_t i = 0; i < count; ++i) {
    const int64_t* part = layout.data() + 3 * i + 3;
    STD_TORCH_CHECK(part[0] >= 0 && part[0] < kRows, op,
                    ": 'layout' has no rows ", part[0]);
    STD_TORCH_CHECK(part[1] >= 0 && part[1] < kDataTypes, op,
                    ": 'layout' has no type ", part[1]);
    STD_TORCH_CHECK(part[2] >= 1 && part[2] <= kMaxWidth, op,
                    ": 'layout' must have widths in [1, ", kMaxWidth, "]");
    auto& list = i < layout[2] ? kernel.operands : kernel.outputs;
    list.push_back(
        {static_cast<Rows>(part[0]), static_cast<DataType>(part[1]), part[2]});
  }
  check_layout(op, kernel);
  return kernel;
}

int64_t load_kernel_op(int64_t descriptor, std::vector<int64_t> layout) {
  const char* op = "load_kernel";
  Kernel kernel = read_layout(op, layout);
  STD_TORCH_CHECK(
      open_kernel(descriptor, kernel), op,
      ": 'descriptor' must be open on the library of a kernel (got ",
      descriptor, ")");
  return add_kernel(std::move(kernel));
}

void unload_kernel_op(int64_t kernel) {
  remove_kernel(kernel);
}

// The number of rows of each kind; -1 if operands determine it.
using Counts = std::array<int64_t, kRows>;

const void* graph_vector(const char* op,
                         const char* name,
                         const std::optional<Tensor>& tensor,
                         ScalarType dtype,
                         int64_t size) {
  if (!tensor.has_value())
    return nullptr;
  check_vector(op, name, *tensor, dtype);
  check_size(op, name, *tensor, size);
  return tensor->const_data_ptr();
}

// The last pointer of an edge map.
int64_t count_edges(const char* op,
                    const KernelTensor& wanted,
                    const Tensor& indptr) {
  STD_TORCH_CHECK(indptr.scalar_type() == type_of(wanted) && indptr.is_cpu() &&
                      indptr.numel() > 0,
                  op,
                  ": pointers must be on the CPU, of the kernel's dtype "
                  "and not empty");
  const int64_t last = indptr.numel() - 1;
  const int64_t edges = wanted.type == DataType::kInt
                            ? indptr.const_data_ptr<int32_t>()[last]
                            : indptr.const_data_ptr<int64_t>()[last];
  STD_TORCH_CHECK(edges >= 0, op,
                  ": pointers must ascend from 0 to the number of edges");
  return edges;
}

// Checks the dtypes and sizes of operands. The first operand with an unknown
// count sets it.
void check_operands(const char* op,
                    const Kernel& kernel,
                    const std::vector<Tensor>& operands,
                    Counts& counts) {
  for (size_t i = 0; i < operands.size(); ++i) {
    const KernelTensor& wanted = kernel.operands[i];
    STD_TORCH_CHECK(
        operands[i].scalar_type() == type_of(wanted) && operands[i].is_cpu(),
        op, ": operand ", i, " must be on the CPU and of the kernel's dtype");
    const int64_t rows = operands[i].numel() / wanted.width;
    int64_t count = rows;
    if (wanted.rows != Rows::kAny && wanted.rows != Rows::kPointers) {
      int64_t& known = counts[static_cast<int>(wanted.rows)];
      known = count = known < 0 ? rows : known;
    }
    const int64_t size = multiply_sizes(count, wanted.width);
    STD_TORCH_CHECK(operands[i].numel() == size, op, ": operand ", i,
                    " must have ", size, " values (got ", operands[i].numel(),
                    ")");
  }
}

// Allocates the results; those that a kernel writes only in part are zeros.
//   some_edges, some_vertices: whether it may write only those of some
std::vector<Tensor> make_outputs(const char* op,
                                 const Kernel& kernel,
                                 const Counts& counts,
                                 bool some_edges,
                                 bool some_vertices,
                                 std::vector<void*>& out) {
  std::vector<Tensor> results;
  for (const KernelTensor& output : kernel.outputs) {
    const int64_t item = item_size(output);
    const int64_t rows = counts[static_cast<int>(output.rows)];
    const bool of_edges = output.rows == Rows::kEdge;
    if (output.rows != Rows::kCenter)
      check_rows_fit(op, of_edges ? "num_edges" : "num_rows", rows,
                     output.width * item);
    std::vector<int64_t> sizes{rows};
    if (kernel.graph != GraphIndex::kNone || output.width > 1)
      sizes.push_back(output.width);
    results.push_back(pooled_tensor(sizes, type_of(output), item));
    out.push_back(results.back().mutable_data_ptr());
    // Row sums start from 0.
    if (kernel.by >= 0 || (of_edges ? some_edges : some_vertices))
      std::fill_n(static_cast<char*>(out.back()), rows * output.width * item,
                  0);
  }
  return results;
}

std::vector<Tensor> run_kernel_op(int64_t kernel_id,
                                  std::vector<Tensor> operands,
                                  std::optional<Tensor> indptr,
                                  std::optional<Tensor> indices,
                                  std::optional<Tensor> edge_id,
                                  std::optional<Tensor> order,
                                  int64_t num_rows,
                                  int64_t num_edges,
                                  int64_t num_threads) {
  const char* op = "run_kernel";
  const auto kernel = find_kernel(kernel_id);
  STD_TORCH_CHECK(kernel != nullptr, op, ": 'kernel' must be loaded (got ",
                  kernel_id, ")");
  STD_TORCH_CHECK(operands.size() == kernel->operands.size(), op,
                  ": 'operands' must have ", kernel->operands.size(),
                  " tensors (got ", operands.size(), ")");
  STD_TORCH_CHECK(num_rows >= 0 && num_edges >= 0, op,
                  ": 'num_rows' and 'num_edges' must not be negative");
  const bool has_graph = kernel->graph != GraphIndex::kNone;
  STD_TORCH_CHECK(
      indptr.has_value() == has_graph && indices.has_value() == has_graph, op,
      ": 'indptr' and 'indices' must be those of the kernel's "
      "graph, if it has one");
  std::vector<const void*> data;  // valid while the operands live
  for (Tensor& tensor : operands) {
    if (!tensor.is_contiguous())
      tensor = torch::stable::contiguous(tensor);
    data.push_back(tensor.const_data_ptr());
  }
  std::vector<const void*> graph;
  Counts counts{-1, num_rows, -1, 1, num_rows, -1};
  int64_t edges = -1, vertices = -1;
  if (has_graph) {
    const ScalarType index =
        kernel->graph == GraphIndex::kLong ? ScalarType::Long : ScalarType::Int;
    check_vector(op, "indptr", *indptr, index);
    check_vector(op, "indices", *indices, index);
    STD_TORCH_CHECK(indptr->numel() > 0, op, ": 'indptr' must not be empty");
    counts[0] = indptr->numel() - 1;
    counts[2] = num_edges;
    edges = indices->numel();
    vertices =
        order.has_value() ? std::min(order->numel(), counts[0]) : counts[0];
    STD_TORCH_CHECK(edge_id.has_value() || num_edges == edges, op,
                    ": 'num_edges' must be ", edges,
                    " without ids of edges (got ", num_edges, ")");
    graph = {indptr->const_data_ptr(), indices->const_data_ptr(),
             graph_vector(op, "edge_id", edge_id, index, edges),
             graph_vector(op, "order", order, index, vertices)};
  } else if (kernel->pointers >= 0) {
    const Tensor& pointers = operands[kernel->pointers];
    counts[2] = count_edges(op, kernel->operands[kernel->pointers], pointers);
    counts[0] = pointers.numel() - 1;
  }
  check_operands(op, *kernel, operands, counts);
  STD_TORCH_CHECK(counts[2] >= 0, op,
                  ": 'operands' must determine the number of edges");
  std::vector<void*> out;
  std::vector<Tensor> results =
      make_outputs(op, *kernel, counts, edge_id.has_value(),
                   has_graph && vertices != counts[0], out);
  int status = 0;
  if (has_graph) {
    status = run_over_graph(*kernel,
                            {counts[0], num_rows, edges, num_edges, vertices},
                            graph, data, out, threads_of(num_threads));
  } else {
    std::vector<int64_t> sizes{counts[2]};
    for (size_t i = 0; i < operands.size(); ++i)
      sizes.push_back(operands[i].numel() / kernel->operands[i].width);
    sizes.push_back(num_rows);
    status = run_over_edges(*kernel, sizes, data, out, threads_of(num_threads));
  }
  STD_TORCH_CHECK(status != 1, op, ": an index is out of range");
  STD_TORCH_CHECK(status != 2, op,
                  ": pointers must ascend from 0 to the number of edges");
  return results;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("run_kernel", TORCH_BOX(&run_kernel_op));
}

STABLE_TORCH_LIBRARY_IMPL(gsample, CompositeExplicitAutograd, m) {
  m.impl("load_kernel", TORCH_BOX(&load_kernel_op));
  m.impl("unload_kernel", TORCH_BOX(&unload_kernel_op));
}

}  // namespace gsample
