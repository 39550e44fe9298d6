// Inputs of walks, and reports of faults in them.
#pragma once

#include <stdint.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "../args.h"
#include "../core/walk.h"
#include "parallel.h"
#include "prefetch.h"

namespace gsample {

// `v` is unchecked: the sum must wrap around.
template <typename graph_t>
inline void prefetch_column(const graph_t& graph, int64_t v) {
  const uint64_t next = static_cast<uint64_t>(v) + 1;
  prefetch_item(graph.indptr, v);
  prefetch_item(graph.indptr, static_cast<int64_t>(next));  // the next line?
}

// Location of a fault in a graph.
struct WalkFault {
  bool at_edge;  // an entry of `indices` is out of range, else a column is
  int graph;
  int64_t where;
};

// Shared by the threads of a call.
class WalkWatch {
 public:
  bool stopped() const {
    return faulty_.load(std::memory_order_relaxed) || interrupt_.stopped();
  }
  void poll() { interrupt_.poll(); }
  void report(const WalkFault& fault) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!faulty_.exchange(true))
      fault_ = fault;
  }
  Status status(WalkFault* fault) const {
    if (interrupt_.stopped())
      return Status::kInterrupted;
    *fault = fault_;
    return faulty_.load() ? Status::kFault : Status::kDone;
  }

 private:
  Interrupt interrupt_;
  std::mutex mutex_;
  std::atomic<bool> faulty_{false};
  WalkFault fault_{};
};

// Interleaved walkers, whose cache misses overlap.
constexpr int kWalkLanes = 64;

// Runs body(first, count) on groups of kWalkLanes walkers.
template <typename body_t>
void for_walk_groups(int64_t num_walkers, int threads, const body_t& body) {
  const int64_t groups = (num_walkers + kWalkLanes - 1) / kWalkLanes;
  parallel_items(groups, threads, [&](int64_t group) {
    const int64_t first = group * kWalkLanes;
    body(first,
         static_cast<int>(std::min<int64_t>(kWalkLanes, num_walkers - first)));
  });
}

}  // namespace gsample
