// The operators that run the kernels of vertex programs on the CPU.
#include "../cpu/vertex_map.h"

#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "check.h"
#include "generated.h"
#include "output_pool.h"

namespace gsample {

namespace {

constexpr int64_t kMaxWidth = 1 << 16;

// `layout` is (is_double, is_wide, operands) and (rows, is_double, width) of
// each operand and of each result.
VertexKernel read_layout(const char* op, const std::vector<int64_t>& layout) {
  STD_TORCH_CHECK(layout.size() >= 3 && layout.size() % 3 == 0, op,
                  ": 'layout' must have 3 numbers and 3 for each operand and "
                  "result");
  VertexKernel kernel;
  kernel.is_double = layout[0] != 0;
  kernel.is_wide = layout[1] != 0;
  const int64_t count = static_cast<int64_t>(layout.size()) / 3 - 1;
  STD_TORCH_CHECK(layout[2] >= 0 && layout[2] <= count, op, ": 'layout' has ",
                  count, " operands and results (got ", layout[2],
                  " operands)");
  for (int64_t i = 0; i < count; ++i) {
    const int64_t* part = layout.data() + 3 * i + 3;
    STD_TORCH_CHECK(part[0] >= 0 && part[0] < 5, op, ": 'layout' has no rows ",
                    part[0]);
    STD_TORCH_CHECK(part[2] >= 1 && part[2] <= kMaxWidth, op,
                    ": 'layout' must have widths in [1, ", kMaxWidth, "]");
    auto& list = i < layout[2] ? kernel.operands : kernel.outputs;
    list.push_back({static_cast<VertexRows>(part[0]), part[1] != 0, part[2]});
  }
  for (const VertexOperand& output : kernel.outputs)
    STD_TORCH_CHECK(
        output.rows == VertexRows::kCenter || output.rows == VertexRows::kEdge,
        op, ": 'layout' must have results of vertices or edges");
  return kernel;
}

int64_t load_vertex_kernel_op(int64_t descriptor, std::vector<int64_t> layout) {
  const char* op = "load_vertex_kernel";
  VertexKernel kernel = read_layout(op, layout);
  kernel.run = open_vertex_kernel(descriptor);
  STD_TORCH_CHECK(
      kernel.run != nullptr, op,
      ": 'descriptor' must be open on the library of a vertex kernel (got ",
      descriptor, ")");
  return add_vertex_kernel(std::move(kernel));
}

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

ScalarType float_type(bool is_double) {
  return is_double ? ScalarType::Double : ScalarType::Float;
}

void check_operands(const char* op,
                    const VertexKernel& kernel,
                    const std::vector<Tensor>& operands,
                    const std::vector<int64_t>& rows) {
  STD_TORCH_CHECK(operands.size() == kernel.operands.size(), op,
                  ": 'operands' must have ", kernel.operands.size(),
                  " tensors (got ", operands.size(), ")");
  for (size_t i = 0; i < operands.size(); ++i) {
    const VertexOperand& wanted = kernel.operands[i];
    STD_TORCH_CHECK(operands[i].scalar_type() == float_type(wanted.is_double) &&
                        operands[i].is_cpu(),
                    op, ": operand ", i,
                    " must be on the CPU and of the kernel's dtype");
    const int64_t given = operands[i].numel() / wanted.width;
    const int64_t count = wanted.rows == VertexRows::kAny
                              ? given
                              : rows[static_cast<int>(wanted.rows)];
    const int64_t size = multiply_sizes(count, wanted.width);
    STD_TORCH_CHECK(operands[i].numel() == size, op, ": operand ", i,
                    " must have ", size, " values (got ", operands[i].numel(),
                    ")");
  }
}

std::vector<Tensor> vertex_map_op(int64_t kernel_id,
                                  Tensor indptr,
                                  Tensor indices,
                                  std::optional<Tensor> edge_id,
                                  std::optional<Tensor> order,
                                  int64_t num_neighbors,
                                  int64_t num_edges,
                                  std::vector<Tensor> operands,
                                  int64_t num_threads) {
  const char* op = "vertex_map";
  const VertexKernel* kernel = find_vertex_kernel(kernel_id);
  STD_TORCH_CHECK(kernel != nullptr, op, ": 'kernel' must be loaded (got ",
                  kernel_id, ")");
  const ScalarType index = kernel->is_wide ? ScalarType::Long : ScalarType::Int;
  check_vector(op, "indptr", indptr, index);
  check_vector(op, "indices", indices, index);
  STD_TORCH_CHECK(indptr.numel() > 0, op, ": 'indptr' must not be empty");
  STD_TORCH_CHECK(num_neighbors >= 0 && num_edges >= 0, op,
                  ": 'num_neighbors' and 'num_edges' must not be negative");
  const int64_t vertices = indptr.numel() - 1, edges = indices.numel();
  STD_TORCH_CHECK(edge_id.has_value() || num_edges == edges, op,
                  ": 'num_edges' must be ", edges,
                  " without ids of edges (got ", num_edges, ")");
  const std::vector<const void*> graph{
      indptr.const_data_ptr(), indices.const_data_ptr(),
      graph_vector(op, "edge_id", edge_id, index, edges),
      graph_vector(op, "order", order, index, vertices)};
  const std::vector<int64_t> rows{vertices, num_neighbors, num_edges, 1};
  const std::vector<const void*> data = data_of(operands);
  check_operands(op, *kernel, operands, rows);
  std::vector<Tensor> results;
  std::vector<void*> out;
  const int64_t item = kernel->is_double ? 8 : 4;
  for (const VertexOperand& output : kernel->outputs) {
    const int64_t size = rows[static_cast<int>(output.rows)];
    check_rows_fit(op, "num_edges", size, output.width * item);
    results.push_back(pooled_tensor({size, output.width},
                                    float_type(kernel->is_double), item));
    out.push_back(results.back().mutable_data_ptr());
    // Not every edge has to be in the graph.
    if (output.rows == VertexRows::kEdge && edge_id.has_value())
      std::fill_n(static_cast<char*>(out.back()), size * output.width * item,
                  0);
  }
  const std::vector<int64_t> sizes{vertices, num_neighbors, edges, num_edges};
  const int status = run_vertex_kernel(*kernel, sizes, graph, data, out,
                                       threads_of(num_threads));
  check_status(op, status);
  return results;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(gsample, CPU, m) {
  m.impl("vertex_map", TORCH_BOX(&vertex_map_op));
}

STABLE_TORCH_LIBRARY_IMPL(gsample, CompositeExplicitAutograd, m) {
  m.impl("load_vertex_kernel", TORCH_BOX(&load_vertex_kernel_op));
}

}  // namespace gsample
