#include "vertex_map.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <type_traits>
#include <utility>

#include "kernel_registry.h"
#include "parallel.h"

namespace gsample {

namespace {

constexpr int64_t kChunk = 64;       // most vertices a thread takes at once
constexpr int64_t kTurns = 16;       // chunks for each thread, if there can be
constexpr int64_t kGrain = 1 << 12;  // vertices and edges that pay for a thread

// Whether numbers are in [0, high): neither x nor high - 1 - x has a sign.
template <typename index_t>
bool inside(const index_t* index, int64_t count, int64_t high) {
  using bits_t = std::make_unsigned_t<index_t>;
  constexpr int64_t kMost = std::numeric_limits<index_t>::max();
  const bits_t last = static_cast<bits_t>(std::min(high - 1, kMost));
  bits_t signs = 0;
  for (int64_t i = 0; i < count; ++i) {
    const bits_t x = static_cast<bits_t>(index[i]);
    signs |= x | (last - x);
  }
  return static_cast<index_t>(signs) >= 0;
}

// Whether `indptr` ascends within [0, edges].
template <typename index_t>
bool ascends(const index_t* indptr, int64_t vertices, int64_t edges) {
  bool good = indptr[0] >= 0 && indptr[vertices] <= edges;
  for (int64_t i = 0; i < vertices; ++i)
    good &= indptr[i] <= indptr[i + 1];
  return good;
}

// Checks what the kernel reads of a graph, as kernels trust it. Returns 1 for
// an index that is out of range, 2 for pointers that descend.
template <typename index_t>
int check_graph(const VertexKernel& kernel,
                const std::vector<int64_t>& sizes,
                const std::vector<const void*>& graph,
                int threads) {
  const index_t* part[4];
  for (int i = 0; i < 4; ++i)
    part[i] = static_cast<const index_t*>(graph[i]);
  const auto [indptr, indices, edge_id, order] = part;
  const auto all_inside = [&](const index_t* index, int64_t begin, int64_t end,
                              int64_t high) {
    std::atomic<bool> good{true};
    parallel_ranges(end - begin, kGrain, threads, [&](int64_t i, int64_t j) {
      if (!inside(index + begin + i, j - i, high))
        good = false;
    });
    return good.load();
  };
  if (!ascends(indptr, sizes[0], sizes[2]))
    return 2;
  const int64_t first = indptr[0], last = indptr[sizes[0]];
  if (order != nullptr && !all_inside(order, 0, sizes[0], sizes[0]))
    return 1;
  if (!all_inside(indices, first, last, sizes[1]))
    return 1;
  if (edge_id != nullptr && kernel.uses_edges() &&
      !all_inside(edge_id, first, last, sizes[3]))
    return 1;
  return 0;
}

}  // namespace

bool VertexKernel::uses_edges() const {
  const auto of_edge = [](const VertexOperand& operand) {
    return operand.rows == VertexRows::kEdge;
  };
  return std::any_of(operands.begin(), operands.end(), of_edge) ||
         std::any_of(outputs.begin(), outputs.end(), of_edge);
}

VertexKernelFunction open_vertex_kernel(int64_t descriptor) {
  return open_function<VertexKernelFunction>(descriptor, "gsample_vertex");
}

int64_t add_vertex_kernel(VertexKernel kernel) {
  return KernelRegistry<VertexKernel>::get().add(std::move(kernel));
}

const VertexKernel* find_vertex_kernel(int64_t number) {
  return KernelRegistry<VertexKernel>::get().find(number);
}

int run_vertex_kernel(const VertexKernel& kernel,
                      const std::vector<int64_t>& sizes,
                      const std::vector<const void*>& graph,
                      const std::vector<const void*>& data,
                      const std::vector<void*>& out,
                      int threads) {
  const int64_t vertices = sizes[0];
  const int64_t wanted = std::max<int64_t>(
      1, std::min<int64_t>(threads, (vertices + sizes[2]) / kGrain));
  const int64_t chunk =
      std::max<int64_t>(1, std::min(kChunk, vertices / (kTurns * wanted)));
  const int fault = kernel.is_wide
                        ? check_graph<int64_t>(kernel, sizes, graph, threads)
                        : check_graph<int32_t>(kernel, sizes, graph, threads);
  if (fault != 0)
    return fault;
  // Vertices come by descending degree: the last chunks are small, so that
  // threads end together.
  parallel_items((vertices + chunk - 1) / chunk, wanted, [&](int64_t i) {
    kernel.run(i * chunk, std::min(vertices, (i + 1) * chunk), graph.data(),
               data.data(), out.data());
  });
  return 0;
}

}  // namespace gsample
