// Kernels that torch_gsample/codegen generated: loaded, found by number, run.
#pragma once

#include <stdint.h>

#include <memory>
#include <vector>

namespace gsample {

// A generated kernel: torch_gsample/codegen/cpp.py. It computes the vertices,
// columns or edges [begin, end). Returns 0, 1 for an index that is out of
// range, or 2 for pointers that do not ascend.
//   sizes: the edges, the rows of each operand, the rows of the result
//   graph: indptr, indices, ids of edges or null, order or null; all checked
using KernelFunction = int (*)(int64_t begin,
                               int64_t end,
                               const int64_t* sizes,
                               const void* const* graph,
                               const void* const* data,
                               void* const* out);

// What a tensor has a row for: torch_gsample/ops/kernels.py, ROWS. Rows of
// kAny are found by an index; the generator answers for it where a kernel has a
// graph, and the kernel checks it elsewhere.
enum class Rows { kCenter, kNeighbor, kEdge, kOne, kAny, kPointers };
constexpr int kRows = 6;

// The dtypes of tensors: torch_gsample/ops/kernels.py, DTYPES.
enum class DataType { kFloat, kDouble, kInt, kLong, kBool, kBFloat16, kHalf };

struct KernelTensor {
  Rows rows;
  DataType type;
  int64_t width;  // values a row
};

// The index type of the graph of a kernel, which an edge map does not have.
enum class GraphIndex { kNone, kInt, kLong };

struct Kernel {
  std::shared_ptr<void> library;  // closed with the last user
  KernelFunction run = nullptr;
  GraphIndex graph = GraphIndex::kNone;
  int64_t by = -1;        // the index, if an edge map reduces rows
  int64_t pointers = -1;  // the operand, if an edge map runs over columns
  std::vector<KernelTensor> operands, outputs;

  // Whether it reads or writes rows of edges.
  bool uses_edges() const;
};

// Opens the library of a descriptor. Returns false if that fails.
bool open_kernel(int64_t descriptor, Kernel& kernel);

// Adds a kernel to those of this process; returns its number.
int64_t add_kernel(Kernel kernel);

// The kernel of a number, null if there is none.
std::shared_ptr<const Kernel> find_kernel(int64_t number);

// Removes a kernel; its library is closed after the last call.
void remove_kernel(int64_t number);

// Runs a kernel over a graph.
//   sizes: vertices, neighbours, edges, rows of edge operands
// Returns 1 for an index that is out of range, 2 for pointers that descend.
int run_over_graph(const Kernel& kernel,
                   const std::vector<int64_t>& sizes,
                   const std::vector<const void*>& graph,
                   const std::vector<const void*>& data,
                   const std::vector<void*>& out,
                   int threads);

// Runs an edge map; `sizes` are those of KernelFunction. Returns what it does.
int run_over_edges(const Kernel& kernel,
                   const std::vector<int64_t>& sizes,
                   const std::vector<const void*>& data,
                   const std::vector<void*>& out,
                   int threads);

}  // namespace gsample
