#include "kernel.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "parallel.h"
#include "platform.h"

namespace gsample {

namespace {

constexpr int64_t kChunk = 64;       // most vertices in a chunk
constexpr int64_t kTurns = 16;       // chunks per thread, at most
constexpr int64_t kGrain = 1 << 12;  // vertices and edges that pay for a thread
constexpr int64_t kEdgeGrain = 1 << 14;  // edges of an edge map that pay for a
                                         // thread

// The loaded kernels of this process. Numbers are never reused.
struct Registry {
  std::mutex mutex;
  std::unordered_map<int64_t, std::shared_ptr<const Kernel>> kernels;
  int64_t next = 0;
};

Registry& registry() {
  static auto* all = new Registry();  // for threads that run on at exit
  return *all;
}

// Whether all numbers are in [0, high): neither x nor high - 1 - x is negative.
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

// Checks the graph, which kernels trust. Returns 1 for an index out of range, 2
// for descending pointers.
template <typename index_t>
int check_graph(const Kernel& kernel,
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
  if (order != nullptr && !all_inside(order, 0, sizes[4], sizes[0]))
    return 1;
  if (!all_inside(indices, first, last, sizes[1]))
    return 1;
  if (edge_id != nullptr && kernel.uses_edges() &&
      !all_inside(edge_id, first, last, sizes[3]))
    return 1;
  return 0;
}

// Keeps the largest status that kernels return in several threads.
void keep_worst(std::atomic<int>& worst, int status) {
  int known = worst.load();
  while (status > known && !worst.compare_exchange_weak(known, status)) {
  }
}

// The first column that starts at the edge or later.
template <typename index_t>
int64_t column_of(const void* indptr, int64_t cols, int64_t edge) {
  const index_t* const begin = static_cast<const index_t*>(indptr);
  return std::lower_bound(begin, begin + cols, edge) - begin;
}

}  // namespace

bool Kernel::uses_edges() const {
  const auto of_edge = [](const KernelTensor& tensor) {
    return tensor.rows == Rows::kEdge;
  };
  return std::any_of(operands.begin(), operands.end(), of_edge) ||
         std::any_of(outputs.begin(), outputs.end(), of_edge);
}

bool open_kernel(int64_t descriptor, Kernel& kernel) {
  void* const library = open_library(descriptor);
  if (library == nullptr)
    return false;
  kernel.library.reset(library, close_library);
  kernel.run =
      reinterpret_cast<KernelFunction>(find_symbol(library, "gsample_kernel"));
  return kernel.run != nullptr;
}

int64_t add_kernel(Kernel kernel) {
  auto added = std::make_shared<const Kernel>(std::move(kernel));
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.kernels.emplace(all.next, std::move(added));
  return all.next++;
}

std::shared_ptr<const Kernel> find_kernel(int64_t number) {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.kernels.find(number);
  return found == all.kernels.end() ? nullptr : found->second;
}

void remove_kernel(int64_t number) {
  std::shared_ptr<const Kernel> last;  // closed outside the lock
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.kernels.find(number);
  if (found == all.kernels.end())
    return;
  last = std::move(found->second);
  all.kernels.erase(found);
}

int run_over_graph(const Kernel& kernel,
                   const std::vector<int64_t>& sizes,
                   const std::vector<const void*>& graph,
                   const std::vector<const void*>& data,
                   const std::vector<void*>& out,
                   int threads) {
  const int64_t vertices = sizes[4];
  const int64_t wanted = std::max<int64_t>(
      1, std::min<int64_t>(threads, (vertices + sizes[2]) / kGrain));
  const int64_t chunk =
      std::max<int64_t>(1, std::min(kChunk, vertices / (kTurns * wanted)));
  const int fault = kernel.graph == GraphIndex::kLong
                        ? check_graph<int64_t>(kernel, sizes, graph, threads)
                        : check_graph<int32_t>(kernel, sizes, graph, threads);
  if (fault != 0)
    return fault;
  // Vertices are sorted by descending degree: the last chunks are small, so
  // that threads finish together.
  parallel_items((vertices + chunk - 1) / chunk, wanted, [&](int64_t i) {
    kernel.run(i * chunk, std::min(vertices, (i + 1) * chunk), nullptr,
               graph.data(), data.data(), out.data());
  });
  return 0;
}

int run_over_edges(const Kernel& kernel,
                   const std::vector<int64_t>& sizes,
                   const std::vector<const void*>& data,
                   const std::vector<void*>& out,
                   int threads) {
  const int64_t edges = sizes[0];
  // One thread reduces rows: two that share them would each read all edges,
  // which takes longer (measured).
  const int64_t most = kernel.by >= 0 ? 1 : threads;
  const int64_t wanted = std::min<int64_t>(most, edges / kEdgeGrain);
  const int ranges = static_cast<int>(std::max<int64_t>(1, wanted));
  std::atomic<int> worst{0};
  run_tasks(ranges, [&](int i) {
    // Range i has its share of edges: the columns that start in it, or the
    // edges themselves.
    const auto first =
        [&](int64_t j) {  // edges * j / ranges; the product may overflow
          return edges / ranges * j + edges % ranges * j / ranges;
        };
    int64_t begin = first(i), end = first(i + 1);
    if (kernel.pointers >= 0) {
      const void* const indptr = data[kernel.pointers];
      const int64_t cols = sizes[kernel.pointers + 1] - 1;
      const auto place = kernel.operands[kernel.pointers].type == DataType::kInt
                             ? column_of<int32_t>
                             : column_of<int64_t>;
      begin = i == 0 ? 0 : place(indptr, cols, begin);
      end = i == ranges - 1 ? cols : place(indptr, cols, end);
    }
    keep_worst(worst, kernel.run(begin, end, sizes.data(), nullptr, data.data(),
                                 out.data()));
  });
  return worst.load();
}

}  // namespace gsample
