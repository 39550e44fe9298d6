#include "vertex_map.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <utility>

#include "parallel.h"

namespace gsample {

namespace {

constexpr int64_t kChunk = 64;       // vertices that a thread takes at once
constexpr int64_t kGrain = 1 << 12;  // vertices and edges that pay for a thread

struct Kernels {
  std::mutex mutex;
  std::deque<VertexKernel> all;  // elements stay where they are
};

Kernels& kernels() {
  static Kernels* kernels = new Kernels();  // for threads that run on at exit
  return *kernels;
}

}  // namespace

VertexKernelFunction open_vertex_kernel(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return nullptr;
  return reinterpret_cast<VertexKernelFunction>(
      dlsym(library, "gsample_vertex"));
}

int64_t add_vertex_kernel(VertexKernel kernel) {
  const std::lock_guard<std::mutex> lock(kernels().mutex);
  kernels().all.push_back(std::move(kernel));
  return static_cast<int64_t>(kernels().all.size()) - 1;
}

const VertexKernel* find_vertex_kernel(int64_t number) {
  const std::lock_guard<std::mutex> lock(kernels().mutex);
  const int64_t size = static_cast<int64_t>(kernels().all.size());
  return number >= 0 && number < size ? &kernels().all[number] : nullptr;
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
        const int status =
            kernel.run(i * kChunk, std::min(vertices, (i + 1) * kChunk),
                       sizes.data(), graph.data(), data.data(), out.data());
        int known = worst.load();
        while (status > known && !worst.compare_exchange_weak(known, status)) {
        }
      });
  return worst.load();
}

}  // namespace gsample
