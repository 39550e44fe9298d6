// Selection of nodes for several batches, in one cooperative launch. One thread
// per draw, except weighted draws without replacement, which depend on each
// other: there a warp handles a batch, and its lanes share the search of one
// draw.
#include "sample_nodes.h"

#include "../core/weighted.h"
#include "columns.cuh"
#include "launch.cuh"
#include "node_table.cuh"
#include "select_group.cuh"
#include "taken_tree.cuh"

namespace gsample {

constexpr int kNodesThreads = 256;  // per block

struct SampleNodesShared {
  BlockSums sums;
};

// The candidates of a batch, and the output for its selection.
class NodeBatch {
 public:
  __device__ NodeBatch(const SampleNodesCuda& args, int64_t b)
      : a_(args),
        b_(b),
        first_(args.ptr == nullptr ? 0 : args.ptr[b]),
        n_(args.ptr == nullptr ? args.num_nodes : args.ptr[b + 1] - first_) {
    // A fault was reported: nothing is read.
    if (first_ < 0 || n_ < 0 || n_ > args.num_nodes - first_)
      first_ = n_ = 0;
  }

  __device__ int64_t first() const { return first_; }
  // The first key of its nodes in a table of all batches.
  __device__ uint64_t first_key() const {
    return static_cast<uint64_t>(a_.ptr == nullptr ? b_ * a_.num_nodes
                                                   : first_);
  }
  __device__ uint64_t size() const { return static_cast<uint64_t>(n_); }
  __device__ int64_t count() const {
    return a_.k < n_ || (a_.replace && n_ > 0) ? a_.k : n_;
  }
  __device__ bool takes_all() const { return count() == n_; }
  __device__ bool weighted() const { return a_.cum_weight != nullptr; }
  __device__ bool has_zero() const {
    return has_zero_weight(a_.cum_weight + a_.num_nodes,
                           a_.ptr == nullptr ? 0 : b_);
  }
  __device__ CumulativeWeights weights() const {
    return {a_.cum_weight + first_, 0, size()};
  }
  __device__ Stream draw() const { return {a_.streams[b_], 0, 0}; }
  // The position of slot 0.
  __device__ int64_t offset() const { return b_ * a_.room; }

 private:
  const SampleNodesCuda& a_;
  const int64_t b_;
  int64_t first_;
  int64_t n_;
};

__device__ inline int64_t draw_with_replacement(const NodeBatch& batch,
                                                int64_t slot) {
  const uint64_t r = batch.draw()(static_cast<uint32_t>(slot));
  if (!batch.weighted())
    return static_cast<int64_t>(bounded(r, batch.size()));
  const CumulativeWeights w = batch.weights();
  if (w.total() == 0)
    return 0;
  const uint64_t unit = bounded(r, w.total());
  return static_cast<int64_t>(w.find(unit, EvenGuess(w)(0, unit)));
}

// Uniform draws without replacement: Floyd's algorithm (see FloydChain) over
// all slots of all batches at once. One table finds the first slot of a batch
// that drew a node: either batches have disjoint nodes, or (batch, node) is the
// key.
class FloydSlots {
 public:
  __device__ explicit FloydSlots(const SampleNodesCuda& args) : a_(args) {}

  // Called by all threads of a cooperative launch.
  __device__ void select() const {
    clear_table(a_.table);
    grid_barrier();
    for_each_slot(
        [&](const NodeBatch& batch, int64_t slot) { draw(batch, slot); });
    grid_barrier();
    for_each_slot([&](const NodeBatch& batch, int64_t slot) {
      a_.slot[batch.offset() + slot] = choice(batch, slot);
    });
  }

 private:
  template <typename visit_t>
  __device__ void for_each_slot(const visit_t& visit) const {
    const int64_t room = a_.batches * a_.room, step = grid_threads();
    for (int64_t p = global_rank(); p < room; p += step) {
      const NodeBatch batch(a_, p / a_.room);
      if (p % a_.room < batch.count())
        visit(batch, p % a_.room);
    }
  }

  // The last candidate of a slot; it draws among the first to this one.
  __device__ static uint64_t last(const NodeBatch& batch, int64_t slot) {
    return batch.size() - static_cast<uint64_t>(batch.count() - slot);
  }

  __device__ void draw(const NodeBatch& batch, int64_t slot) const {
    if (batch.takes_all())
      return;
    const uint64_t t = bounded(batch.draw()(static_cast<uint32_t>(slot)),
                               last(batch, slot) + 1);
    a_.drawn[batch.offset() + slot] = static_cast<int64_t>(t);
    a_.entry[batch.offset() + slot] = static_cast<int64_t>(insert_min(
        a_.table, batch.first_key() + t, static_cast<uint32_t>(slot)));
  }

  __device__ int64_t choice(const NodeBatch& batch, int64_t slot) const {
    if (batch.takes_all())
      return slot;
    const FloydChain chain{last(batch, 0)};
    const int64_t* drawn = a_.drawn + batch.offset();
    const int64_t* entry = a_.entry + batch.offset();
    uint32_t next = static_cast<uint32_t>(slot), at;
    do {
      at = next;
      if (a_.table.entry[entry[at]].value < at)  // drawn before: it gave way
        return static_cast<int64_t>(last(batch, slot));
      next = chain.next(static_cast<uint64_t>(drawn[at]), at);
    } while (next != at);
    return drawn[slot];
  }

  const SampleNodesCuda& a_;
};

// Weighted draws without replacement of a batch, by a warp; returns their
// number.
__device__ inline int64_t select_nodes(const SampleNodesCuda& args,
                                       int64_t b,
                                       uint64_t* tree,
                                       bool clean) {
  const NodeBatch batch(args, b);
  int64_t* const chosen = args.slot + batch.offset();
  if (!batch.takes_all() || batch.has_zero())
    return select_weighted_by_tree(
        batch.draw(), batch.weights(), batch.count(), tree, clean,
        [&](int64_t slot, uint64_t position) {
          chosen[slot] = static_cast<int64_t>(position);
        });
  for (int64_t slot = threadIdx.x % 32; slot < batch.count(); slot += 32)
    chosen[slot] = slot;
  return batch.count();
}

// Selects in all batches; called by all threads of a cooperative launch.
__device__ inline void select_weighted_nodes(const SampleNodesCuda& args) {
  for (int64_t i = global_rank(); i < args.tree_size; i += grid_threads())
    args.tree[i] = 0;
  grid_barrier();
  const int64_t warps = grid_threads() / 32, warp = global_rank() / 32;
  const int64_t step = warps < args.trees ? warps : args.trees;
  if (warp >= step)
    return;
  for (int64_t b = warp; b < args.batches; b += step) {
    int64_t first = warp * args.tree_words;
    if (args.ptr != nullptr)
      first = NodeBatch(args, b).first() / 15 + 16 * b;
    const bool clean = args.ptr != nullptr || b == warp;
    const int64_t size = select_nodes(args, b, args.tree + first, clean);
    if (threadIdx.x % 32 == 0)
      args.size[b] = size;
  }
}

// Three blocks a processor: in fewer registers than that leaves, some would be
// spilled.
__global__ void __launch_bounds__(kNodesThreads, 3)
    sample_nodes_kernel(SampleNodesCuda args) {
  GSAMPLE_SHARED(SampleNodesShared, shared);
  const int64_t step = grid_threads();
  if (args.ptr != nullptr)
    check_ptr(args.ptr, args.batches, args.num_nodes, args.report);
  if (args.replace) {
    for (int64_t p = global_rank(); p < args.batches * args.room; p += step) {
      const NodeBatch batch(args, p / args.room);
      if (batch.size() > 0)
        args.slot[p] = draw_with_replacement(batch, p % args.room);
    }
    for (int64_t b = global_rank(); b < args.batches; b += step) {
      const NodeBatch batch(args, b);
      const bool none = batch.weighted() && batch.weights().total() == 0;
      args.size[b] = none ? 0 : batch.count();
    }
  } else if (args.cum_weight == nullptr) {
    FloydSlots(args).select();
    for (int64_t b = global_rank(); b < args.batches; b += step)
      args.size[b] = NodeBatch(args, b).count();
  } else {
    select_weighted_nodes(args);
  }
  grid_barrier();
  write_offsets([&](int64_t b) { return args.size[b]; }, args.batches,
                args.out_ptr, args.totals, shared.sums, args.report);
  grid_barrier();
  for (int64_t p = global_rank(); p < args.out_ptr[args.batches]; p += step) {
    const int64_t b = column_of(args.out_ptr, args.batches, p);
    args.node[p] = NodeBatch(args, b).first() +
                   args.slot[b * args.room + (p - args.out_ptr[b])];
  }
}

LaunchShape sample_nodes_shape(const SampleNodesCuda& args) {
  // One warp per batch, if batches take turns with trees.
  const bool in_turn = !args.replace && args.cum_weight != nullptr;
  const int64_t work = in_turn ? args.tree_size + args.batches * 4 * 32
                               : args.batches * args.room;
  return cooperative_shape(sample_nodes_kernel, kNodesThreads, work);
}

void sample_nodes(const SampleNodesCuda& args,
                  LaunchShape shape,
                  StreamHandle stream) {
  launch_cooperative("sample_nodes", sample_nodes_kernel, shape, stream, args);
}

}  // namespace gsample
