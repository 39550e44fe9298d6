#include "edge_map.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "kernel_registry.h"
#include "parallel.h"

namespace gsample {

namespace {

constexpr int64_t kGrain = 1 << 14;  // edges that pay for a thread

// The first column that begins at an edge or later.
template <typename index_t>
int64_t column_of(const index_t* indptr, int64_t cols, int64_t edge) {
  return std::lower_bound(indptr, indptr + cols, edge) - indptr;
}

}  // namespace

EdgeKernelFunction open_edge_kernel(int64_t descriptor) {
  return open_function<EdgeKernelFunction>(descriptor, "gsample_kernel");
}

int64_t add_edge_kernel(EdgeKernel kernel) {
  return KernelRegistry<EdgeKernel>::get().add(std::move(kernel));
}

const EdgeKernel* find_edge_kernel(int64_t number) {
  return KernelRegistry<EdgeKernel>::get().find(number);
}

int run_edge_kernel(const EdgeKernel& kernel,
                    int64_t edges,
                    const std::vector<const void*>& data,
                    const std::vector<int64_t>& sizes,
                    void* out,
                    int threads) {
  // Rows are reduced by one thread: if two shared them, each would read all
  // edges, which takes longer (measured).
  const int64_t most = kernel.by >= 0 ? 1 : threads;
  const int64_t wanted = std::min<int64_t>(most, edges / kGrain);
  const int ranges = static_cast<int>(std::max<int64_t>(1, wanted));
  std::atomic<int> worst{0};
  run_tasks(ranges, [&](int i) {
    // Range i has its share of edges: of columns that begin there, or of the
    // edges themselves.
    const auto first =
        [&](int64_t j) {  // edges * j / ranges, which may not fit
          return edges / ranges * j + edges % ranges * j / ranges;
        };
    int64_t begin = first(i), end = first(i + 1);
    const bool columns = kernel.pointers >= 0;
    const int64_t cols = columns ? sizes[kernel.pointers] - 1 : 0;
    if (columns) {
      const auto place = [&](int64_t edge) {
        const void* indptr = data[kernel.pointers];
        return kernel.operands[kernel.pointers].type == EdgeType::kInt
                   ? column_of(static_cast<const int32_t*>(indptr), cols, edge)
                   : column_of(static_cast<const int64_t*>(indptr), cols, edge);
      };
      begin = i == 0 ? 0 : place(begin);
      end = i == ranges - 1 ? cols : place(end);
    }
    keep_worst(worst,
               kernel.run(begin, end, edges, data.data(), sizes.data(), out));
  });
  return worst.load();
}

}  // namespace gsample
