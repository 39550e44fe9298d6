// The operator sample_columns on a GPU. The kernels decide the number of
// selected edges: one copy of their report brings it to the host.
#include <torch/csrc/stable/library.h>

#include "../cuda/sample_columns.h"
#include "../cuda/taken_tree.h"
#include "matrix_cuda.h"
#include "sample_columns.h"

namespace gsample {

namespace {

// Besides faults and the size, the kernels report the length of the longest
// column that needs many weighted draws.
struct ColumnsReport {
  Report report;
  int64_t longest;
};

// The relation may be in pinned memory; all else is on the device of `like`.
struct OnGpu {
  OnGpu(const Tensor& like, const char* like_name)
      : like(like), like_name(like_name), scope(kColumnsOp, like) {}

  int threads(int64_t) const { return 0; }
  template <typename item_t>
  const item_t* graph(const Tensor& tensor) const {
    return readable<item_t>(kColumnsOp, tensor, like, like_name);
  }
  const int64_t* vector(const char* name, Optional tensor, int64_t size) const {
    return device_int64(kColumnsOp, name, tensor, size, like, like_name);
  }
  const int64_t* pointers(const Tensor& ptr, int64_t size) const {
    return device_ptr(kColumnsOp, "ptr", ptr, size, like, like_name);
  }

  // -1 if only `indptr` on the device, which kernels read, has it.
  int64_t num_edges(const void*,
                    int64_t all_cols,
                    Optional cum_weight,
                    Optional edge_time) const {
    if (edge_time)
      return edge_time->numel();
    if (!cum_weight)
      return -1;
    const int64_t least = cum_weight_size(0, all_cols);
    STD_TORCH_CHECK(cum_weight->numel() >= least, kColumnsOp,
                    ": 'cum_weight' must have at least ", least,
                    " elements (got ", cum_weight->numel(), ")");
    return cum_weight->numel() - least;
  }

  template <typename indptr_t>
  std::tuple<Tensor, Tensor> select(const SampleColumnsArgs<indptr_t>& columns,
                                    ScalarType dtype) const {
    SampleColumnsCuda<indptr_t> args{};
    static_cast<SampleColumnsArgs<indptr_t>&>(args) = columns;
    args.stream = columns.batches > 0 ? columns.streams[0] : 0;
    Tensor streams;
    if (columns.ptr != nullptr) {
      streams = to_device(
          like, {columns.streams, columns.streams + columns.batches}, scope);
      args.streams = static_cast<const uint64_t*>(streams.const_data_ptr());
    }
    Tensor out_indptr = device_vector("indptr", like, args.n + 1, dtype);
    args.out_indptr = out_indptr.mutable_data_ptr<indptr_t>();
    constexpr int64_t kWords = sizeof(ColumnsReport) / sizeof(int64_t);
    Tensor memory = device_zeros("report", like, kWords);
    auto* on_gpu = static_cast<ColumnsReport*>(memory.mutable_data_ptr());
    args.report = &on_gpu->report;
    args.longest = &on_gpu->longest;
    const LaunchShape shape = sample_columns_shape(args);
    Tensor totals = device_vector("totals", like, shape.blocks);
    args.totals = totals.mutable_data_ptr<int64_t>();
    sample_columns_indptr(args, shape, scope.stream());
    ColumnsReport found;
    copy_to_host(&found, on_gpu, sizeof found, scope.stream());
    check_report(kColumnsOp, found.report, "cols", args.all_cols);
    const int64_t size = found.report.size;
    Tensor edge = device_vector("edge", like, size);
    args.edge = edge.mutable_data_ptr<int64_t>();
    Tensor slots = device_vector("slots", like, args.needs_slots() ? size : 0);
    args.lists = slots.mutable_data_ptr<int64_t>();
    static_assert(sizeof(TakenWeight) == 2 * sizeof(int64_t), "two words");
    Tensor taken =
        device_vector("taken", like, args.needs_taken() ? 2 * size : 0);
    args.taken = static_cast<TakenWeight*>(taken.mutable_data_ptr());
    args.tree_words = taken_tree_words(found.longest);
    args.trees = count_trees(args.n, args.tree_words);
    Tensor tree = device_vector(
        "tree", like, args.needs_trees() ? args.trees * args.tree_words : 0);
    args.tree = static_cast<uint64_t*>(tree.mutable_data_ptr());
    sample_columns_edges(args, scope.stream());
    return {out_indptr, edge};
  }

  const Tensor& like;
  const char* like_name;
  const DeviceScope scope;
};

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(GSAMPLE_CUDA_LIBRARY, GSAMPLE_CUDA_KEY, m) {
  m.impl("sample_columns", TORCH_BOX(&sample_columns<OnGpu>));
}

}  // namespace gsample
