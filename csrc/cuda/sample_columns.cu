// Selection of edges in columns. One cooperative launch counts the edges of
// each column; then several lanes select in a column, or a block if the edges
// are many. Without replacement a weighted draw depends on the earlier ones: a
// thread makes all draws of a column, or a warp with a tree if they are many.
#include "sample_columns.h"

#include "columns.cuh"
#include "launch.cuh"
#include "select_column.cuh"
#include "taken_tree.cuh"

namespace gsample {

constexpr int kSelectThreads = 256;  // per block
constexpr int64_t kManySlots = 512;  // of a column that a block handles

struct SelectShared {
  BlockSums sums;
};

template <typename indptr_t>
class GpuColumns {
 public:
  using Args = SampleColumnsCuda<indptr_t>;

  __device__ explicit GpuColumns(const Args& args)
      : a_(args), edges_(args.edges) {
    if (edges_.num_edges < 0)
      edges_.num_edges = edges_.indptr[args.all_cols];
  }

  __device__ void check_input() const {
    const int64_t all = a_.all_cols, num_edges = edges_.num_edges;
    if (global_rank() == 0 && (num_edges < 0 || edges_.indptr[0] != 0 ||
                               edges_.indptr[all] != num_edges))
      note_fault(a_.report, Report::kIndptr, all, num_edges);
    if (a_.ptr != nullptr)
      check_ptr(a_.ptr, a_.batches, a_.n, a_.report);
  }

  __device__ int64_t count(int64_t i) const {
    const int64_t v = a_.column(i);
    if (v < 0 || v >= a_.all_cols) {
      note_fault(a_.report, Report::kId, i, v);
      return 0;
    }
    SampleColumn column;
    if (!read(i, v, &column))
      note_fault(a_.report, Report::kIndptr, v, edges_.num_edges);
    const Atomic<int64_t> longest(*a_.longest);
    if (a_.needs_trees() && !column.all &&
        longest.load(kRelaxed) < column.length)
      longest.fetch_max(column.length, kRelaxed);
    return column.count;
  }

  // Called by all threads of a group: a warp, if there is a tree.
  template <typename group_t>
  __device__ void select(int64_t i,
                         const group_t& group,
                         uint64_t* tree = nullptr) const {
    const int64_t first = a_.out_indptr[i];
    if (first == a_.out_indptr[i + 1])
      return;
    const int64_t v = a_.column(i);
    SampleColumn column;
    read(i, v, &column);
    const int64_t start = a_.position(i, v, column.start);
    const Stream draw{stream(i), a_.tree_of(i), a_.node_of(i, v)};
    const auto take = [&](int64_t slot, uint64_t choice) {
      a_.edge[first + slot] = start + static_cast<int64_t>(choice);
    };
    SelectScratch scratch{a_.edge + first, nullptr, nullptr};
    if (a_.needs_slots())
      scratch.mark = a_.lists + first;
    if (a_.needs_taken())
      scratch.taken = a_.taken + first;
    const bool replace = a_.options.replace;
    if (edges_.cum_weight == nullptr)
      return select_uniform(draw, column, replace, group, scratch, take);
    const CumulativeWeights weights = column_weights(edges_, v, column);
    if (tree != nullptr && !column.all)
      return select_column_by_tree(draw, weights, column.count, tree, take);
    select_weighted(draw, column, weights, replace, group, scratch, take);
  }

 private:
  __device__ bool read(int64_t i, int64_t v, SampleColumn* column) const {
    return read_column<true>(edges_, a_.options, a_.k, v, a_.column_time, i,
                             column);
  }
  __device__ uint64_t stream(int64_t i) const {
    return a_.ptr == nullptr ? a_.stream
                             : a_.streams[column_of(a_.ptr, a_.batches, i)];
  }

  const Args& a_;
  Relation<indptr_t, int64_t> edges_;
};

// Blocks a processor, or no bound: else a few bytes are spilled.
template <typename indptr_t>
constexpr int pointer_blocks = sizeof(indptr_t) == 4 ? 0 : 6;

template <typename indptr_t>
__global__ void __launch_bounds__(kSelectThreads, pointer_blocks<indptr_t>)
    sample_columns_indptr_kernel(SampleColumnsCuda<indptr_t> args) {
  GSAMPLE_SHARED(SelectShared, shared);
  const GpuColumns<indptr_t> sampler(args);
  sampler.check_input();
  write_offsets([&](int64_t i) { return sampler.count(i); }, args.n,
                args.out_indptr, args.totals, shared.sums, args.report);
}

// Columns of few slots, in groups of `lanes` threads.
template <typename indptr_t>
__global__ void __launch_bounds__(kSelectThreads)
    sample_columns_edges_kernel(SampleColumnsCuda<indptr_t> args, int lanes) {
  const GpuColumns<indptr_t> sampler(args);
  const LaneGroup group(lanes);
  const int64_t step = grid_threads() / lanes;
  for (int64_t i = global_rank() / lanes; i < args.n; i += step)
    if (args.out_indptr[i + 1] - args.out_indptr[i] <= kManySlots)
      sampler.select(i, group);
}

// Columns of many weighted draws without replacement, one warp with a tree per
// column.
template <typename indptr_t>
__global__ void __launch_bounds__(kSelectThreads)
    sample_weighted_columns_kernel(SampleColumnsCuda<indptr_t> args) {
  const GpuColumns<indptr_t> sampler(args);
  const LaneGroup group(32);
  const int64_t warps = grid_threads() / 32, warp = global_rank() / 32;
  const int64_t step = warps < args.trees ? warps : args.trees;
  if (warp >= step)
    return;
  for (int64_t i = warp; i < args.n; i += step)
    sampler.select(i, group, args.tree + warp * args.tree_words);
}

// The remaining columns, one block each.
template <typename indptr_t>
__global__ void __launch_bounds__(kSelectThreads)
    sample_long_columns_kernel(SampleColumnsCuda<indptr_t> args) {
  const GpuColumns<indptr_t> sampler(args);
  for (int64_t i = blockIdx.x; i < args.n; i += gridDim.x)
    if (args.out_indptr[i + 1] - args.out_indptr[i] > kManySlots)
      sampler.select(i, BlockGroup());
}

template <typename indptr_t>
LaunchShape sample_columns_shape(const SampleColumnsCuda<indptr_t>& args) {
  return cooperative_shape(sample_columns_indptr_kernel<indptr_t>,
                           kSelectThreads, args.n);
}

template <typename indptr_t>
void sample_columns_indptr(const SampleColumnsCuda<indptr_t>& args,
                           LaunchShape shape,
                           StreamHandle stream) {
  launch_cooperative("sample_columns_indptr",
                     sample_columns_indptr_kernel<indptr_t>, shape, stream,
                     args);
}

template <typename indptr_t>
void sample_columns_edges(const SampleColumnsCuda<indptr_t>& args,
                          StreamHandle stream) {
  if (args.needs_trees()) {
    launch("sample_weighted_columns", sample_weighted_columns_kernel<indptr_t>,
           shape_for(kSelectThreads, 32 * args.trees), stream, args);
    return;
  }
  // One lane per slot of a column, up to a warp; one lane if a draw depends on
  // the earlier ones.
  constexpr int kWarp = 32;
  int lanes = args.needs_taken() ? 1 : 4;
  while (!args.needs_taken() && lanes < kWarp && (args.k < 0 || lanes < args.k))
    lanes *= 2;
  launch("sample_columns_edges", sample_columns_edges_kernel<indptr_t>,
         shape_for(kSelectThreads, args.n * lanes), stream, args, lanes);
  if (args.k >= 0 && args.k <= kManySlots)
    return;
  launch("sample_long_columns", sample_long_columns_kernel<indptr_t>,
         shape_for(kSelectThreads, args.n * kSelectThreads), stream, args);
}

#define GSAMPLE_INSTANTIATE(indptr_t)                                     \
  template LaunchShape sample_columns_shape(                              \
      const SampleColumnsCuda<indptr_t>&);                                \
  template void sample_columns_indptr(const SampleColumnsCuda<indptr_t>&, \
                                      LaunchShape, StreamHandle);         \
  template void sample_columns_edges(const SampleColumnsCuda<indptr_t>&,  \
                                     StreamHandle);
GSAMPLE_INSTANTIATE(int32_t)
GSAMPLE_INSTANTIATE(int64_t)
#undef GSAMPLE_INSTANTIATE

}  // namespace gsample
