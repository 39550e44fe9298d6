// Multi-hop neighbour sampling on the CPU, for any number of node types and
// relations. See sample_hops.cpp for how it works.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "../args.h"
#include "parallel.h"

namespace gsample {

// Rules of frontiers that a CPU alone has. Columns come as edges do, and are
// not numbered: a node is as often a column as it was sampled.
constexpr Frontier kEveryEdge{4};  // the row of each edge
constexpr Frontier kWalkStep{
    5};  // that of each column, or where none is, itself

constexpr bool keeps_order(Frontier rule) {
  return rule == kEveryEdge || rule == kWalkStep;
}

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

// Where the edges of a relation at a hop go.
template <typename index_t>
struct HopOutput {
  int64_t* edge;
  index_t* row;
};

// Where a relation's edges go once nodes are numbered. `edge` may be null.
struct EdgeOutput {
  int64_t* row;
  int64_t* col;
  int64_t* edge;
};

// Where a type's nodes go. `batch` may be null.
struct NodeOutput {
  int64_t* node;
  int64_t* batch;
};

// Samples hop after hop, in memory that its thread keeps: a thread has one
// sampler at a time.
template <typename indptr_t, typename index_t>
class HopSampler {
 public:
  virtual ~HopSampler() = default;

  // Nodes numbered once: all hops, then what they sampled.
  virtual Status run() = 0;
  // [num_hops + 1] and [num_hops] counts.
  virtual const std::vector<int64_t>& hop_nodes(int type) const = 0;
  virtual const std::vector<int64_t>& hop_edges(int relation) const = 0;
  // Outputs of the sizes that the counts sum to, one for each type (relation).
  virtual void write(const NodeOutput* nodes, const EdgeOutput* edges) = 0;

  // Columns by a rule: begin(), then count(), select() and, for a further hop,
  // columns(). Outputs have the sizes that the step before gave.
  virtual Status begin() = 0;
  // Writes indptr [num_columns + 1] of each relation.
  virtual Status count(int hop, indptr_t* const* indptr) = 0;
  // Writes the edges of each relation, with draws of its stream. In a batch
  // they tell trees and repeated seeds apart. With `next`, the columns become
  // those of the next hop.
  virtual Status select(const std::vector<uint64_t>& streams,
                        bool in_batch,
                        const HopOutput<index_t>* out,
                        bool next) = 0;
  virtual int64_t num_columns(int type) const = 0;
  // `tree` may be null.
  virtual void columns(int type, int64_t* node, int64_t* tree) const = 0;

  const Fault& fault() const { return fault_; }

 protected:
  Fault fault_;
};

// How hops number nodes. Without a rule once, over all hops: seeds with their
// duplicates, then rows that are in no hop before, which are the next columns.
// Edges are kept with these numbers until write().
// With a rule rows stay nodes, outputs are the caller's, and each hop has the
// columns that the rule takes of the rows; they ascend if `sorted`.
// Keeps a reference to `args`.
template <typename indptr_t, typename index_t>
std::unique_ptr<HopSampler<indptr_t, index_t>> make_hop_sampler(
    const NeighborSampleArgs<indptr_t, index_t>& args,
    std::optional<Frontier> rule = std::nullopt,
    bool sorted = false);

}  // namespace gsample
