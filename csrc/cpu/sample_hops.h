// Multi-hop neighbour sampling on the CPU, for any number of node types and
// relations. sample_hops.cpp describes the algorithm.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "../args.h"
#include "parallel.h"

namespace gsample {

// Frontier rules for the CPU only. Columns follow the edges and are not
// numbered: a node is a column each time it is sampled.
constexpr Frontier kEveryEdge{4};  // the row of each edge
constexpr Frontier kWalkStep{
    5};  // the row of each column's edge, or without an edge the column itself

constexpr bool keeps_order(Frontier rule) {
  return rule == kEveryEdge || rule == kWalkStep;
}

// The first fault that a thread found.
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

// Output memory for the edges of a relation at a hop.
template <typename index_t>
struct HopOutput {
  int64_t* edge;
  index_t* row;
};

// Output memory for a relation's edges once nodes are numbered. `edge` may be
// null.
struct EdgeOutput {
  int64_t* row;
  int64_t* col;
  int64_t* edge;
};

// Output memory for a type's nodes. `batch` may be null.
struct NodeOutput {
  int64_t* node;
  int64_t* batch;
};

// Samples hop after hop, in a workspace that its thread owns: one sampler per
// thread at a time.
template <typename indptr_t, typename index_t>
class HopSampler {
 public:
  virtual ~HopSampler() = default;

  // Numbers nodes once: runs all hops.
  virtual Status run() = 0;
  // [num_hops + 1] and [num_hops] counts.
  virtual const std::vector<int64_t>& hop_nodes(int type) const = 0;
  virtual const std::vector<int64_t>& hop_edges(int relation) const = 0;
  // Writes outputs, whose sizes are the sums of the counts, one per type
  // (relation).
  virtual void write(const NodeOutput* nodes, const EdgeOutput* edges) = 0;

  // Frontiers by a rule: begin(), then count(), select() and, for a further
  // hop, columns(). Each step returns the sizes of the next step's outputs.
  virtual Status begin() = 0;
  // Writes indptr [num_columns + 1] of each relation.
  virtual Status count(int hop, indptr_t* const* indptr) = 0;
  // Writes the edges of each relation, with draws of its stream. In a batch
  // draws distinguish trees and repeated seeds. `next` moves the columns on to
  // the next hop.
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

// Without a rule, hops number nodes once: seeds with their duplicates, then
// rows that no earlier hop has, which are the next columns. Edges keep these
// numbers until write().
// With a rule, rows stay nodes, outputs belong to the caller, and the rule
// makes the next columns of the rows; they ascend if `sorted`.
// Holds a reference to `args`.
template <typename indptr_t, typename index_t>
std::unique_ptr<HopSampler<indptr_t, index_t>> make_hop_sampler(
    const NeighborSampleArgs<indptr_t, index_t>& args,
    std::optional<Frontier> rule = std::nullopt,
    bool sorted = false);

}  // namespace gsample
