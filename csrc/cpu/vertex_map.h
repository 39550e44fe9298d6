// Runs kernels that torch_gsample/codegen generates for vertex programs.
#pragma once

#include <stdint.h>

#include <vector>

namespace gsample {

// A kernel that computes the vertices [begin, end) of an order.
//   graph: indptr, indices, ids of edges or null, order or null; all checked
using VertexKernelFunction = void (*)(int64_t begin,
                                      int64_t end,
                                      const void* const* graph,
                                      const void* const* data,
                                      void* const* out);

// What an operand or a result has a row for:
// torch_gsample/ops/vertex_map.py, ROWS. kAny are as many as there are, which
// the kernel finds by ids of edges: whoever gives these answers for them.
enum class VertexRows { kCenter, kNeighbor, kEdge, kOne, kAny };

struct VertexOperand {
  VertexRows rows;
  bool is_double;
  int64_t width;  // values a row
};

struct VertexKernel {
  VertexKernelFunction run = nullptr;
  bool is_double = false;  // of the results
  bool is_wide = false;    // int64 pointers, indices, ids and order
  std::vector<VertexOperand> operands;
  std::vector<VertexOperand> outputs;

  // Whether it reads or writes rows of edges.
  bool uses_edges() const;
};

// Opens a library by a descriptor. Returns null if that fails.
VertexKernelFunction open_vertex_kernel(int64_t descriptor);

// Keeps a kernel as long as the process lives; returns its number.
int64_t add_vertex_kernel(VertexKernel kernel);

// The kernel of a number, null if there is none.
const VertexKernel* find_vertex_kernel(int64_t number);

// Runs a kernel whose operands were checked.
//   sizes: vertices, neighbours, edges, rows of edge operands
// Returns 1 for an index that is out of range, 2 for pointers that descend.
int run_vertex_kernel(const VertexKernel& kernel,
                      const std::vector<int64_t>& sizes,
                      const std::vector<const void*>& graph,
                      const std::vector<const void*>& data,
                      const std::vector<void*>& out,
                      int threads);

}  // namespace gsample
