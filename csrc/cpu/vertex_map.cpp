#include "vertex_map.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "kernel_registry.h"
#include "parallel.h"

namespace gsample {

namespace {

constexpr int64_t kChunk = 64;       // vertices that a thread takes at once
constexpr int64_t kGrain = 1 << 12;  // vertices and edges that pay for a thread

}  // namespace

VertexKernelFunction open_vertex_kernel(const char* path) {
  return open_function<VertexKernelFunction>(path, "gsample_vertex");
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
  const int64_t wanted =
      std::min<int64_t>(threads, (vertices + sizes[2]) / kGrain);
  std::atomic<int> worst{0};
  // Vertices come by descending degree: the last chunks are small, so that
  // threads end together.
  parallel_items(
      (vertices + kChunk - 1) / kChunk, std::max<int64_t>(1, wanted),
      [&](int64_t i) {
        keep_worst(
            worst,
            kernel.run(i * kChunk, std::min(vertices, (i + 1) * kChunk),
                       sizes.data(), graph.data(), data.data(), out.data()));
      });
  return worst.load();
}

}  // namespace gsample
