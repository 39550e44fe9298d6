#include "list_cache_cuda.h"

#include <map>
#include <mutex>

namespace gsample {

namespace {

struct Entry {
  CachedLists lists;
  int64_t num_cols;
  int64_t num_edges;
};

std::mutex mutex;

std::map<const void*, Entry>& entries() {
  static auto* map = new std::map<const void*, Entry>;  // outlives all users
  return *map;
}

}  // namespace

CachedLists find_cached_lists(const void* indices,
                              int64_t num_cols,
                              int64_t num_edges) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = entries().find(indices);
  if (found == entries().end() || found->second.num_cols != num_cols ||
      found->second.num_edges != num_edges)
    return {};
  return found->second.lists;
}

}  // namespace gsample

// For torch_gsample/list_cache.py, which owns the memory until the cache is
// cleared.
extern "C" __attribute__((visibility("default"))) void gsample_cache_lists(
    const void* graph,
    int64_t num_cols,
    int64_t num_edges,
    const void* indices,
    const int64_t* start,
    int64_t* reads) {
  const std::lock_guard<std::mutex> lock(gsample::mutex);
  gsample::entries()[graph] = {{indices, start, reads}, num_cols, num_edges};
}

extern "C" __attribute__((visibility("default"))) void gsample_forget_lists(
    const void* graph) {
  const std::lock_guard<std::mutex> lock(gsample::mutex);
  gsample::entries().erase(graph);
}
