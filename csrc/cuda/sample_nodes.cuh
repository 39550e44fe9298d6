// Selection of nodes for each of some batches, in one cooperative launch. A
// thread makes a draw, but for weighted ones without replacement, which depend
// on each other: there a block has a batch to itself, and its threads share the
// work of one draw.
#pragma once

#include "../core/weighted.h"
#include "columns.cuh"
#include "node_table.cuh"
#include "sample_nodes.h"
#include "select_group.cuh"

namespace gsample {

constexpr int kNodesThreads = 256;  // of a block

struct SampleNodesShared {
  BlockSums sums;
};

// The candidates of a batch, and where its choices go.
class NodeBatch {
 public:
  __device__ NodeBatch(const SampleNodesCuda& args, int64_t b)
      : a_(args),
        b_(b),
        first_(args.ptr == nullptr ? 0 : args.ptr[b]),
        n_(args.ptr == nullptr ? args.num_nodes : args.ptr[b + 1] - first_) {
    // A fault was noted: nothing is read.
    if (first_ < 0 || n_ < 0 || n_ > args.num_nodes - first_)
      first_ = n_ = 0;
  }

  __device__ int64_t first() const { return first_; }
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
  // Of slot 0.
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

// select_weighted_without_replacement() by a block. A weight that was taken is
// passed by a draw r in the weight that is left if r >= start - before, where
// `before` is what was taken of the weights in front of it: whichever they
// are, no order among them is needed. Returns how many were selected.
__device__ inline int64_t select_weighted_nodes(const SampleNodesCuda& args,
                                                const NodeBatch& batch,
                                                BlockSums& shared) {
  const CumulativeWeights w = batch.weights();
  const Stream draw = batch.draw();
  const EvenGuess guess(w);
  int64_t* const start = args.start + batch.offset();
  int64_t* const weight = args.weight + batch.offset();
  int64_t* const before = args.before + batch.offset();
  uint64_t left = w.total();
  const int64_t count = batch.count();
  for (int64_t slot = 0; slot < count; ++slot) {
    if (left == 0)
      return slot;
    const uint64_t r = bounded(draw(static_cast<uint32_t>(slot)), left);
    int64_t passed = 0;
    for (int64_t j = threadIdx.x; j < slot; j += blockDim.x)
      if (r >=
          static_cast<uint64_t>(start[j]) - static_cast<uint64_t>(before[j]))
        passed = add(passed, weight[j]);
    passed = sum_block(passed, shared);
    const uint64_t unit = r + static_cast<uint64_t>(passed);
    const uint64_t i = w.find(unit, guess(0, unit));
    const int64_t begin = static_cast<int64_t>(w.start(i));
    const int64_t taken = static_cast<int64_t>(w.through(i) - w.start(i));
    // Each thread keeps up to date what it alone reads.
    for (int64_t j = threadIdx.x; j < slot; j += blockDim.x)
      if (start[j] > begin)
        before[j] = add(before[j], taken);
    if (slot % blockDim.x == threadIdx.x) {
      start[slot] = begin;
      weight[slot] = taken;
      before[slot] = passed;
      args.slot[batch.offset() + slot] = static_cast<int64_t>(i);
    }
    left -= static_cast<uint64_t>(taken);
  }
  return count;
}

// Uniform draws without replacement: Floyd's algorithm (see FloydChain) over
// all slots of all batches at once. No batches share a node, so that one table
// finds the first slot of a batch that drew it.
class FloydSlots {
 public:
  __device__ explicit FloydSlots(const SampleNodesCuda& args) : a_(args) {}

  // By all threads of a cooperative launch.
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

  // What slots draw from: one of the first to this one.
  __device__ static uint64_t last(const NodeBatch& batch, int64_t slot) {
    return batch.size() - static_cast<uint64_t>(batch.count() - slot);
  }

  __device__ void draw(const NodeBatch& batch, int64_t slot) const {
    if (batch.takes_all())
      return;
    const uint64_t t = bounded(batch.draw()(static_cast<uint32_t>(slot)),
                               last(batch, slot) + 1);
    a_.drawn[batch.offset() + slot] = static_cast<int64_t>(t);
    a_.entry[batch.offset() + slot] = static_cast<int64_t>(
        insert_min(a_.table, static_cast<uint64_t>(batch.first()) + t,
                   static_cast<uint32_t>(slot)));
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
      if (a_.table.value[entry[at]] < at)  // drawn before: it gave way
        return static_cast<int64_t>(last(batch, slot));
      next = chain.next(static_cast<uint64_t>(drawn[at]), at);
    } while (next != at);
    return drawn[slot];
  }

  const SampleNodesCuda& a_;
};

// Weighted draws without replacement, by a block.
__device__ inline int64_t select_nodes(const SampleNodesCuda& args,
                                       const NodeBatch& batch,
                                       BlockSums& shared) {
  if (!batch.takes_all() || batch.has_zero())
    return select_weighted_nodes(args, batch, shared);
  for (int64_t slot = threadIdx.x; slot < batch.count(); slot += blockDim.x)
    args.slot[batch.offset() + slot] = slot;
  return batch.count();
}

inline __global__ void __launch_bounds__(kNodesThreads)
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
    for (int64_t b = blockIdx.x; b < args.batches; b += gridDim.x) {
      const int64_t size = select_nodes(args, NodeBatch(args, b), shared.sums);
      if (threadIdx.x == 0)
        args.size[b] = size;
    }
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

}  // namespace gsample
