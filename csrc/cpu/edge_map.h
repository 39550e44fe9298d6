// Kernels that were generated for a program, and how they are run.
#pragma once

#include <stdint.h>

#include <vector>

namespace gsample {

// What a generated kernel is: see torch_gsample/codegen/cpp.py. It returns 0,
// 1 for an index that is out of range, or 2 for pointers that do not ascend.
using EdgeKernelFunction = int (*)(int64_t begin,
                                   int64_t end,
                                   int64_t edges,
                                   const void* const* data,
                                   const int64_t* sizes,
                                   void* out);

// How a kernel reads a tensor: torch_gsample/codegen/program.py, Role.
enum class EdgeRole { kEdge, kGather, kColumn, kScalar, kIndex, kPointers };

// The dtypes of tensors, numbered as in torch_gsample/codegen/kernel.py.
enum class EdgeType { kFloat, kDouble, kInt, kLong, kBool };

struct EdgeOperand {
  EdgeRole role;
  EdgeType type;
  int64_t width;  // values a row
};

struct EdgeKernel {
  EdgeKernelFunction run = nullptr;
  EdgeType type = EdgeType::kFloat;  // of the result
  int64_t width = 1;                 // values a row of the result
  int64_t pointers = -1;             // the operand, if it runs over columns
  int64_t by = -1;                   // the index, if it reduces rows
  bool reduces = false;
  std::vector<EdgeOperand> operands;
};

// Opens a library by a descriptor. Returns null if that fails.
EdgeKernelFunction open_edge_kernel(int64_t descriptor);

// Keeps a kernel as long as the process lives; returns its number.
int64_t add_edge_kernel(EdgeKernel kernel);

// The kernel of a number, null if there is none.
const EdgeKernel* find_edge_kernel(int64_t number);

// Runs a kernel whose operands were checked. `sizes` has the rows of each
// operand and, behind them, those of the result. Returns what it returns.
int run_edge_kernel(const EdgeKernel& kernel,
                    int64_t edges,
                    const std::vector<const void*>& data,
                    const std::vector<int64_t>& sizes,
                    void* out,
                    int threads);

}  // namespace gsample
