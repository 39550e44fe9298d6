// Multi-hop neighbour sampling on the CPU, for any number of node types and
// relations. See neighbor_sample.cpp for how it works.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "../args.h"
#include "parallel.h"
#include "write_sample.h"

namespace gsample {

// What went wrong inside a kernel: the first fault that a thread met.
struct Fault {
  enum Kind { kNone, kSeed, kIndptr, kIndices, kOverflow };
  std::atomic<int> kind{kNone};
  int64_t type_or_relation = 0;
  int64_t node = 0;
  int64_t value = 0;

  void set(Kind new_kind, int64_t where, int64_t at, int64_t what) {
    int expected = kNone;
    if (!kind.compare_exchange_strong(expected, new_kind))
      return;
    type_or_relation = where;
    node = at;
    value = what;
  }
};

// A sample that stays in the calling thread's workspace until the next call.
class NeighborSample {
 public:
  virtual ~NeighborSample() = default;

  virtual Status run() = 0;
  virtual const Fault& fault() const = 0;

  // [num_hops + 1] and [num_hops] counts.
  virtual const std::vector<int64_t>& hop_nodes(int type) const = 0;
  virtual const std::vector<int64_t>& hop_edges(int relation) const = 0;
  // Outputs of the sizes that the counts sum to, one for each type (relation).
  virtual void write(const NodeOutput* nodes, const EdgeOutput* edges) = 0;
};

template <typename indptr_t, typename index_t>
std::unique_ptr<NeighborSample> make_neighbor_sample(
    const NeighborSampleArgs<indptr_t, index_t>& args);

}  // namespace gsample
