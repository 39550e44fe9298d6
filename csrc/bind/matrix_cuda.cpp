// The operators of sparse matrices on a GPU. Where a kernel decides the length
// of an output, one copy of its report to the host tells it.
#include <torch/csrc/stable/library.h>

#include <limits>
#include <tuple>

#include "../cuda/random_uniform.h"
#include "../cuda/sample_cols.h"
#include "../cuda/slice_cols.h"
#include "../cuda/taken_tree.h"
#include "columns_report_cuda.h"
#include "matrix_cuda.h"

namespace gsample {

namespace {

std::tuple<Tensor, Tensor, Tensor> slice_cols_cuda(Tensor indptr,
                                                   Tensor indices,
                                                   Tensor cols,
                                                   int64_t) {
  const char* op = "slice_cols";
  check_matrix(op, indptr, indices);
  const int64_t n = cols.numel(), num_cols = indptr.numel() - 1;
  const int64_t* wanted = int64_vector(op, "cols", cols, n);
  const DeviceScope scope(op, cols);
  Tensor out_indptr =
      device_vector("indptr", cols, n + 1, indptr.scalar_type());
  Tensor out_indices, edge;
  dispatch_graph(op, indptr.scalar_type(), indices.scalar_type(),
                 [&](auto indptr_type, auto index_type) {
                   using indptr_t = decltype(indptr_type);
                   using index_t = decltype(index_type);
                   SliceColsCuda<indptr_t, index_t> args{};
                   args.indptr = readable<indptr_t>(op, indptr, cols, "cols");
                   args.indices = readable<index_t>(op, indices, cols, "cols");
                   args.num_cols = num_cols;
                   args.num_edges = indices.numel();
                   args.cols = wanted;
                   args.n = n;
                   args.out_indptr = out_indptr.mutable_data_ptr<indptr_t>();
                   DeviceReport report(cols);
                   args.report = report.get();
                   const LaunchShape shape = slice_cols_shape(args);
                   Tensor totals = device_vector("totals", cols, shape.blocks);
                   args.totals = totals.mutable_data_ptr<int64_t>();
                   slice_cols_indptr(args, shape, scope.stream());
                   const Report found = report.read(scope);
                   check_report(op, found, "cols", num_cols);
                   args.size = found.size;
                   out_indices = device_vector("indices", cols, found.size,
                                               indices.scalar_type());
                   edge = device_vector("edge", cols, found.size);
                   args.out_indices = out_indices.mutable_data_ptr<index_t>();
                   args.edge = edge.mutable_data_ptr<int64_t>();
                   slice_cols_edges(args, scope.stream());
                 });
  return {out_indptr, out_indices, edge};
}

// Selects with `args`, which lack outputs and scratch, where `like` is.
template <typename indptr_t>
std::tuple<Tensor, Tensor> sample_columns(const char* op,
                                          SampleColsCuda<indptr_t> args,
                                          ScalarType dtype,
                                          const Tensor& like,
                                          const DeviceScope& scope) {
  constexpr int64_t kMost = std::numeric_limits<indptr_t>::max();
  STD_TORCH_CHECK(
      !args.replace || args.k <= 0 || args.num_cols <= kMost / args.k, op,
      ": 'indptr' must be int64 for ", args.num_cols, " columns of ", args.k,
      " edges");
  Tensor out_indptr = device_vector("indptr", like, args.num_cols + 1, dtype);
  args.out_indptr = out_indptr.template mutable_data_ptr<indptr_t>();
  ColumnsReport report(like);
  args.report = report.get();
  args.longest = report.longest();
  const LaunchShape shape = sample_cols_shape(args);
  Tensor totals = device_vector("totals", like, shape.blocks);
  args.totals = totals.mutable_data_ptr<int64_t>();
  sample_cols_indptr(args, shape, scope.stream());
  const auto [found, longest] = report.read(scope);
  check_report(op, found, "cols", args.all_cols);
  args.size = found.size;
  Tensor edge = device_vector("edge", like, found.size);
  args.edge = edge.mutable_data_ptr<int64_t>();
  Tensor slots =
      device_vector("slots", like, needs_slots(args) ? found.size : 0);
  args.lists = slots.mutable_data_ptr<int64_t>();
  static_assert(sizeof(TakenWeight) == 2 * sizeof(int64_t), "two words");
  Tensor taken =
      device_vector("taken", like, needs_taken(args) ? 2 * found.size : 0);
  args.taken = static_cast<TakenWeight*>(taken.mutable_data_ptr());
  args.tree_words = taken_tree_words(longest);
  args.trees = count_trees(args.num_cols, args.tree_words);
  Tensor tree = device_vector(
      "tree", like, needs_trees(args) ? args.trees * args.tree_words : 0);
  args.tree = static_cast<uint64_t*>(tree.mutable_data_ptr());
  sample_cols_edges(args, scope.stream());
  return {out_indptr, edge};
}

// The edges whose weights `cum_weight` sums.
int64_t weighted_edges(const char* op,
                       const std::optional<Tensor>& cum_weight,
                       int64_t num_cols) {
  if (!cum_weight.has_value())
    return 0;
  const int64_t num_edges = cum_weight->numel() - cum_weight_size(0, num_cols);
  STD_TORCH_CHECK(num_edges >= 0, op, ": 'cum_weight' must have at least ",
                  cum_weight_size(0, num_cols), " elements (got ",
                  cum_weight->numel(), ")");
  return num_edges;
}

std::tuple<Tensor, Tensor> sample_cols_cuda(Tensor indptr,
                                            int64_t k,
                                            Tensor key,
                                            int64_t call_id,
                                            std::optional<Tensor> cols,
                                            std::optional<Tensor> id,
                                            std::optional<Tensor> cum_weight,
                                            bool replace,
                                            int64_t,
                                            std::optional<Tensor> ptr) {
  const char* op = "sample_cols";
  check_vector(op, "indptr", indptr, indptr.scalar_type());
  STD_TORCH_CHECK(indptr.numel() > 0, op, ": 'indptr' must not be empty");
  STD_TORCH_CHECK(k >= -1, op, ": 'k' must be -1 or more (got ", k, ")");
  STD_TORCH_CHECK(!replace || k <= INT32_MAX, op,
                  ": 'k' must be less than 2^31 with replacement (got ", k,
                  ")");
  const int64_t all_cols = indptr.numel() - 1;
  const int64_t n = cols.has_value() ? cols->numel() : all_cols;
  const Tensor& like = cols.has_value() ? *cols : indptr;
  const char* like_name = cols.has_value() ? "cols" : "indptr";
  const DeviceScope scope(op, like);
  const auto call = [&](auto indptr_type) {
    using indptr_t = decltype(indptr_type);
    SampleColsCuda<indptr_t> args{};
    args.indptr = readable<indptr_t>(op, indptr, like, like_name);
    args.cols = int64_vector(op, "cols", cols, n);
    args.id = device_int64(op, "id", id, n, like, like_name);
    args.num_edges = weighted_edges(op, cum_weight, all_cols);
    if (cum_weight.has_value()) {
      check_vector(op, "cum_weight", *cum_weight, ScalarType::Long);
      args.cum_weight = readable<int64_t>(op, *cum_weight, like, like_name);
    }
    args.num_cols = n;
    args.all_cols = all_cols;
    args.k = k;
    args.replace = replace;
    if (!ptr) {
      args.stream = read_stream(op, key, call_id, 0);
      return sample_columns(op, args, indptr.scalar_type(), like, scope);
    }
    args.ptr = device_ptr(op, "ptr", *ptr, n, like, like_name);
    args.batches = ptr->numel() - 1;
    const Tensor streams =
        to_device(like, read_streams(op, key, args.batches, call_id, 0), scope);
    args.streams = static_cast<const uint64_t*>(streams.const_data_ptr());
    return sample_columns(op, args, indptr.scalar_type(), like, scope);
  };
  return indptr.scalar_type() == ScalarType::Int ? call(int32_t{})
                                                 : call(int64_t{});
}

Tensor random_uniform_cuda(Tensor id, Tensor key, int64_t call_id) {
  const char* op = "random_uniform";
  const int64_t n = id.numel();
  const int64_t* ids = int64_vector(op, "id", id, n);
  const DeviceScope scope(op, id);
  Tensor out = device_vector("out", id, n, ScalarType::Double);
  random_uniform({ids, n, read_stream(op, key, call_id, kRandomUniform),
                  out.mutable_data_ptr<double>()},
                 scope.stream());
  return out;
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(GSAMPLE_CUDA_LIBRARY, GSAMPLE_CUDA_KEY, m) {
  m.impl("slice_cols", TORCH_BOX(&slice_cols_cuda));
  m.impl("sample_cols", TORCH_BOX(&sample_cols_cuda));
  m.impl("random_uniform", TORCH_BOX(&random_uniform_cuda));
}

}  // namespace gsample
