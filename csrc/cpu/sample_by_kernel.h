// Samples one edge of each column, with weights that a generated kernel
// computes.
#pragma once

#include <vector>

#include "kernel.h"
#include "slice_matrix.h"

namespace gsample {

// The role of a kernel's operand: torch_gsample/ops/sample_by_kernel.py, ROLES.
// The kernel runs over the candidates of several columns at a time.
enum class Role { kWhole, kColumn, kEdge, kFound, kPointers };
constexpr int kRoles = 5;

struct RoleOperand {
  Role role;
  const char* data;  // of kWhole, kColumn and kEdge
  int64_t rows;      // of `data`
  int64_t bytes;     // per row
};

template <typename indptr_t, typename index_t>
struct SampleByKernelArgs {
  Matrix<indptr_t, index_t> matrix;
  bool checks_rows;       // searched rows must be in [0, num_rows)
  const int64_t* cols;    // [n]
  const int64_t* id;      // [n] ids that key the draws, or null: the position
  const int64_t* before;  // [n] columns that are searched, or null
  int64_t n;
  const Kernel* kernel;  // an edge map with one float or double per edge
  std::vector<RoleOperand> operands;
  uint64_t stream;
  int threads;
};

// The fault: a column, a searched row or an index of the kernel is out of
// range, or pointers descend; or a weight is negative or not finite.
enum class KernelFault { kNone, kRange, kWeight };

// Writes the position of an edge of each column, or -1 if no weight is
// positive, edge [n]. kFault: see `fault`.
template <typename indptr_t, typename index_t>
Status sample_by_kernel(const SampleByKernelArgs<indptr_t, index_t>& args,
                        int64_t* edge,
                        KernelFault* fault);

}  // namespace gsample
