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
  check_device(op, "indices", indices, indptr);
  const int64_t n = cols.numel(), num_cols = indptr.numel() - 1;
  const int64_t* wanted = device_int64(op, "cols", cols, n, indptr);
  const DeviceScope scope(op, indptr);
  Tensor out_indptr = vector_like("indptr", indptr, n + 1), out_indices, edge;
  dispatch_graph(op, indptr.scalar_type(), indices.scalar_type(),
                 [&](auto indptr_type, auto index_type) {
                   using indptr_t = decltype(indptr_type);
                   using index_t = decltype(index_type);
                   SliceColsCuda<indptr_t, index_t> args{};
                   args.indptr = indptr.const_data_ptr<indptr_t>();
                   args.indices = indices.const_data_ptr<index_t>();
                   args.num_cols = num_cols;
                   args.num_edges = indices.numel();
                   args.cols = wanted;
                   args.n = n;
                   args.out_indptr = out_indptr.mutable_data_ptr<indptr_t>();
                   DeviceReport report(indptr);
                   args.report = report.get();
                   const LaunchShape shape = slice_cols_shape(args);
                   Tensor totals =
                       device_vector("totals", indptr, shape.blocks);
                   args.totals = totals.mutable_data_ptr<int64_t>();
                   slice_cols_indptr(args, shape, scope.stream());
                   const Report found = report.read(scope);
                   check_report(op, found, "cols", num_cols);
                   args.size = found.size;
                   out_indices = vector_like("indices", indices, found.size);
                   edge = device_vector("edge", indptr, found.size);
                   args.out_indices = out_indices.mutable_data_ptr<index_t>();
                   args.edge = edge.mutable_data_ptr<int64_t>();
                   slice_cols_edges(args, scope.stream());
                 });
  return {out_indptr, out_indices, edge};
}

// Selects with `args`, which lack outputs and scratch.
template <typename indptr_t>
std::tuple<Tensor, Tensor> sample_columns(const char* op,
                                          SampleColsCuda<indptr_t> args,
                                          const Tensor& indptr,
                                          const DeviceScope& scope) {
  constexpr int64_t kMost = std::numeric_limits<indptr_t>::max();
  STD_TORCH_CHECK(
      !args.replace || args.k <= 0 || args.num_cols <= kMost / args.k, op,
      ": 'indptr' must be int64 for ", args.num_cols, " columns of ", args.k,
      " edges");
  Tensor out_indptr = vector_like("indptr", indptr, args.num_cols + 1);
  args.out_indptr = out_indptr.template mutable_data_ptr<indptr_t>();
  ColumnsReport report(indptr);
  args.report = report.get();
  args.longest = report.longest();
  const LaunchShape shape = sample_cols_shape(args);
  Tensor totals = device_vector("totals", indptr, shape.blocks);
  args.totals = totals.mutable_data_ptr<int64_t>();
  sample_cols_indptr(args, shape, scope.stream());
  const auto [found, longest] = report.read(scope);
  check_report(op, found, "cols", args.all_cols);
  args.size = found.size;
  Tensor edge = device_vector("edge", indptr, found.size);
  args.edge = edge.mutable_data_ptr<int64_t>();
  Tensor slots =
      device_vector("slots", indptr, needs_slots(args) ? found.size : 0);
  args.lists = slots.mutable_data_ptr<int64_t>();
  static_assert(sizeof(TakenWeight) == 2 * sizeof(int64_t), "two words");
  Tensor taken =
      device_vector("taken", indptr, needs_taken(args) ? 2 * found.size : 0);
  args.taken = static_cast<TakenWeight*>(taken.mutable_data_ptr());
  args.tree_words = taken_tree_words(longest);
  args.trees = count_trees(args.num_cols, args.tree_words);
  Tensor tree = device_vector(
      "tree", indptr, needs_trees(args) ? args.trees * args.tree_words : 0);
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
  const DeviceScope scope(op, indptr);
  const auto call = [&](auto indptr_type) {
    using indptr_t = decltype(indptr_type);
    SampleColsCuda<indptr_t> args{};
    args.indptr = indptr.const_data_ptr<indptr_t>();
    args.cols = device_int64(op, "cols", cols, n, indptr);
    args.id = device_int64(op, "id", id, n, indptr);
    args.num_edges = weighted_edges(op, cum_weight, all_cols);
    args.cum_weight =
        device_int64(op, "cum_weight", cum_weight,
                     cum_weight_size(args.num_edges, all_cols), indptr);
    args.num_cols = n;
    args.all_cols = all_cols;
    args.k = k;
    args.replace = replace;
    if (!ptr) {
      args.stream = read_stream(op, key, call_id, 0);
      return sample_columns(op, args, indptr, scope);
    }
    args.ptr = device_ptr(op, "ptr", *ptr, n, indptr);
    args.batches = ptr->numel() - 1;
    const Tensor streams = to_device(
        indptr, read_streams(op, key, args.batches, call_id, 0), scope);
    args.streams = static_cast<const uint64_t*>(streams.const_data_ptr());
    return sample_columns(op, args, indptr, scope);
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
