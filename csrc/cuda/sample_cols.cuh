// Selection of edges of columns. First how many each column gives, in one
// cooperative launch; then some lanes select in a column, or a block if they
// are many. Without replacement a weighted draw depends on those before it: a
// thread makes all of a column, or a warp with a tree if they are many.
#pragma once

#include "columns.cuh"
#include "sample_cols.h"
#include "select_group.cuh"
#include "taken_tree.cuh"

namespace gsample {

constexpr int kSelectThreads = 256;  // of a block
constexpr int64_t kManySlots = 512;  // of a column: a block takes them

struct SelectShared {
  BlockSums sums;
};

template <typename indptr_t>
class ColumnsSampler {
 public:
  using Args = SampleColsCuda<indptr_t>;

  __device__ explicit ColumnsSampler(const Args& args)
      : a_(args),
        num_edges_(args.cum_weight != nullptr ? args.num_edges
                                              : args.indptr[args.all_cols]) {}

  // Weights are those of a certain number of edges.
  __device__ void check_edges() const {
    if (global_rank() == 0 &&
        (num_edges_ < 0 || a_.indptr[a_.all_cols] != num_edges_))
      note_fault(a_.report, Report::kIndptr, a_.all_cols, num_edges_);
  }

  __device__ int64_t count(int64_t i) const {
    const int64_t v = column(i);
    const ColumnBounds c =
        read_bounds(a_.indptr, a_.all_cols, num_edges_, v, i, a_.report);
    if (c.length == 0)
      return 0;
    const int64_t found = candidates(v, c, a_.k < 0 ? c.length : a_.k);
    if (needs_trees(a_) && found == a_.k)
      note_length(c.length);
    return a_.replace && a_.k >= 0 && found > 0 ? a_.k : found;
  }

  // By the threads of a group: a warp, if there is a tree.
  template <typename group_t>
  __device__ void select(int64_t i,
                         const group_t& group,
                         uint64_t* tree = nullptr) const {
    const int64_t first = a_.out_indptr[i];
    const int64_t count = a_.out_indptr[i + 1] - first;
    if (count == 0)
      return;
    const int64_t v = column(i), start = a_.indptr[v];
    const ColumnBounds c{start, a_.indptr[v + 1] - start};
    const Stream draw{stream(i), 0,
                      static_cast<uint64_t>(a_.id == nullptr ? v : a_.id[i])};
    const auto take = [&](int64_t slot, uint64_t choice) {
      a_.edge[first + slot] = c.start + static_cast<int64_t>(choice);
    };
    if (takes_all(v, c, count))
      take_all(c, count, group, take);
    else if (a_.cum_weight != nullptr)
      select_weighted(weights(c), first, count, draw, group, tree, take);
    else if (a_.replace)
      for (int64_t slot = group.rank; slot < count; slot += group.size)
        take(slot, bounded(draw(static_cast<uint32_t>(slot)), c.length));
    else
      select_floyd(draw, static_cast<uint64_t>(c.length),
                   static_cast<uint32_t>(count), group, a_.edge + first,
                   a_.lists + first, take);
  }

 private:
  __device__ void note_length(int64_t length) const {
    const Atomic<int64_t> longest(*a_.longest);
    if (longest.load(kRelaxed) < length)
      longest.fetch_max(length, kRelaxed);
  }
  __device__ int64_t column(int64_t i) const {
    return a_.cols == nullptr ? i : a_.cols[i];
  }
  __device__ uint64_t stream(int64_t i) const {
    return a_.ptr == nullptr ? a_.stream
                             : a_.streams[column_of(a_.ptr, a_.batches, i)];
  }
  __device__ CumulativeWeights weights(const ColumnBounds& c) const {
    return {a_.cum_weight + c.start, 0, static_cast<uint64_t>(c.length)};
  }

  // How many edges of a column can be drawn, or `enough` if there are more.
  __device__ int64_t candidates(int64_t v,
                                const ColumnBounds& c,
                                int64_t enough) const {
    if (a_.cum_weight == nullptr ||
        !has_zero_weight(a_.cum_weight + num_edges_, v))
      return c.length < enough ? c.length : enough;
    const CumulativeWeights w = weights(c);
    int64_t positive = 0;
    for (uint64_t i = 0; i < w.n && positive < enough; ++i)
      positive += w.through(i) > w.start(i);
    return positive;
  }

  __device__ bool takes_all(int64_t v,
                            const ColumnBounds& c,
                            int64_t count) const {
    if (a_.k < 0)
      return true;
    return !a_.replace && (count < a_.k || candidates(v, c, a_.k + 1) == count);
  }

  // The edges of positive weight, in the order of the matrix.
  template <typename group_t, typename take_t>
  __device__ void take_all(const ColumnBounds& c,
                           int64_t count,
                           const group_t& group,
                           const take_t& take) const {
    if (count == c.length) {
      for (int64_t slot = group.rank; slot < count; slot += group.size)
        take(slot, slot);
      return;
    }
    if (group.rank != 0)
      return;
    const CumulativeWeights w = weights(c);
    int64_t slot = 0;
    for (uint64_t i = 0; i < w.n && slot < count; ++i)
      if (w.through(i) > w.start(i))
        take(slot++, i);
  }

  // Only weights that are no cumulative sums leave slots without a draw: these
  // get the first edge.
  template <typename group_t, typename take_t>
  __device__ void select_weighted(const CumulativeWeights& w,
                                  int64_t first,
                                  int64_t count,
                                  const Stream& draw,
                                  const group_t& group,
                                  uint64_t* tree,
                                  const take_t& take) const {
    const EvenGuess guess(w);
    const uint64_t sum = w.total();
    if (a_.replace) {
      for (int64_t slot = group.rank; slot < count; slot += group.size) {
        const uint64_t r = bounded(draw(static_cast<uint32_t>(slot)), sum);
        take(slot, sum == 0 ? 0 : w.find(r, guess(0, r)));
      }
      return;
    }
    if (tree != nullptr)
      return select_column_by_tree(draw, w, count, tree, take);
    if (group.rank != 0)
      return;
    int64_t* out = a_.edge + first;
    const int64_t selected = select_weighted_without_replacement(
        draw, guess, w, static_cast<uint32_t>(count), out, a_.taken + first);
    for (int64_t slot = 0; slot < count; ++slot)
      take(slot, slot < selected ? static_cast<uint64_t>(out[slot]) : 0);
  }

  const Args& a_;
  const int64_t num_edges_;
};

template <typename indptr_t>
__global__ void __launch_bounds__(kSelectThreads)
    sample_cols_indptr_kernel(SampleColsCuda<indptr_t> args) {
  GSAMPLE_SHARED(SelectShared, shared);
  const ColumnsSampler<indptr_t> sampler(args);
  sampler.check_edges();
  if (args.ptr != nullptr)
    check_ptr(args.ptr, args.batches, args.num_cols, args.report);
  write_offsets([&](int64_t i) { return sampler.count(i); }, args.num_cols,
                args.out_indptr, args.totals, shared.sums, args.report);
}

// Columns of few slots, by groups of `lanes` threads.
template <typename indptr_t>
__global__ void __launch_bounds__(kSelectThreads)
    sample_cols_edges_kernel(SampleColsCuda<indptr_t> args, int lanes) {
  const ColumnsSampler<indptr_t> sampler(args);
  const LaneGroup group(lanes);
  const int64_t step = grid_threads() / lanes;
  for (int64_t i = global_rank() / lanes; i < args.num_cols; i += step)
    if (args.out_indptr[i + 1] - args.out_indptr[i] <= kManySlots)
      sampler.select(i, group);
}

// Columns of many weighted draws without replacement, by warps that have a tree
// each.
template <typename indptr_t>
__global__ void __launch_bounds__(kSelectThreads)
    sample_weighted_cols_kernel(SampleColsCuda<indptr_t> args) {
  const ColumnsSampler<indptr_t> sampler(args);
  const LaneGroup group(32);
  const int64_t warps = grid_threads() / 32, warp = global_rank() / 32;
  const int64_t step = warps < args.trees ? warps : args.trees;
  if (warp >= step)
    return;
  for (int64_t i = warp; i < args.num_cols; i += step)
    sampler.select(i, group, args.tree + warp * args.tree_words);
}

// The other columns, by blocks.
template <typename indptr_t>
__global__ void __launch_bounds__(kSelectThreads)
    sample_long_cols_kernel(SampleColsCuda<indptr_t> args) {
  const ColumnsSampler<indptr_t> sampler(args);
  for (int64_t i = blockIdx.x; i < args.num_cols; i += gridDim.x)
    if (args.out_indptr[i + 1] - args.out_indptr[i] > kManySlots)
      sampler.select(i, BlockGroup());
}

}  // namespace gsample
