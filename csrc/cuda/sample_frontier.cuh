// One hop of columns of which only lengths and places are known. First how many
// edges each gives, in one cooperative launch; then some lanes select in a
// column, or a block if they are many; a thread where weighted draws depend on
// those before them, or a warp with a tree if they are many.
#pragma once

#include "columns.cuh"
#include "sample_frontier.h"
#include "select_column.cuh"
#include "taken_tree.cuh"

namespace gsample {

constexpr int kFrontierThreads = 256;        // of a block
constexpr int64_t kManyFrontierSlots = 512;  // of a column: a block takes them

static_assert(sizeof(SampleColumn) == kFrontierWords * sizeof(int64_t),
              "the scratch that bind/ allocates");

struct FrontierShared {
  BlockSums sums;
};

// The columns, whose edges are as many as `indptr` says if nothing else does.
__device__ inline Relation<int64_t, int64_t> frontier_columns(
    const SampleFrontierCuda& args) {
  Relation<int64_t, int64_t> columns = args.columns;
  if (!args.knows_edges)
    columns.num_edges = columns.indptr[args.n];
  return columns;
}

inline __global__ void __launch_bounds__(kFrontierThreads)
    sample_frontier_indptr_kernel(SampleFrontierCuda args) {
  GSAMPLE_SHARED(FrontierShared, shared);
  const Relation<int64_t, int64_t> columns = frontier_columns(args);
  if (global_rank() == 0 &&
      (columns.indptr[0] != 0 || columns.indptr[args.n] != columns.num_edges))
    note_fault(args.report, Report::kIndptr, args.n, columns.num_edges);
  const Atomic<int64_t> longest(*args.longest);
  for (int64_t i = global_rank(); i < args.n; i += grid_threads()) {
    SampleColumn* const column = args.column + i;
    if (!read_column<true>(columns, args.options, args.k, i, args.column_time,
                           i, column))
      note_fault(args.report, Report::kIndptr, i, columns.num_edges);
    if (!column->all && longest.load(kRelaxed) < column->length)
      longest.fetch_max(column->length, kRelaxed);
  }
  grid_barrier();
  write_offsets([&](int64_t i) { return args.column[i].count; }, args.n,
                args.out_indptr, args.totals, shared.sums, args.report);
}

// Selects in column i, by the threads of a group: a warp, if there is a tree.
template <typename group_t>
__device__ void select_frontier_column(const SampleFrontierCuda& args,
                                       int64_t i,
                                       const group_t& group,
                                       uint64_t* tree = nullptr) {
  const SampleColumn column = args.column[i];
  if (column.count == 0)
    return;
  const int64_t first = args.out_indptr[i];
  const int64_t skipped = column.start - args.columns.indptr[i];
  const uint32_t root =
      args.root == nullptr ? 0 : static_cast<uint32_t>(args.root[i]);
  const Stream draw{args.stream, root, static_cast<uint64_t>(args.id[i])};
  const auto take = [&](int64_t slot, uint64_t choice) {
    args.edge[first + slot] =
        args.start[i] + skipped + static_cast<int64_t>(choice);
  };
  SelectScratch scratch{args.edge + first, nullptr, nullptr};
  if (args.needs_slots())
    scratch.mark = args.lists + first;
  if (args.needs_taken())
    scratch.taken = args.taken + first;
  if (args.columns.cum_weight == nullptr)
    select_uniform(draw, column, args.options.replace, group, scratch, take);
  else if (tree != nullptr && !column.all)
    select_column_by_tree(draw, column_weights(args.columns, i, column),
                          column.count, tree, take);
  else
    select_weighted(draw, column, column_weights(args.columns, i, column),
                    args.options.replace, group, scratch, take);
}

// Columns of few slots, by groups of `lanes` threads.
inline __global__ void __launch_bounds__(kFrontierThreads)
    sample_frontier_edges_kernel(SampleFrontierCuda args, int lanes) {
  const LaneGroup group(static_cast<uint32_t>(lanes));
  const int64_t step = grid_threads() / lanes;
  for (int64_t i = global_rank() / lanes; i < args.n; i += step)
    if (args.column[i].count <= kManyFrontierSlots)
      select_frontier_column(args, i, group);
}

// Columns of many weighted draws without replacement, by warps that have a tree
// each.
inline __global__ void __launch_bounds__(kFrontierThreads)
    sample_weighted_frontier_kernel(SampleFrontierCuda args) {
  const LaneGroup group(32);
  const int64_t warps = grid_threads() / 32, warp = global_rank() / 32;
  const int64_t step = warps < args.trees ? warps : args.trees;
  if (warp >= step)
    return;
  for (int64_t i = warp; i < args.n; i += step)
    select_frontier_column(args, i, group, args.tree + warp * args.tree_words);
}

// The other columns, by blocks.
inline __global__ void __launch_bounds__(kFrontierThreads)
    sample_long_frontier_kernel(SampleFrontierCuda args) {
  for (int64_t i = blockIdx.x; i < args.n; i += gridDim.x)
    if (args.column[i].count > kManyFrontierSlots)
      select_frontier_column(args, i, BlockGroup());
}

}  // namespace gsample
